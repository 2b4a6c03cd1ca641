"""What importing costs, and that the promise of the base class stands there literally."""

from __future__ import annotations

import inspect
import subprocess
import sys

import subspaces
from subspaces.estimators.base import SubspaceClusterer


def loaded_modules(statement):
    code = f"import sys; {statement}; print('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_loads_nothing_heavy():
    modules = loaded_modules("import subspaces; subspaces.KTRR")
    # pandas is not ours to avoid: scikit-learn loads it where it is installed
    assert modules.isdisjoint({"matplotlib", "torch", "dask", "polars", "pyamg", "h5py"})
    assert "numpy" not in loaded_modules("import subspaces")


def test_public_names():
    assert set(subspaces.__all__) <= set(dir(subspaces))
    for name in subspaces.__all__:
        assert getattr(subspaces, name) is not None


def test_the_journey_stands_in_the_base_class():
    line = "partition(embedding(affinity(truncation(representation(kernel(X))))))"
    assert line in inspect.getsource(SubspaceClusterer)
