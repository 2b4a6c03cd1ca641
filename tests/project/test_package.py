"""What importing costs, and that every public name is there."""

from __future__ import annotations

import subprocess
import sys

import subspaces


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
