"""The benchmarks run: every function of the asv suite once, the comparison's data, methods and tables on small sets."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SMALL = 60

pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of this installation")


@pytest.fixture(scope="module", autouse=True)
def on_path():
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def suite_functions():
    """Names of (class, function, arguments) of the suite; all choices but the size as they are."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        module = importlib.import_module("suite.legs")
    finally:
        sys.path.remove(str(BENCHMARKS))
    for cls in vars(module).values():
        if isinstance(cls, type) and cls.__module__ == "suite.legs" and not cls.__name__.startswith("_"):
            for choices in itertools.product([SMALL], *cls.params[1:]):
                for name in dir(cls):
                    if name.startswith(("time_", "peakmem_")):
                        yield pytest.param(cls, name, choices, id=f"{cls.__name__}.{name}-{choices[1:]}")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("cls", "name", "choices"), list(suite_functions()) if BENCHMARKS.is_dir() else [])
def test_suite_runs(cls, name, choices):
    benchmark = cls()
    benchmark.setup(*choices)
    getattr(benchmark, name)(*choices)


def test_suite_covers_every_leg():
    names = {parameters.values[0].__name__ for parameters in suite_functions()}
    assert names == {"Kernel", "Representation", "Truncation", "Affinity", "Embedding", "Partition", "Whole", "Predict"}


def test_configuration_points_to_the_suite():
    settings = json.loads((BENCHMARKS / "asv.conf.json").read_text(encoding="utf-8"))
    assert (BENCHMARKS / settings["benchmark_dir"] / "__init__.py").exists()
    assert (BENCHMARKS / settings["repo"] / "pyproject.toml").exists()


@pytest.mark.parametrize("recipe", ["uos", "hard", "clean", "noisy", "close", "unbalanced"])
def test_unions_have_the_asked_size(recipe, seed):
    data = importlib.import_module("_peers.data")
    X, y = data.load(f"{recipe}200", seed)
    assert len(np.unique(y)) == (5 if recipe == "hard" else 10)
    assert abs(len(X) - 200) <= 20
    assert data.kind(f"{recipe}200") == recipe
    assert np.array_equal(X, data.load(f"{recipe}200", seed)[0])


def test_unknown_data_are_refused():
    with pytest.raises(ValueError, match="no data set"):
        importlib.import_module("_peers.data").load("nothing", 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "method", ["ktrr", "ktrr-unit", "trr", "tsc", "kmeans", "sc-neighbours", "hdbscan", "floor-dense"]
)
def test_a_run_is_measured(method):
    row = importlib.import_module("_peers.measure").run_cell("uos200", method, 0)
    assert row["cpu"] > 0
    assert row["shape"] == (200, 30)
    assert ("ac" in row) == (not method.startswith("floor"))
    json.dumps(row)


def test_front_and_ratios(tmp_path):
    pages = importlib.import_module("_peers.pages")
    store = importlib.import_module("_peers.measure").Store(tmp_path / "runs.jsonl")

    def run(method: str, ac: float, cpu: float) -> None:
        result = {"ac": ac, "nmi": ac, "ari": ac, "found": 10, "cpu": cpu, "wall": cpu, "mb": 1.0, "legs": {}}
        store.get({"data": "uos2000", "method": method}, lambda: {**result, "shape": [2000, 30], "k": 10})

    run("ktrr", 99.0, 2.0)
    run("kmeans", 30.0, 1.0)
    run("umap", 98.0, 8.0)
    store.get({"data": "uos2000", "method": "genie"}, lambda: {"failed": "over 1 CPU s"})
    store.get(
        {"data": "uos2000", "method": "floor-dense"},
        lambda: {"cpu": 0.5, "wall": 0.5, "mb": 9, "shape": [1, 1], "k": 1},
    )
    rows = {row["method"]: row for row in pages.of_data("uos2000", store.rows)}
    assert [rows[method]["on_front"] for method in ("ktrr", "kmeans", "umap")] == [True, True, False]
    assert rows["umap"]["cpu_over_ours"] == 4
    assert rows["ktrr"]["cpu_over_dense_floor"] == 4
    assert "over 1 CPU s" in pages.page({"uos2000": list(rows.values())})
    again = type(store)(tmp_path / "runs.jsonl")
    assert again.get({"data": "uos2000", "method": "umap"}, lambda: {})["ac"] == 98.0
    again.forget(lambda key: key["method"] == "umap")
    assert {row["key"]["method"] for row in type(store)(tmp_path / "runs.jsonl").rows} == set(rows) - {"umap"}
