"""A class and points of the user in an experiment: one more row, other data, and no file of the experiment touched."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from reproduction import choice, own, schedule
from reproduction.__main__ import main
from reproduction.experiment import Settings, adapted, origin, run_experiment
from reproduction.statistics import read_paper
from subspaces.datasets import make_subspaces
from subspaces.datasets.named import NAMED
from subspaces.io import FileError

CODE = """
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

class Halves(ClusterMixin, BaseEstimator):
    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters
    def fit(self, X, y=None):
        self.labels_ = np.arange(len(X)) * self.n_clusters // len(X)
        return self

class Plain:
    def __init__(self, **keywords):
        self.keywords = keywords
    def fit_predict(self, X):
        return np.random.default_rng(self.keywords["random_state"]).integers(self.keywords["n_clusters"], size=len(X))

class Nothing:
    pass

number = 3
"""
ROWS = """
[trr]
label = "TRR"
method = "trr"
[constant]
label = "constant label"
method = "constant"
"""
EXPERIMENT = """
title = "Small"
paper = "Table 3"
style = "table"
metrics = ["AC", "NMI", "t2"]
[[panels]]
name = "ExYaleB"
data = { name = "curves" }
rows = ["trr", "constant"]
[protocol]
cuts = [{ name = "k-means", restarts = 3, runs = 2 }]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a module of the user, points and a small experiment."""
    (tmp_path / "my_own_module.py").write_text(CODE)
    X, y = make_subspaces(3, 2, 12, 20, random_state=0)
    np.savez(tmp_path / "my.npz", X=X, y=y)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "small.toml").write_text(EXPERIMENT)
    (tmp_path / "parameters.toml").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_own_module", raising=False)
    yield tmp_path
    sys.modules.pop("my_own_module", None)


def settings_of(place: Path, **more) -> Settings:
    folders = {"output": place / "out", "cache": place / "cells", "experiments": place / "experiments"}
    return Settings(**folders, parameters=place / "parameters.toml", **more)


def test_one_more_row_on_own_points(place):
    settings = settings_of(place, classes=("my_own_module:Halves",), points=place / "my.npz")
    found = run_experiment("small", settings)
    assert not found.outcome.errors
    rows = {record.row: record for record in found.records if record.metric == "AC"}
    assert list(rows) == ["Halves", "TRR", "constant label"]
    assert rows["Halves"].mean == 100  # the points come class by class
    assert rows["constant label"].mean == pytest.approx(100 / 3, abs=1e-3)
    assert {record.panel for record in found.records} == {"my.npz"}
    assert {file.name for file in found.files} == {f"small-my-own.{suffix}" for suffix in ("csv", "md", "tex")}
    command = "python -m reproduction small --data my.npz --label y --with my_own_module:Halves"
    assert f"`{command}`" in origin(found.experiment)
    again = run_experiment("small", settings)
    assert (again.outcome.n_computed, again.outcome.n_found) == (0, 3)


def test_a_changed_class_is_run_anew(place):
    before = own.own_row("my_own_module:Halves")["source"]
    module = place / "my_own_module.py"
    module.write_text(module.read_text() + "\n# another line\n")
    assert own.own_row("my_own_module:Halves")["source"] != before


def test_changed_points_are_other_points(place):
    settings = settings_of(place, points=place / "my.npz")
    before = adapted("small", settings)[0].panels[0]["data"]
    X, y = make_subspaces(3, 2, 12, 20, random_state=1)
    np.savez(place / "my.npz", X=X, y=y)
    after = adapted("small", settings)[0].panels[0]["data"]
    assert before["sha256"] != after["sha256"]
    assert before["name"] == after["name"] == "file my"


def test_the_paper_stays_beside_its_table(place):
    experiment, rows = adapted("table3", Settings(place, place, classes=("my_own_module:Halves",)))
    assert experiment.name == "table3-own"
    assert read_paper(experiment.name.removesuffix(schedule.OWN))
    planned = schedule.plan(experiment, rows)
    assert planned[0].row == "Halves"
    assert planned[0].short == ""
    own_cell, next_cell = planned[0].cell, next(item.cell for item in planned if item.row == "KTRR")
    assert (own_cell["kind"], next_cell["kind"]) == ("fit", "cut")
    assert "source" not in next_cell
    quick, _ = adapted("table3", Settings(place, place, classes=("my_own_module:Halves",), quick=True))
    assert quick.name == "table3-own-quick"
    assert quick.is_quick


def test_own_class_gets_what_it_can_take(place):
    halves = own.make_model("my_own_module:Halves", {}, n_clusters=4, seed=9)
    assert halves.n_clusters == 4
    assert own.make_model("my_own_module:Plain", {}, n_clusters=4, seed=9).keywords == {
        "n_clusters": 4,
        "random_state": 9,
    }
    assert own.make_model("trr", {"reg": 0.5}, n_clusters=4, seed=9).random_state == 9


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my_own_module:Nothing", "'my_own_module:Nothing' must have fit_predict"),
        ("my_own_module:number", "must be a class; got int"),
        ("my_own_module:Gone", "cannot be loaded"),
        ("no_such_module:Class", "cannot be loaded"),
        (":Class", "cannot be loaded"),
    ],
)
def test_classes_that_are_refused(place, name, words):
    with pytest.raises(ValueError, match=words):
        own.load_method(name)


def test_points_and_experiments_that_are_refused(place):
    np.savez(place / "one.npz", X=np.eye(3), y=[1, 1, 1])
    with pytest.raises(FileError, match="must name classes, two or more"):
        own.read_points(place / "one.npz", "y")
    with pytest.raises(ValueError, match="'fig4' takes no further row"):
        adapted("fig4", Settings(place, place, classes=("my_own_module:Halves",)))
    with pytest.raises(ValueError, match="'fig4' cannot be run on other data"):
        adapted("fig4", Settings(place, place, points=place / "my.npz"))


def test_an_experiment_needs_no_download():
    experiment = schedule.load_experiment("digits")
    assert not any(NAMED[name].needs_files for name in schedule.data_needed(experiment))
    assert not experiment.paper


def test_command(place, capsys):
    assert main(["small", "--with", "my_own_module:Plain", "--data", "my.npz", "--home", ".", "-o", "out"]) == 0
    assert "3 cells computed" in capsys.readouterr().out
    assert "| Plain |" in (place / "out" / "small-my-own.md").read_text(encoding="utf-8")
    assert main(["--with", "my_own_module:Nothing"]) == 1
    assert "must have fit_predict" in capsys.readouterr().err
    assert main(["--data", "my.npz", "--label", "z"]) == 2
    assert "not in the file" in capsys.readouterr().err


def test_a_grid_into_a_folder_chooses_for_that_folder_alone(tmp_path):
    setting = {"graph": "column", "reg": 0.25, "affine": False}
    earlier = {"ktrr": {"usps": {"tried": 12, "on": "draw 100", "accuracy": 80.0, "setting": setting}}}
    choice.write_chosen(tmp_path / schedule.CHOSEN, earlier, [], [])  # a grid that is not whole
    assert choice.read_chosen(tmp_path / schedule.CHOSEN) == {"ktrr": {"usps": {"tried": 0, "setting": setting}}}
    _, rows = adapted("table5", Settings(tmp_path, tmp_path))
    assert rows["ktrr"]["chosen"]["usps"] == setting
    assert schedule.load_parameters()["ktrr"]["chosen"]["usps"] != setting
