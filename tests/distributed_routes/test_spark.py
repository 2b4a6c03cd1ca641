"""The recipe for Spark as the guide prints it: with a stand-in everywhere, with a real Spark where there is one."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "distributed.md"
FEATURES = list("abcd")


@pytest.fixture
def rings(rng):
    """Seven rings in four dimensions, with ids that are not their positions."""
    n = 120_000
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.integers(1, 8, n)
    ring = np.c_[radius * np.cos(angle), radius * np.sin(angle), 0.1 * rng.normal(size=(n, 2))]
    return pd.DataFrame(ring, columns=FEATURES).assign(id=rng.permutation(n) + 7)


def run_recipe(spark, path="hdfs:///points"):
    """Names that the printed code leaves behind."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    (code,) = [block for block in blocks if "mapInPandas" in block]
    assert "hdfs:///points" in code
    names = {"spark": spark, "__name__": "__main__"}  # as in a notebook: its functions are sent by value
    exec(code.replace("hdfs:///points", path), names)
    return names


def test_recipe_with_a_stand_in(rings):
    """Batches of pandas frames go through the printed function, one of them of a single row."""
    frame = rings[:2000]

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

    names = run_recipe(
        SimpleNamespace(
            read=SimpleNamespace(parquet=lambda path: Table()),
            sparkContext=SimpleNamespace(broadcast=lambda value: SimpleNamespace(value=value)),
        )
    )
    found = names["labels"]
    assert list(found.columns) == ["id", "label"]
    np.testing.assert_array_equal(found["label"], names["model"].predict(frame[FEATURES]))
