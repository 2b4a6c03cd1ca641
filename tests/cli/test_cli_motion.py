"""``subspaces cluster --motion``: from a file of tracks to labels and a picture."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from typer.testing import CliRunner

from subspaces import SubspaceClustering
from subspaces.app.cli.main import app
from subspaces.datasets import load_motion, make_motions
from subspaces.metrics import accuracy


@pytest.fixture
def tracks(tmp_path):
    X, y = make_motions(2, 40, 12, missing=0.1, random_state=0)
    film = X.reshape(80, 12, 2).transpose(2, 0, 1)
    film = np.nan_to_num(np.concatenate([film, np.ones((1, 80, 12))]))
    visible = (~np.isnan(X[:, ::2])).astype(float)
    savemat(tmp_path / "t.mat", {"x": film, "s": y + 1.0, "m": visible})
    return tmp_path / "t.mat"


def run(*arguments):
    return CliRunner().invoke(app, ["cluster", *map(str, arguments)])


@pytest.mark.parametrize("method", ["ktrr", "trr", "lsr1", "lsr2", "ssc", "kssc", "lrr2", "ektrr"])
def test_labels(tracks, method, tmp_path):
    found = run(tracks, "--motion", "-k", 2, "--method", method, "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert accuracy(np.repeat([0, 1], 40), document["cluster"]) > (0.95 if method != "lrr2" else 0.5)
    assert document["parameters"].get("affine", True) is True
    assert any("were missing and put in by a matrix of rank" in note for note in document["notes"])


def test_what_is_given_stays(tracks):
    document = json.loads(
        run(tracks, "--motion", "-k", 2, "--set", "reg=0.1", "--set", "affine=false", "--json").stdout
    )
    assert document["parameters"]["reg"] == 0.1
    assert document["parameters"]["affine"] is False


def test_nothing_set_is_the_front_door(tracks):
    document = json.loads(run(tracks, "--motion", "-k", 2, "--json").stdout)
    assert document["method"] == "auto"
    assert accuracy(np.repeat([0, 1], 40), document["cluster"]) > 0.95
    found = load_motion(tracks)
    assert document["cluster"] == SubspaceClustering(2).fit_predict(found.data).tolist()
    assert json.loads(run(tracks, "--motion", "--json").stdout)["method"] == "auto"  # the number unknown


@pytest.mark.parametrize("given", [["--scaling", "unit"], ["--set", "assign_labels=kmeans"]])
def test_something_set_is_ktrr(tracks, given):
    assert json.loads(run(tracks, "--motion", "-k", 2, *given, "--json").stdout)["method"] == "ktrr"


def test_tracks_that_do_not_look_like_it(tmp_path):
    """Four frames show too little: the setting for tracks is taken because the user says that they are."""
    np.save(tmp_path / "t.npy", make_motions(2, 40, 4, random_state=0)[0])
    document = json.loads(run(tmp_path / "t.npy", "--motion", "-k", 2, "--json").stdout)
    assert (document["method"], document["parameters"]["graph"]) == ("ktrr", "dscnet")


@pytest.mark.parametrize(("suffix", "n_frames"), [(".png", 1), (".gif", 12)])
def test_overlay(tracks, suffix, n_frames, tmp_path):
    target = tmp_path / f"o{suffix}"
    found = run(tracks, "--motion", "-k", 2, "--report", target, "-o", tmp_path / "l.csv")
    assert found.exit_code == 0, found.output
    assert f"tracks drawn in {target}" in " ".join(found.output.split())
    with Image.open(target) as picture:
        assert getattr(picture, "n_frames", 1) == n_frames
        colors = {tuple(c) for c in np.asarray(picture.convert("RGB")).reshape(-1, 3)}
        assert len(colors) > 10
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 81
    again = run(tracks, "--motion", "-k", 2, "--report", target)
    assert again.exit_code != 0
    assert "the file exists" in " ".join(again.output.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--report", "o.png"], "add --motion"),
        (["--motion", "--report", "o.pdf"], "report cannot be written to the suffix"),
        (["--motion", "--missing", "drop"], "has no meaning for tracks"),
        (["--motion", "--set", "color=true"], "has no meaning for tracks"),
    ],
)
def test_refusals(tracks, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(tracks, "-k", 2, *arguments)
    assert found.exit_code != 0
    text = " ".join(found.output.replace("│", " ").split())
    assert message in text or message in str(found.exception)
    assert not list(tmp_path.glob("o.*"))
