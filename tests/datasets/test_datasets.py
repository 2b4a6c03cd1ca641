"""The data sets: every file they may be in, every way to miss them, and no network."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
import sklearn.datasets

from io_data import Bomb
from subspaces import datasets
from subspaces.app.files import FileError
from subspaces.datasets import _catalogue, balanced_subset, get_data_home

LOADERS = {
    "coil20": datasets.load_coil20,
    "coil100": datasets.load_coil100,
    "covtype": datasets.load_covtype,
    "mnist": datasets.load_mnist,
    "orl": datasets.load_orl,
    "usps": datasets.load_usps,
    "yaleb": datasets.load_yaleb,
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whatever tries to fetch fails as it does without a network; tests put their own sources in its place."""

    def refuse(*args, **kwargs):
        raise URLError("no network in tests")

    for name in ("fetch_file", "fetch_openml", "fetch_covtype", "fetch_olivetti_faces"):
        monkeypatch.setattr(sklearn.datasets, name, refuse)
    monkeypatch.delenv("SUBSPACES_DATA", raising=False)


def images(rng, n, height, width, low=0, high=256):
    return rng.integers(low, high, (n, height, width)).astype(np.uint8)


# ------------------------------------------------------------------ where data sets are looked for


def test_data_home_argument_variable_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert get_data_home() == tmp_path / "cache" / "subspaces"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert get_data_home() == Path.home() / ".cache" / "subspaces"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert get_data_home() == Path.home() / "Library" / "Caches" / "subspaces"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert get_data_home() == tmp_path / "local" / "subspaces"
    monkeypatch.setenv("SUBSPACES_DATA", str(tmp_path / "variable"))
    assert get_data_home() == tmp_path / "variable"
    assert get_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert get_data_home("~/here") == Path.home() / "here"


def test_variable_reaches_the_loaders(tmp_path, monkeypatch, rng):
    np.savez(tmp_path / "orl_32x32.npz", X=images(rng, 4, 32, 32).reshape(4, -1), y=[1, 1, 2, 2])
    monkeypatch.setenv("SUBSPACES_DATA", str(tmp_path))
    assert datasets.load_orl().data.shape == (4, 1024)


@pytest.mark.parametrize("name", LOADERS)
def test_missing_says_what_to_put_where(name, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](data_home=tmp_path / "none", download_if_missing=False)
    text = str(caught.value)
    for part in (str(tmp_path / "none"), ".npz", "Put ", "data_home", "SUBSPACES_DATA"):
        assert part in text
    assert ("no public source" if name == "yaleb" else "download_if_missing is False") in text
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", [name for name in LOADERS if name != "yaleb"])
def test_failed_fetch_says_why_and_leaves_nothing(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"fetching it failed: .*no network in tests") as caught:
        LOADERS[name](data_home=tmp_path)
    assert "Put " in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ arrays: .npz and .mat


def test_npz_scale_labels_and_types(tmp_path, rng):
    X = rng.integers(0, 4081, (6, 1024)).astype(np.int16)
    np.savez_compressed(tmp_path / "coil20_32x32.npz", X=X, y=[3, 3, 5, 5, 9, 9], scale=1 / 4080, image_shape=(32, 32))
    coil = datasets.load_coil20(data_home=tmp_path)
    np.testing.assert_allclose(coil.data, X / 4080, rtol=1e-15)
    assert coil.target.tolist() == [0, 0, 1, 1, 2, 2]
    assert coil.target_names == ["3", "5", "9"]
    assert coil.image_shape == (32, 32)
    assert "turntable" in coil.DESCR
    assert coil.filename == str(tmp_path / "coil20_32x32.npz")
    data, target = datasets.load_coil20(data_home=tmp_path, return_X_y=True, dtype=np.float32)
    assert data.dtype == np.float32
    np.testing.assert_array_equal(data, coil.data.astype(np.float32))
    np.testing.assert_array_equal(target, coil.target)
    with pytest.raises(ValueError, match="dtype must be a floating type"):
        datasets.load_coil20(data_home=tmp_path, dtype=np.uint8)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("points", "labels"), [("fea", "gnd"), ("X", "Y"), ("data", "labels")])
