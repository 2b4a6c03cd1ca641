"""Benchmarks run: every one can be imported, and every function of the asv suite runs once."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

SCRIPTS = [path.relative_to(BENCHMARKS) for path in (*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("_*/[!_]*.py"))]


@pytest.mark.parametrize("script", sorted(SCRIPTS), ids=str)
def test_benchmark_can_be_imported(script):
    """Catch names of the package that moved; nothing runs."""
    name = ".".join(script.with_suffix("").parts)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.startswith("subspaces"):
            raise
        pytest.skip(f"{error.name} is not installed")


def suite_functions():
    """Classes, names and arguments of the suite; all choices but the size as they are."""
    module = importlib.import_module("suite.legs")
    for cls in vars(module).values():
        if isinstance(cls, type) and cls.__module__ == "suite.legs" and not cls.__name__.startswith("_"):
            for choices in itertools.product([60], *cls.params[1:]):
                for name in dir(cls):
                    if name.startswith("time_"):
                        yield pytest.param(cls, name, choices, id=f"{cls.__name__}.{name}-{choices[1:]}")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("cls", "name", "choices"), list(suite_functions()))
def test_suite_runs(cls, name, choices):
    benchmark = cls()
    benchmark.setup(*choices)
    getattr(benchmark, name)(*choices)
