"""Every benchmark can be imported: names of the package that moved are caught; nothing runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

SCRIPTS = [path.relative_to(BENCHMARKS) for path in (*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("_*/[!_]*.py"))]


@pytest.mark.parametrize("script", sorted(SCRIPTS), ids=str)
def test_benchmark_can_be_imported(script):
    name = ".".join(script.with_suffix("").parts)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.startswith("subspaces"):
            raise
        pytest.skip(f"{error.name} is not installed")
