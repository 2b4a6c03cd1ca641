"""The recipe for Spark as the guide prints it: with a stand-in everywhere, with a real Spark where there is one."""

from __future__ import annotations

import os
import re
import shutil
import sys
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


def test_recipe_on_a_real_spark(rings, tmp_path, monkeypatch):
    """Parquet in several parts, executors in processes of their own: the labels of the model, each with its id."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed: pip install pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")

    def process_of(frames):
        yield from (frame.assign(id=os.getpid()) for frame in frames)

    folder = tmp_path / "points"
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(rings)), 5)):
        rings.iloc[part].to_parquet(folder / f"part-{number}.parquet")
    builder = sql.SparkSession.builder.master("local[2]").appName("subspaces")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
    spark = builder.config("spark.executorEnv.OMP_NUM_THREADS", "1").getOrCreate()
    try:
        names = run_recipe(spark, str(folder))
        written = tmp_path / "labels"
        names["labels"].write.parquet(str(written))
        processes = spark.range(4).mapInPandas(process_of, "id long").toPandas()["id"]
    finally:
        spark.stop()
    assert os.getpid() not in set(processes)
    found = pd.read_parquet(written).set_index("id")["label"]
    assert len(found) == len(rings)
    expected = pd.Series(names["model"].predict(rings[FEATURES]), index=rings["id"])
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index(), check_names=False, check_dtype=False)
    assert found.nunique() == 7
