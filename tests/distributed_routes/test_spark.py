"""The recipe for Spark as the guide prints it, with a stand-in for Spark."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from distributed_routes.rings_data import three_rings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "distributed.md"
FEATURES = list("abcd")


def test_recipe_with_a_stand_in(rng):
    """Batches of pandas frames go through the printed function, one of them of a single row; ids are no positions."""
    frame = pd.DataFrame(three_rings(rng, 2000), columns=FEATURES).assign(id=rng.permutation(2000) + 7)

    class Table:
        columns = frame.columns

        def sample(self, fraction, seed):
            return self

        def limit(self, n):
            return self

        def toPandas(self):
            return frame

        def mapInPandas(self, function, schema):
            assert schema == "id long, label long"
            return pd.concat(function(iter([frame[:900], frame[900:901], frame[901:]])))

    spark = SimpleNamespace(
        read=SimpleNamespace(parquet=lambda path: Table()),
        sparkContext=SimpleNamespace(broadcast=lambda value: SimpleNamespace(value=value)),
    )
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names = {"spark": spark}
    exec(next(block for block in blocks if "mapInPandas" in block), names)
    found = names["labels"]
    assert list(found.columns) == ["id", "label"]
    np.testing.assert_array_equal(found["label"], names["model"].predict(frame[FEATURES]))
