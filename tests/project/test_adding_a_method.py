"""Adding a method takes six files, and one's own none: what CONTRIBUTING.md and the guide say about it is so."""

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
from subspaces import BDR, registry
from subspaces.engine.run import run

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "CONTRIBUTING.md"
OWN = ROOT / "docs" / "guide" / "own.md"


def section() -> str:
    if not GUIDE.exists():
        pytest.skip("CONTRIBUTING.md is not part of this installation")
    return GUIDE.read_text(encoding="utf-8").partition("## Adding a method")[2].partition("\n## ")[0]


def tracked(*folders: str) -> list[str]:
    """Files that git knows and text that mentions the method."""
    try:
        found = subprocess.run(
            ["git", "grep", "--untracked", "-IliwE", "bdr|block_diagonal", "--", *folders],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except OSError:
        pytest.skip("git is not here to ask")
    if found.returncode > 1:
        pytest.skip("not a checkout of git")
    return found.stdout.splitlines()


def test_files_are_those_that_the_guide_names():
    named = re.findall(r"^\| `((?:src|docs)/[^`]+)` \|", section(), flags=re.M)
    assert len(named) <= 6
    assert sorted(named) == sorted(tracked("src", "docs"))


def test_imports_of_type_checkers_are_those_of_the_registry():
    text = public_names.FILE.read_text(encoding="utf-8")
    assert text == public_names.written(text), "run: python tests/project/public_names.py"
    assert set(re.findall(r" as (\w+)$", public_names.wanted(), flags=re.M)) == {*subspaces.__all__} - {"__version__"}


def test_command_line_knows_it():
    shown = run_command("methods", "bdr")
    assert "Block diagonal representation (BDR)" in shown.output


def test_own_method_of_the_guide(monkeypatch):
    code = re.findall(r"^```python\n(.*?)^```", OWN.read_text(encoding="utf-8"), flags=re.M | re.S)[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    module = type(sys)("own_method")
    monkeypatch.setitem(sys.modules, "own_method", module)
    exec(compile(code, str(OWN), "exec"), vars(module))
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


class _Counting(dict):
    """A cache of a run that keeps the coefficients."""

    def keeps(self, stage):
        return stage == "coefficients"

    find, put = dict.get, dict.__setitem__


def test_number_of_blocks_tells_coefficients_apart(seed):
    X = np.random.default_rng(seed).normal(size=(30, 4))
    cache = _Counting()
    for model in (BDR(2), BDR(3), BDR(3, n_blocks=2), BDR(3, n_init=5)):
        run(model.plan(X), X, cache=cache)
    assert len(cache) == 2, "the first and the third share theirs, the second and the fourth too"


def test_number_of_blocks_is_asked_for():
    with pytest.raises(ValueError, match="BDR needs n_clusters or n_blocks"):
        BDR(None, assign_labels="modularity").fit(np.eye(5))
    assert BDR(None, assign_labels="modularity", n_blocks=2).fit(np.kron(np.eye(2), np.ones((4, 1)))).n_clusters_ == 2


def test_both_variants(seed):
    X = np.kron(np.eye(3), np.random.default_rng(seed).normal(size=(15, 2)))
    for variant in ("Z", "B"):
        assert adjusted_rand_score(np.repeat(np.arange(3), 15), BDR(3, variant=variant).fit(X).labels_) == 1


def test_it_is_in_the_registry_once():
    assert registry.load("bdr") is BDR
    assert registry.entry_of("bdr").kind == "graph"
