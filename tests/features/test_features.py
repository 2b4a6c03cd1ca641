"""From a spec to vectors, through the cache; and the front door that uses them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from subspaces import SubspaceClustering
from subspaces.app.features import as_extractor, featured, fit_extractor, vectors_of
from subspaces.app.features import cache as caching
from subspaces.app.features.extractor import Extractor
from subspaces.app.features.pixels import Pixels, pictures
from subspaces.app.files import FileError, load_model, read_table, save_model
from subspaces.app.files.models import Reading
from subspaces.utils.progress import progress_to

CALLS = []


@dataclass(frozen=True)
class Mean(Extractor):
    """Mean and spread of an image, and a note of what was computed."""

    identity = "mean"
    name = "mean"

    def items(self, X, image_shape=None):
        return pictures(X, image_shape)

    def content(self, item):
        return np.ascontiguousarray(item).tobytes()

    def compute(self, items, step):
        CALLS.append(len(items))
        step(len(items))
        return np.array([[item.mean(), item.std(), 1] for item in items], dtype=np.float32)


@pytest.fixture
def images():
    CALLS.clear()
    return np.random.default_rng(0).random((20, 6, 5)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    for i in range(24):
        values = random.integers(0, 60, (40, 50, 3))
        values[:, 25 * (i % 2) : 25 * (i % 2) + 25, i % 2] += 180
        Image.fromarray(values.astype(np.uint8)).save(tmp_path / f"{i}.png")
    return tmp_path


def test_a_spec_names_its_extractor():
    for spec in ("pixels", "efficientnet", "vectors.npy"):
        assert as_extractor(spec).name == spec
        assert as_extractor(as_extractor(spec)) == as_extractor(spec)
    assert as_extractor(len).name == "len"


@pytest.mark.parametrize("spec", ["vgg", "pixels:3"])
def test_an_unknown_spec_is_refused(spec):
    with pytest.raises(ValueError, match="features must be one of pixels, efficientnet, tfidf"):
        as_extractor(spec)


def test_vectors_are_made_in_chunks_and_counted(images, monkeypatch):
    monkeypatch.setattr("subspaces.app.features.extractor.CHUNK", 8)
    told = []
    with progress_to(lambda *now: told.append(now)):
        vectors_of(images, Mean())
    assert [now for now in told if now[0] == "Making vectors"] == [("Making vectors", n, 20) for n in (0, 8, 16, 20)]
    assert CALLS == [8, 8, 4]


def test_every_item_is_computed_once(images):
    twice = np.concatenate([images, images[:5]])
    first = vectors_of(twice, Mean())
    assert CALLS == [20]
    np.testing.assert_array_equal(first[20:], first[:5])
    np.testing.assert_array_equal(vectors_of(images[::-1], Mean()), first[19::-1])
    assert CALLS == [20]
    vectors_of(np.concatenate([images, images[:1] / 2]), Mean())
    assert CALLS == [20, 1]


def test_the_cache_can_be_switched_off(images, monkeypatch, own_cache):
    monkeypatch.setenv("SUBSPACES_CACHE", "off")
    vectors_of(images, Mean())
    vectors_of(images, Mean())
    assert CALLS == [20, 20]
    assert not own_cache.exists()


def test_damaged_vectors_are_computed_again(images, own_cache):
    right = vectors_of(images, Mean())
    first, second, third, *_ = (own_cache / caching.FOLDER).glob("*/*")
    first.write_bytes(first.read_bytes()[:-4])
    second.write_bytes(b"")
    content = third.read_bytes()
    third.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    np.testing.assert_array_equal(vectors_of(images, Mean()), right)
    assert CALLS == [20, 3]
    vectors_of(images, Mean())
    assert CALLS == [20, 3]


def test_a_cache_that_cannot_be_made_is_no_error(images, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("here")
    monkeypatch.setenv("SUBSPACES_CACHE", str(tmp_path / "file" / "below"))
    assert vectors_of(images, Mean()).shape == (20, 3)


def test_the_cache_is_bounded(own_cache, monkeypatch):
    monkeypatch.setattr(caching, "MAX_BYTES", 200_000)
    for i in range(60):
        with caching.opened("a") as cache:
            cache.put(bytes([i]), np.full(1000, i, dtype=np.float32))
    with caching.opened("a") as cache:
        kept = [i for i in range(60) if cache.get(bytes([i])) is not None]
    assert kept == list(range(kept[0], 60))
    assert 20 < len(kept) < 50


def test_pixels_of_arrays_and_files(folder):
    array = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_allclose(vectors_of(array, "pixels") * 255, array.reshape(2, 12), rtol=1e-6)
    np.testing.assert_array_equal(vectors_of(array.reshape(2, 12), "pixels"), array.reshape(2, 12))
    paths = [folder / f"{i}.png" for i in range(24)]
    np.testing.assert_array_equal(vectors_of(paths, "pixels"), read_table(folder).X)
    extractor, _ = fit_extractor("pixels", list(map(str, paths)))
    assert extractor == Pixels((40, 50))


@pytest.mark.parametrize(
    ("X", "shape", "words"),
    [
        (np.zeros((3, 4)), None, "list of paths"),
        (np.zeros((3, 4)), (2, 3), "image_shape must be"),
        (np.zeros((3, 4, 5, 6)), None, "list of paths"),
        (np.full((3, 4, 5), 300), None, "from 0 to 1 or from 0 to 255"),
        (np.full((3, 4, 5), np.nan), None, "from 0 to 1 or from 0 to 255"),
        ("photos", None, "list of images; got one path"),
    ],
)
def test_what_is_no_picture_is_refused(X, shape, words):
    with pytest.raises(ValueError, match=words):
        pictures(X, shape)


def test_a_picture_that_cannot_be_read_is_named(folder):
    (folder / "broken.png").write_bytes(b"\x89PNG nothing")
    for name, words in (("broken.png", "cannot be decoded"), ("absent.png", "")):
        with pytest.raises(FileError, match=name + ".*" + words):
            vectors_of([folder / name, folder / "0.png"], "pixels")


def test_vectors_of_a_file(tmp_path, images):
    np.save(tmp_path / "v.npy", np.arange(40.0).reshape(20, 2))
    assert vectors_of(images, tmp_path / "v.npy").shape == (20, 2)
    with pytest.raises(FileError, match="holds 20 vectors, and there are 3 items; write one row for each"):
        vectors_of(images[:3], tmp_path / "v.npy")


def test_a_function_must_return_a_row_for_each(images):
    assert vectors_of(images, lambda X: X.reshape(20, -1)).shape == (20, 30)
    with pytest.raises(ValueError, match=r"shape \(20, m\)"):
        vectors_of(images, lambda X: X)


def test_the_front_door_takes_pictures(folder):
    paths = sorted(folder.glob("*.png"), key=lambda path: int(path.stem))
    model = SubspaceClustering(2, features="pixels", effort="fast").fit(paths)
    plain = SubspaceClustering(2, effort="fast").fit(read_table(folder).X)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(paths[:4]), model.labels_[:4])
    assert model.extractor_ == Pixels((40, 50))
    assert plain.extractor_ is None


def _columns(X):
    return X.mean(axis=1)


def test_a_model_remembers_its_features(folder, tmp_path):
    pytest.importorskip("skops")
    paths = sorted(folder.glob("*.png"))
    model = SubspaceClustering(2, features="pixels", effort="fast").fit(paths)
    save_model(tmp_path / "m.skops", model, Reading(2000))
    again, _ = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(again.predict(paths), model.labels_)
    assert again.extractor_ == model.extractor_
    data = featured(read_table(folder), "pixels")
    save_model(tmp_path / "n.skops", SubspaceClustering(2, effort="fast").fit(data.X), Reading.of(data))
    assert load_model(tmp_path / "n.skops")[1].features == data.features
    images = np.random.default_rng(0).random((20, 6, 5))
    model = SubspaceClustering(2, features=_columns, effort="fast").fit(images)
    with pytest.raises(FileError, match="features is a function, and a model that holds a program is not written"):
        save_model(tmp_path / "o.skops", model, Reading(5))


def test_a_dataset_keeps_its_pixels(folder):
    data = read_table(folder)
    made = featured(data, lambda paths: np.array([[int(Path(path).stem), 1.0] for path in paths]))
    assert made.X[:, 0].tolist() == list(range(24))
    np.testing.assert_array_equal(made.pixels, data.X)
    assert made.image_shape == (40, 50)
    with pytest.raises(ValueError, match="holds none"):
        featured(type(data)(data.X, folder), "pixels")
