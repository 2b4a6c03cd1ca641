"""``--features``: what images are compared by, on the command line."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from subspaces.app.cli._features import Features
from subspaces.app.cli.main import app
from subspaces.app.features import as_extractor, networks
from subspaces.app.files import read_table

pytest.importorskip("PIL")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    from PIL import Image

    folder = tmp_path / "photos"
    folder.mkdir()
    random = np.random.default_rng(0)
    for i in range(24):
        values = random.integers(0, 60, (16, 16))
        values[:, 8 * (i % 2) : 8 * (i % 2) + 8] += 180
        Image.fromarray(values.astype(np.uint8)).save(folder / f"{i}.png")
    (folder / "broken.png").write_bytes(b"no picture")
    return folder


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_without_the_extra_pixels_are_compared_and_it_is_said(photos, monkeypatch):
    monkeypatch.setattr("subspaces.app.features.extractor.find_spec", lambda name: None)
    out = run("cluster", photos, "-k", 2, "--effort", "fast")
    assert 'aligned images only (faces, digits, scans); pip install "subspaces[images]"' in out
    assert "aligned" not in run("cluster", photos, "-k", 2, "--effort", "fast", "--features", "pixels")
    assert "aligned" not in run("cluster", photos, "-k", 2, "--effort", "fast", "--set", "image_size=8")
    error = run("cluster", photos, "--features", "efficientnet", code=2)
    assert 'pip install "subspaces[images]"' in error


def test_vectors_of_a_file_are_clustered_shown_and_predicted(photos, tmp_path):
    pytest.importorskip("skops")
    pytest.importorskip("matplotlib")
    rows = np.random.default_rng(0).normal(0, 0.1, (24, 3)) + np.eye(3)[np.arange(24) % 3]
    np.save(tmp_path / "v.npy", rows)
    model, page = tmp_path / "m.skops", tmp_path / "r.html"
    given = ("-k", 3, "--effort", "fast", "--features", tmp_path / "v.npy")
    found = json.loads(run("cluster", photos, *given, "--json", "--save", model, "--report", page))
    assert found["n_features"] == 3
    assert len(found["skipped"]) == 1
    assert f"each of 24 images became 3 numbers of a file ({tmp_path / 'v.npy'})" in found["notes"][0]
    content = page.read_text()
    assert "data:image/" in content
    assert "featured(read_table(" in content
    np.save(tmp_path / "new.npy", rows)
    out = run("predict", model, photos, "--features", tmp_path / "new.npy", "--json")
    np.testing.assert_array_equal(json.loads(out)["cluster"], found["cluster"])
    assert "name the file with those of the new images" in run("predict", model, photos, code=2)
    np.save(tmp_path / "few.npy", rows[:4])
    error = run("predict", model, photos, "--features", tmp_path / "few.npy", code=2)
    assert "holds 4 vectors, and there are 24 items" in error


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--features", "vgg"), "features must be one of pixels, efficientnet, timm:NAME"),
        (("--features", "v.npy", "--set", "color=true"), "is for --features pixels"),
        (("--features", "v.npy", "--motion"), "has no meaning with --motion"),
    ],
)
def test_what_has_no_meaning_is_refused(photos, words, told):
    assert told in run("cluster", photos, *words, code=2)


def test_tables_have_no_pictures(tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(20, 3)))
    assert "is for images" in run("cluster", tmp_path / "t.npy", "--features", "pixels", code=2)


def test_a_model_of_a_network_uses_it_again(photos, tmp_path):
    pytest.importorskip("skops")
    if not networks.is_installed():
        pytest.skip('needs pip install "subspaces[images]"')
    model = tmp_path / "m.skops"
    asked = ("--features", "efficientnet", "--save", model, "-o", tmp_path / "l.npy")
    out = run("cluster", photos, "-k", 2, "--effort", "fast", *asked)
    assert "each of 24 images became 1280 numbers of a network (EfficientNet-Lite0)" in out
    labels = json.loads(run("predict", model, photos, "--json"))["cluster"]
    np.testing.assert_array_equal(labels, np.load(tmp_path / "l.npy"))
    error = run("predict", model, photos, "--features", tmp_path / "v.npy", code=2)
    assert "the model has its own (efficientnet); leave it out" in error


@pytest.mark.parametrize(
    ("pixels", "network", "taken"), [(0.9, 0.7, "pixels"), (0.71, 0.7, "network"), (0.5, 0.9, "network")]
)
def test_pixels_are_taken_where_settings_agree_clearly_more_on_them(photos, pixels, network, taken):
    read = read_table(photos)
    made = replace(
        read, X=np.ones((len(read.X), 3)), pixels=read.X, features=as_extractor("efficientnet"), notes=("made",)
    )

    def choose(X):
        agreement = pixels if X is read.X else network
        return None, SimpleNamespace(labels=np.array([0, 1]), winner=SimpleNamespace(agreement=agreement))

    found, chosen = Features().better(read, made, choose)
    assert chosen[1].winner.agreement == (pixels if taken == "pixels" else network)  # nobody searches again
    assert (found.X is read.X) == (taken == "pixels")
    assert any(f"agree by {pixels:.2f} of 1 on the pixels and by {network:.2f}" in note for note in found.notes)
    assert Features("efficientnet").better(read, made, choose) == (made, None)  # asked for, so nothing is tried


def test_one_cluster_is_no_agreement(photos):
    read = read_table(photos)
    made = replace(
        read, X=np.ones((len(read.X), 3)), pixels=read.X, features=as_extractor("efficientnet"), notes=("made",)
    )

    def choose(X):
        labels = np.array([0, 0 if X is read.X else 1])
        return None, SimpleNamespace(labels=labels, winner=SimpleNamespace(agreement=1.0 if X is read.X else 0.6))

    assert Features().better(read, made, choose)[0].X is made.X
