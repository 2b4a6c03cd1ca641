"""Errors on data frames name the columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from subspaces import TRR, SubspaceClustering

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=["a", "b", "c"])
MODELS = [TRR(2), SubspaceClustering(2)]


def refusal(X, model=MODELS[0], call="fit"):
    with pytest.raises((ValueError, TypeError)) as caught:
        getattr(model, call)(X)
    return str(caught.value)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_columns_of_text_are_named_together(model):
    frame = FRAME.assign(sample=[f"S{i}" for i in range(20)], kind=pd.Categorical(["x", "y"] * 10))
    text = refusal(frame, model)
    assert "Input X holds text in the columns 'sample', 'kind'" in text
    assert "use X.drop(columns=['sample', 'kind'])" in text
    model.fit(frame.drop(columns=["sample", "kind"]))
    text = refusal(pl.DataFrame(FRAME).with_columns(s=pl.lit("x")), model)
    assert "text in the column 's'" in text
    assert "X.drop(['s'])" in text


def test_only_the_first_columns_are_named():
    frame = FRAME.assign(**{f"t{i}": "x" for i in range(30)})
    assert "'t7' and 22 more, and TRR needs numbers" in refusal(frame)


def test_dates_are_in_columns_with_names():
    dated = FRAME.assign(day=pd.Timestamp("2024-05-03"))
    assert "dates or durations in the column 'day': numbers of what unit" in refusal(dated)
    assert "dates or durations: numbers" in refusal(np.array([["2024-05-03"]] * 5, dtype="datetime64[D]"))