def test_mat_images_come_out_upright(tmp_path, rng, points, labels, packed):
    pictures = images(rng, 5, 32, 32)
    columns_first = pictures.transpose(0, 2, 1).reshape(5, -1)  # as MATLAB's reshape(image, 1, [])
    arrays = {points: columns_first.astype(float), labels: np.array([[1], [1], [2], [2], [3]], dtype=float)}
    scipy.io.savemat(tmp_path / "YALEB_32x32.MAT", arrays, do_compression=packed)  # names in any case
    faces = datasets.load_yaleb(data_home=tmp_path)
    np.testing.assert_array_equal(faces.data.reshape(5, 32, 32), pictures)
    assert faces.target.tolist() == [0, 0, 1, 1, 2]


def test_mat_73(tmp_path, rng):
    h5py = pytest.importorskip("h5py")
    pictures = images(rng, 4, 32, 32)
    with h5py.File(tmp_path / "ORL_32x32.mat", "w", userblock_size=512) as file:
        file["fea"] = pictures.transpose(0, 2, 1).reshape(4, -1).T.astype(float)
        file["gnd"] = np.array([[1.0, 1, 2, 2]])
    faces = datasets.load_orl(data_home=tmp_path)
    np.testing.assert_array_equal(faces.data.reshape(4, 32, 32), pictures)
    assert faces.target.tolist() == [0, 0, 1, 1]


def test_yaleb_crop(tmp_path, rng):
    pictures = images(rng, 38 * 3, 48, 42, low=1).reshape(38, 3, 48, 42)
    pictures[4, 1] = 0  # an image that was never taken
    Y = pictures.transpose(3, 2, 1, 0).reshape(2016, 3, 38)  # pixels by columns x images x subjects
    scipy.io.savemat(tmp_path / "YaleBCrop025.mat", {"Y": Y.astype(float), "I": np.zeros((2, 2, 2)), "s": "text"})
    faces = datasets.load_yaleb(data_home=tmp_path, image_shape=(48, 42))
    kept = np.delete(np.arange(38 * 3), 4 * 3 + 1)
    np.testing.assert_array_equal(faces.data, pictures.reshape(-1, 2016)[kept])
    np.testing.assert_array_equal(faces.target, (kept // 3))
    with pytest.raises(ValueError, match="image_shape must be"):
        datasets.load_yaleb(data_home=tmp_path, image_shape=(64, 64))


def test_usps_in_either_range(tmp_path, rng):
    X, y = rng.uniform(0, 1, (8, 256)), np.repeat([1, 2], 4)
    scipy.io.savemat(tmp_path / "USPS.mat", {"fea": 2 * X - 1, "gnd": y})
    np.testing.assert_allclose(datasets.load_usps(data_home=tmp_path).data, X, atol=1e-15)
    scipy.io.savemat(tmp_path / "USPS.mat", {"fea": X, "gnd": y})
    np.testing.assert_array_equal(datasets.load_usps(data_home=tmp_path).data, X)


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"X": np.ones((4, 5)), "y": np.arange(4)}, "has 5 features; ORL has 1024"),
        ({"X": np.ones((4, 1024)), "y": np.arange(3)}, "does not give one value for each of the 4 points"),
        ({"X": np.ones((4, 1024))}, "'y' is not in the file"),
        ({"X": np.full((4, 1024), np.nan), "y": np.arange(4)}, "missing"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, arrays, problem):
    np.savez(tmp_path / "orl_32x32.npz", **arrays)
    with pytest.raises(FileError, match=problem) as caught:
        datasets.load_orl(data_home=tmp_path)
    assert str(tmp_path / "orl_32x32.npz") in str(caught.value)


@pytest.mark.parametrize("name", ["orl_32x32.npz", "ORL_32x32.mat"])
def test_damaged_arrays_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"<html>not found</html>" * 50)
    with pytest.raises(FileError, match=name):
        datasets.load_orl(data_home=tmp_path)


def test_pickles_are_never_opened(tmp_path):
    trap = np.array([Bomb(tmp_path / "trace")], dtype=object)
    np.savez(tmp_path / "orl_32x32.npz", X=trap, y=trap)
    with pytest.raises(FileError):
        datasets.load_orl(data_home=tmp_path)
    (tmp_path / "orl_32x32.npz").write_bytes(pickle.dumps(trap))
    with pytest.raises(FileError):
        datasets.load_orl(data_home=tmp_path)
    assert not (tmp_path / "trace").exists()


