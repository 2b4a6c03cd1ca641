"""``subspaces cluster --motion``: from a file of tracks to labels and a picture."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from cli_data import fails, found, told
from subspaces import SubspaceClustering
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


@pytest.mark.parametrize("method", ["ktrr", "trr", "lsr1", "lsr2", "ssc", "kssc", "lrr2", "ektrr"])
def test_labels(tracks, method, tmp_path):
    document = found("cluster", tracks, "--motion", "-k", 2, "--method", method)
    assert accuracy(np.repeat([0, 1], 40), document["cluster"]) > (0.95 if method != "lrr2" else 0.5)
    assert document["parameters"].get("affine", True) is True
    assert any("were missing and put in by a matrix of rank" in note for note in document["notes"])


def test_what_is_given_stays_and_is_of_ktrr(tracks):
    document = found("cluster", tracks, "--motion", "-k", 2, "--set", "reg=0.1", "--set", "affine=false")
    assert document["parameters"]["reg"] == 0.1
    assert document["parameters"]["affine"] is False
    for given in (("--scaling", "unit"), ("--set", "assign_labels=kmeans")):
        assert found("cluster", tracks, "--motion", "-k", 2, *given)["method"] == "ktrr"


def test_nothing_set_is_the_front_door(tracks):
    document = found("cluster", tracks, "--motion", "-k", 2)
    assert document["method"] == "auto"
    assert accuracy(np.repeat([0, 1], 40), document["cluster"]) > 0.95
    assert document["cluster"] == SubspaceClustering(2).fit_predict(load_motion(tracks).data).tolist()
    assert found("cluster", tracks, "--motion")["method"] == "auto"  # the number unknown


def test_tracks_that_do_not_look_like_it(tmp_path):
    """Four frames show too little: the setting for tracks is taken because the user says that they are."""
    np.save(tmp_path / "t.npy", make_motions(2, 40, 4, random_state=0)[0])
    document = found("cluster", tmp_path / "t.npy", "--motion", "-k", 2)
    assert (document["method"], document["parameters"]["graph"]) == ("ktrr", "dscnet")


def test_overlay(tracks, tmp_path):
    target = tmp_path / "o.png"
    drawing = ("cluster", tracks, "--motion", "-k", 2, "--report", target)
    assert f"tracks drawn in {target}" in told(*drawing, "-o", tmp_path / "l.csv")
    with Image.open(target) as picture:
        colors = {tuple(c) for c in np.asarray(picture.convert("RGB")).reshape(-1, 3)}
        assert len(colors) > 10
    assert len((tmp_path / "l.csv").read_text().splitlines()) == 81
    assert "the file exists" in fails(*drawing)


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
    assert message in fails("cluster", tracks, "-k", 2, *arguments)
    assert not list(tmp_path.glob("o.*"))
