"""Adding a method takes five files, one's own none, and everything else follows from the registry."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import public_names
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import subspaces
from cli_data import run as run_command
from subspaces import deep, registry
from subspaces.estimators.base import SubspaceClusterer

ROOT = Path(__file__).resolve().parents[2]
WORD = re.compile(r"\b(bdr|block_diagonal)\b", flags=re.I)
MEASURED = re.compile(r"^<!-- measured: .*?^<!-- end -->", flags=re.M | re.S)
WRITTEN_BY_SCRIPTS = {"src/subspaces/__init__.py"}


def test_files_are_those_that_the_guide_names():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Adding a method")[2]
    named = re.findall(r"^\| `((?:src|docs)/[^`]+)` \|", guide, flags=re.M)
    files = [path for end in ("py", "bib") for path in (ROOT / "src").rglob(f"*.{end}")]
    files += [path for end in ("md", "rst", "py") for path in (ROOT / "docs").rglob(f"*.{end}")]
    if not (ROOT / "src").is_dir():
        pytest.skip("no source beside the tests")
    mention = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if "generated" not in path.parts and WORD.search(MEASURED.sub("", path.read_text(encoding="utf-8")))
    }
    assert len(named) <= 5
    assert mention - WRITTEN_BY_SCRIPTS == set(named)


def test_imports_of_type_checkers_are_those_of_the_registry():
    text = public_names.FILE.read_text(encoding="utf-8")
    assert text == public_names.written(text), "run: python tests/project/public_names.py"
    assert set(re.findall(r" as (\w+)$", public_names.wanted(), flags=re.M)) == {*subspaces.__all__} - {"__version__"}


def test_public_names_come_from_the_registry():
    classes = [registry.entry_of(name).class_name for name in registry.names(*registry.SHALLOW)]
    assert subspaces.__all__[: len(classes)] == classes
    assert deep.__all__ == [registry.entry_of(name).class_name for name in registry.names("deep")]
    assert len(set(registry.names())) == len(registry.METHODS)
    assert all(getattr(subspaces, name) is not None for name in subspaces.__all__)
    for name in registry.names(*registry.SHALLOW):
        cls = registry.load(name)
        assert issubclass(cls, SubspaceClusterer)
        assert getattr(subspaces, cls.__name__) is cls
        assert cls.__name__ in run_command("methods", name).output
    with pytest.raises(AttributeError, match="has no attribute 'KTR'"):
        subspaces.KTR  # noqa: B018


def test_registry_is_read_without_numpy():
    code = "import sys, subspaces.registry; sys.exit('numpy' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_own_method_of_the_manual(monkeypatch):
    page = ROOT / "docs" / "own.md"
    code = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    module = type(sys)("own_method")
    monkeypatch.setitem(sys.modules, "own_method", module)
    exec(compile(code, str(page), "exec"), vars(module))
    model, X, truth = module.model, module.X, np.repeat(np.arange(3), 40)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert_array_equal(module.labels_of_new_points, model.labels_[::7])
    copy = clone(model).set_params(power=2.0, assign_labels="modularity")
    assert copy.get_params() == {**model.get_params(), "power": 2.0, "assign_labels": "modularity"}
    assert not hasattr(copy, "labels_")
    assert len(copy.fit_predict(X)) == len(X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)
    with pytest.raises(ValueError, match="power"):
        clone(model).set_params(power="much").fit(X)