# ------------------------------------------------------------------ subsets


def test_first_and_per_class(tmp_path, seed, rng):
    y = rng.permutation(np.repeat([2, 3, 5, 8], [20, 15, 10, 30]))
    X = np.arange(75)[:, None] + np.zeros(1024)
    np.savez(tmp_path / "orl_32x32.npz", X=X, y=y)
    three = datasets.load_orl(data_home=tmp_path, first=3)
    np.testing.assert_array_equal(three.data[:, 0], np.flatnonzero(y < 8))
    assert three.target_names == ["2", "3", "5"]
    np.testing.assert_array_equal(np.bincount(three.target), [20, 15, 10])
    few = datasets.load_orl(data_home=tmp_path, first=3, per_class=7, random_state=seed)
    np.testing.assert_array_equal(np.bincount(few.target), [7, 7, 7])
    rows = few.data[:, 0].astype(int)
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(np.searchsorted([2, 3, 5], y[rows]), few.target)
    same = datasets.load_orl(data_home=tmp_path, first=3, per_class=7, random_state=seed)
    np.testing.assert_array_equal(same.data, few.data)
    other = datasets.load_orl(data_home=tmp_path, first=3, per_class=7, random_state=seed + 1)
    assert not np.array_equal(other.data, few.data)
    with pytest.raises(ValueError, match="class 2 has only 10 points"):
        datasets.load_orl(data_home=tmp_path, per_class=11)
    with pytest.raises(ValueError, match="first must be at most the number of classes, 4; got 5"):
        datasets.load_orl(data_home=tmp_path, first=5)
    for option in ("first", "per_class"):
        for value in (0, -1, 2.5, True):
            with pytest.raises(ValueError, match=f"{option} must be a whole number"):
                datasets.load_orl(data_home=tmp_path, **{option: value})


def test_balanced_subset_is_uniform(seed):
    y = np.repeat(["a", "b"], [6, 12])
    times = np.zeros(18)
    state = np.random.RandomState(seed)
    for _ in range(2000):
        chosen = balanced_subset(y, 3, random_state=state)
        assert np.unique(chosen).size == 6
        times[chosen] += 1
    # each point of a class of n is chosen with probability 3 / n; five standard deviations either way
    for points, p in ((slice(0, 6), 3 / 6), (slice(6, 18), 3 / 12)):
        assert np.abs(times[points] - 2000 * p).max() < 5 * np.sqrt(2000 * p * (1 - p))


# ------------------------------------------------------------------ the real data, where it is at hand


@pytest.mark.parametrize(
    ("name", "options", "shape", "n_classes", "value_range", "smallest_class"),
    [
        ("yaleb", {}, (2414, 1024), 38, (0, 255), 59),
        ("yaleb", {"image_shape": (48, 42)}, (2414, 2016), 38, (0, 255), 59),
        ("coil20", {}, (1440, 1024), 20, (0, 1), 72),
        ("coil100", {}, (7200, 1024), 100, (15, 252), 72),
        ("usps", {}, (9298, 256), 10, (0, 1), 708),
        ("mnist", {}, (60000, 784), 10, (0, 255), 5421),
        ("covtype", {}, (581012, 54), 7, (-173, 7173), 2747),
        ("orl", {}, (400, 1024), 40, (2, 235), 10),
    ],
)
def test_real_data(name, options, shape, n_classes, value_range, smallest_class, data_home):
    dataset = {"yaleb": _catalogue.YALEB_48 if options else _catalogue.YALEB_32}.get(name)
    file = data_home / next(iter((dataset or getattr(_catalogue, name.upper())).files))
    if not file.exists():
        pytest.skip(f"no {file}")
    loaded = LOADERS[name](**options, data_home=data_home, dtype=np.float32, download_if_missing=False)
    assert loaded.data.shape == shape
    assert loaded.data.dtype == np.float32
    np.testing.assert_allclose((loaded.data.min(), loaded.data.max()), value_range, rtol=1e-6)
    counts = np.bincount(loaded.target)
    assert (len(counts), counts.min(), counts.sum()) == (n_classes, smallest_class, shape[0])
    assert loaded.image_shape is None or np.prod(loaded.image_shape) == shape[1]
