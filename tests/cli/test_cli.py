"""The command line: what a user types, sees and gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import subspaces
from cli_data import COLUMNS, environment, fails, found, run, told
from method_data import METHODS
from subspaces import SSC, SubspaceClustering, registry
from subspaces.app.cli import _options

IRIS = load_iris().data[::3]


# ------------------------------------------------------------------ help and version


@pytest.mark.parametrize("arguments", [[], ["--version"], ["cluster", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    program = (
        "import sys; sys.argv = ['subspaces', *sys.argv[1:]]\n"
        "from subspaces.app.cli.main import app\n"
        "try: app()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'h5py', 'matplotlib', 'psutil'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert result.returncode == 0, result.stderr
    assert ("subspaces " + subspaces.__version__ in result.stdout) or ("Usage" in result.stdout)


@pytest.mark.parametrize("rich", ["1", "0"])
def test_help_shows_brackets_as_they_are(rich):
    command = [sys.executable, "-m", "subspaces.app.cli", "cluster", "--help"]
    shown = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment(TYPER_USE_RICH=rich, COLUMNS="200")
    )
    words = " ".join(shown.stdout.replace("│", " ").split())
    assert 'pip install "subspaces[images]"' in words
    assert 'pip install "subspaces[text]"' in words
    assert "\\[" not in words


def test_options_offer_what_the_library_has():
    from subspaces.kernels.scaling import SCALINGS

    assert set(get_args(_options.Scaling)) == {"auto", "none", *SCALINGS}


# ------------------------------------------------------------------ cluster


def test_cluster_writes_labels_and_says_so(table, tmp_path):
    result = run("cluster", table, "-k", 3, *COLUMNS, "-o", tmp_path / "labels.csv")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    written = pd.read_csv(tmp_path / "labels.csv")
    added = ["cluster", "confidence", "second_cluster", "doubtful", "margin", "fits_nowhere"]
    assert list(written) == ["id", *pd.read_csv(table).columns, *added]
    assert written["id"].tolist() == [f"p{i}" for i in range(90)]
    frame = pd.read_csv(table)
    expected = SubspaceClustering(3).fit_predict(frame.drop(columns=["name", "species"]).to_numpy())
    assert written["cluster"].tolist() == expected.tolist()
    assert "90 points, 9 features" in result.stdout
    assert "3 clusters; points in each cluster: " in result.stdout
    assert "constant label" in result.stdout
    assert f"labels written to {tmp_path / 'labels.csv'}" in result.stdout


def test_json_is_one_document(table):
    result = run("cluster", table, "-k", 3, *COLUMNS, "--json", "--seed", 4, "--set", "reg=0.5")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["version"] == subspaces.__version__
    assert document["source"] == str(table)
    assert (document["n_samples"], document["n_features"], document["n_clusters"]) == (90, 9, 3)
    assert len(document["cluster"]) == len(document["id"]) == 90
    assert document["parameters"] == SubspaceClustering(3, random_state=4, reg=0.5).get_params()
    assert {"kernel", "n_nonzero", "scaling", "assign_labels"} <= set(document["chosen"])
    assert document["chosen"]["kernel"] in document["reason"]
    assert document["timings"]["selection"] > 0
    assert 0 <= document["scores"]["accuracy"] <= 1


def recorded(cls, monkeypatch):
    """The parameters of every fit of a class from now on."""
    seen, original = [], cls.fit
    monkeypatch.setattr(cls, "fit", lambda self, X, y=None: seen.append(self.get_params()) or original(self, X))
    return seen


@pytest.mark.parametrize("name", ["ktrr", "trr", "ssc", "sc", "kasp"])
def test_a_method_is_the_class_of_that_name(name, tmp_path, monkeypatch):
    """The parameters, and so the labels, are those of the class; nothing is chosen or scaled unasked."""
    cls = registry.load(name)
    pd.DataFrame(IRIS, columns=list("abcd")).to_csv(tmp_path / "iris.csv", index=False)
    seen = recorded(cls, monkeypatch)
    document = found("cluster", tmp_path / "iris.csv", "-k", 3, "--method", name)
    assert seen == [cls(3).get_params()]
    assert document["cluster"] == cls(3).fit(IRIS).labels_.tolist()


def test_nothing_given_is_the_front_door(table):
    """The same labels as in Python, to the last one; what is given stays."""
    X = np.loadtxt(table, delimiter=",", skiprows=1, usecols=range(1, 10))
    document = found("cluster", table, "-k", 3, *COLUMNS)
    assert document["cluster"] == SubspaceClustering(3).fit(X).labels_.tolist()
    assert document["winner"] in ("KTRR", "SC")
    fast = found("cluster", table, *COLUMNS, "--effort", "fast")
    assert fast["cluster"] == SubspaceClustering(effort="fast").fit(X).labels_.tolist()
    given = found("cluster", table, *COLUMNS, "--set", "reg=1", "--effort", "fast")
    assert given["cluster"] == SubspaceClustering(effort="fast", reg=1).fit(X).labels_.tolist()


def test_any_parameter_can_be_set(table, monkeypatch):
    seen = recorded(SSC, monkeypatch)
    assigned = ("error_weight=50", "affine=True", "tol=1e-3", "graph=column", "graph_params={'n_nonzero': 4}")
    options = [word for text in assigned for word in ("--set", text)]
    more = ("--scaling", "none", "--seed", 2)
    document = found("cluster", table, "-k", 3, *COLUMNS, "--method", "ssc", *options, *more)
    values = {"error_weight": 50, "affine": True, "tol": 1e-3, "graph": "column", "graph_params": {"n_nonzero": 4}}
    assert seen == [SSC(3, **values, scaling=None, random_state=2).get_params()]
    assert document["parameters"]["graph_params"] == {"n_nonzero": 4}


def test_the_choice_is_explained(table):
    shown = told("cluster", table, *COLUMNS, "-k", "auto", "--set", "kernel=auto", "--set", "reg=0.5")
    line = next(line for line in shown.splitlines() if line.startswith("how this was chosen: "))
    assert "kernel" in line
    assert "reg 0.5" in line
    assert " auto" not in shown  # the settled values are shown, not the word


def test_number_of_clusters_is_found_if_not_given(table):
    document = found("cluster", table, *COLUMNS)
    assert document["parameters"]["n_clusters"] is None
    assert document["n_clusters"] == document["chosen"]["n_clusters"] == len(set(document["cluster"]))
    low, high = document["n_clusters_range"]
    assert low <= document["n_clusters"] <= high
    other = found("cluster", table, *COLUMNS, "-k", "auto", "--method", "lsr1")
    assert (other["parameters"]["n_clusters"], other["parameters"]["assign_labels"]) == (None, "modularity")
    shown = told("cluster", table, *COLUMNS)
    assert "the number was found; -k sets it" in shown
    assert "-o labels.csv saves the labels" in shown


def test_notes_reach_the_reader(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", X=rng.integers(100, size=(30, 5)), y=np.arange(30) % 2)
    shown = told("cluster", tmp_path / "x.npz", "-k", 2)
    assert "note: the file also holds 'y', one value per point: --label y scores it" in shown
    assert "constant label" not in shown


def test_precomputed_kernel(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.save(tmp_path / "k.npy", X @ X.T)
    told("cluster", tmp_path / "k.npy", "-k", 2, "--set", "kernel=precomputed")
    np.save(tmp_path / "x.npy", X)
    fails("cluster", tmp_path / "x.npy", "-k", 2, "--set", "kernel=precomputed", code=1)


def test_threads_are_limited(table, monkeypatch):
    from threadpoolctl import threadpool_info

    seen, original = [], SubspaceClustering.fit

    def fit(self, X, y=None):
        seen.append({pool["num_threads"] for pool in threadpool_info()} | {int(os.environ["OMP_NUM_THREADS"])})
        return original(self, X)

    monkeypatch.setattr(SubspaceClustering, "fit", fit)
    before = dict(os.environ)
    told("cluster", table, "-k", 3, *COLUMNS, "--threads", 1)
    assert seen == [{1}]
    assert dict(os.environ) == before


# ------------------------------------------------------------------ demo and methods


def test_demo_prints_a_table_and_writes_files(tmp_path):
    folder = tmp_path / "new" / "folder"
    result = run("demo", "--output", folder)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert "\nKTRR, cut by modularity, puts 94 % of the images with their own digit; k-means " in result.stdout
    names = ["k-means", "spectral clustering (10 neighbours)", "KTRR, cut by k-means", "KTRR, cut by modularity"]
    assert all(f"\n{name} " in result.stdout for name in (*names, "constant label"))
    labels = pd.read_csv(folder / "labels.csv")
    assert list(labels) == ["row", "digit", *names]
    assert len(labels) == 1797
    assert (folder / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(file.name for file in folder.iterdir()) == ["digits.png", "labels.csv"]
    assert "the folder cannot be made" in fails("demo", "-o", folder / "labels.csv")


def test_methods_lists_every_estimator():
    shown = told("methods")
    for name, cls in METHODS.items():
        assert f"{name}: " in shown
        assert cls._reference in shown
        assert cls._cost in shown
    assert "Parameters" in told("methods", "ssc")
    assert "'nope' is not one of" in fails("methods", "nope")
