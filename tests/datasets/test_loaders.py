"""The paper's data sets: every file they may be in, every way to miss them, hostile files, and no network."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import sys
import zipfile
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
import sklearn.datasets
from sklearn.utils import Bunch

from io_data import Bomb
from subspaces import datasets
from subspaces.app.files import FileError
from subspaces.datasets import _formats, balanced_subset, get_data_home, loaders

NAMES = ["coil20", "coil100", "covtype", "mnist", "orl", "usps", "yaleb"]
LOADERS = {name: getattr(datasets, f"load_{name}") for name in NAMES}


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Make every fetch fail as without a network; tests put their own sources in its place."""

    def refuse(*args, **kwargs):
        raise URLError("no network in tests")

    for name in ("fetch_file", "fetch_openml", "fetch_covtype"):
        monkeypatch.setattr(sklearn.datasets, name, refuse)
    monkeypatch.delenv("SUBSPACES_DATA", raising=False)


def images(rng, n, height, width, low=0):
    return rng.integers(low, 256, (n, height, width)).astype(np.uint8)


def png(pixels):
    Image = pytest.importorskip("PIL.Image")
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_idx(path, values):
    content = b"\x00\x00\x08" + bytes([values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# ------------------------------------------------------------------ where data sets are looked for


def test_data_home_from_argument_variable_or_cache(tmp_path, monkeypatch):
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


@pytest.mark.parametrize("name", LOADERS)
def test_missing_file_and_failed_fetch_name_the_remedy(name, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        LOADERS[name](data_home=tmp_path / "none", download_if_missing=False)
    for part in (str(tmp_path / "none"), ".npz", "Put ", "data_home", "SUBSPACES_DATA"):
        assert part in str(caught.value)
    assert not (tmp_path / "none").exists()
    reason = "no public source" if name in ("yaleb", "orl") else r"fetching it failed: .*no network in tests"
    with pytest.raises(FileNotFoundError, match=reason):
        LOADERS[name](data_home=tmp_path)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ arrays: .npz and .mat


def test_npz_scale_labels_and_types(tmp_path, rng, monkeypatch):
    X = rng.integers(0, 4081, (6, 1024)).astype(np.int16)
    np.savez_compressed(tmp_path / "coil20_32x32.npz", X=X, y=[3, 3, 5, 5, 9, 9], scale=1 / 4080, image_shape=(32, 32))
    monkeypatch.setenv("SUBSPACES_DATA", str(tmp_path))
    coil = datasets.load_coil20()
    np.testing.assert_allclose(coil.data, X / 4080, rtol=1e-15)
    assert coil.target.tolist() == [0, 0, 1, 1, 2, 2]
    assert coil.target_names == ["3", "5", "9"]
    assert coil.image_shape == (32, 32)
    assert "turntable" in coil.DESCR
    assert coil.filename == str(tmp_path / "coil20_32x32.npz")
    data, target = datasets.load_coil20(return_X_y=True, dtype=np.float32)
    assert data.dtype == np.float32
    np.testing.assert_array_equal(data, coil.data.astype(np.float32))
    np.testing.assert_array_equal(target, coil.target)
    with pytest.raises(ValueError, match="dtype must be a floating type"):
        datasets.load_coil20(dtype=np.uint8)


@pytest.mark.parametrize(("points", "labels"), [("fea", "gnd"), ("X", "Y"), ("data", "labels")])
def test_mat_images_come_out_upright(tmp_path, rng, points, labels):
    pictures = images(rng, 5, 32, 32)
    columns_first = pictures.transpose(0, 2, 1).reshape(5, -1)  # as MATLAB's reshape(image, 1, [])
    arrays = {points: columns_first.astype(float), labels: np.array([[1], [1], [2], [2], [3]], dtype=float)}
    scipy.io.savemat(tmp_path / "YALEB_32x32.MAT", arrays, do_compression=True)  # names in any case
    faces = datasets.load_yaleb(data_home=tmp_path)
    np.testing.assert_array_equal(faces.data.reshape(5, 32, 32), pictures)
    assert faces.target.tolist() == [0, 0, 1, 1, 2]


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
        ({"X": np.ones((4, 1024)), "y": np.arange(3)}, r"a class for each .*, but X \(4, 1024\), y \(3,\)"),
        ({"X": np.ones((4, 1024))}, "holds no samples with a class for each"),
        ({"X": np.full((4, 1024), np.nan), "y": np.arange(4)}, "not finite"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, arrays, problem):
    np.savez(tmp_path / "orl_32x32.npz", **arrays)
    with pytest.raises(FileError, match=problem) as caught:
        datasets.load_orl(data_home=tmp_path)
    assert str(tmp_path / "orl_32x32.npz") in str(caught.value)


def test_damaged_arrays_and_pickles_are_refused(tmp_path):
    trap = np.array([Bomb(tmp_path / "trace")], dtype=object)
    np.savez(tmp_path / "traps.npz", X=trap, y=trap)
    html = b"<html>not found</html>" * 50
    contents = [(tmp_path / "traps.npz").read_bytes(), pickle.dumps(trap), html]
    (tmp_path / "traps.npz").unlink()
    for name, content in [*(("orl_32x32.npz", content) for content in contents), ("ORL_32x32.mat", html)]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileError, match=name):
            datasets.load_orl(data_home=tmp_path)
        (tmp_path / name).unlink()
    assert not (tmp_path / "trace").exists()


# ------------------------------------------------------------------ subsets


def test_first_and_per_class(tmp_path, seed, rng):
    y = rng.permutation(np.repeat([2, 3, 5, 8], [20, 15, 10, 30]))
    np.savez(tmp_path / "orl_32x32.npz", X=np.arange(75)[:, None] + np.zeros(1024), y=y)
    three = datasets.load_orl(data_home=tmp_path, first=3)
    np.testing.assert_array_equal(three.data[:, 0], np.flatnonzero(y < 8))
    assert three.target_names == ["2", "3", "5"]
    few = datasets.load_orl(data_home=tmp_path, first=3, per_class=7, random_state=seed)
    np.testing.assert_array_equal(np.bincount(few.target), [7, 7, 7])
    rows = few.data[:, 0].astype(int)
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(np.searchsorted([2, 3, 5], y[rows]), few.target)
    with pytest.raises(ValueError, match="class 2 has only 10 samples"):
        datasets.load_orl(data_home=tmp_path, per_class=11)
    with pytest.raises(ValueError, match="first must be at most the number of classes, 4; got 5"):
        datasets.load_orl(data_home=tmp_path, first=5)
    for option in ("first", "per_class"):
        for value in (0, 2.5, True):
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
    # each sample of a class of n is chosen with probability 3 / n; five standard deviations either way
    for points, p in ((slice(0, 6), 3 / 6), (slice(6, 18), 3 / 12)):
        assert np.abs(times[points] - 2000 * p).max() < 5 * np.sqrt(2000 * p * (1 - p))


# ------------------------------------------------------------------ COIL


@pytest.mark.parametrize("name", ["coil20", "coil100"])
def test_coil_archive_gives_block_means_by_object_and_view(tmp_path, rng, name):
    shape = (128, 128) if name == "coil20" else (128, 128, 3)
    pixels = {(o, v): rng.integers(0, 256, shape).astype(np.uint8) for o in (10, 1, 2) for v in (0, 1, 10, 2)}
    members = {f"folder/obj{o}__{v}.png": png(image) for (o, v), image in pixels.items()}
    more = {"folder/readme.txt": b"x", "__MACOSX/._obj1__0.png": b"x"}
    write_zip(tmp_path / ("coil-20-proc.zip" if name == "coil20" else "coil-100.zip"), members | more)
    coil = LOADERS[name](data_home=tmp_path)
    assert coil.target_names == ["1", "2", "10"]
    assert coil.target.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    grey = [pixels[key] if name == "coil20" else pixels[key] @ [0.299, 0.587, 0.114] for key in sorted(pixels)]
    means = [[g[i : i + 4, j : j + 4].mean() for i in range(0, 128, 4) for j in range(0, 128, 4)] for g in grey]
    if name == "coil20":
        np.testing.assert_allclose(coil.data, np.array(means) / 255, rtol=1e-12)
    else:
        np.testing.assert_array_equal(coil.data, np.rint(coil.data))
        assert np.abs(coil.data - means).max() < 1.01  # rounded once by pixel and once by block


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"../../obj1__0.png": b"not a png"}, "damaged"),
        ({"a.txt": b""}, "no image with a name like"),
        ({"obj1__0.png": bytes(2**20 + 1)}, "more than 1048576 bytes"),
        ({"obj1__0.png": "small"}, "64 x 64 pixels"),
        ({"obj1__0.png": "good", "b/obj1__0.png": "good"}, "two images called"),
        (None, "damaged, cut short"),
    ],
)
def test_hostile_coil_archives(tmp_path, rng, members, problem):
    drawn = {"small": png(images(rng, 1, 64, 64)[0]), "good": png(images(rng, 1, 128, 128)[0])}
    home = tmp_path / "a" / "b"
    home.mkdir(parents=True)
    given = {"obj1__0.png": "good"} if members is None else members
    path = write_zip(home / "coil-20-proc.zip", {name: drawn.get(content, content) for name, content in given.items()})
    if members is None:
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match=problem):
        datasets.load_coil20(data_home=home)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["coil-20-proc.zip"]


def test_coil_without_pillow(tmp_path, monkeypatch):
    write_zip(tmp_path / "coil-20-proc.zip", {"obj1__0.png": b""})
    monkeypatch.setattr(_formats, "find_spec", lambda name: None)
    for load in (datasets.load_coil20, datasets.load_coil100):  # the second before 131 MB are fetched
        with pytest.raises(ImportError, match="pip install pillow"):
            load(data_home=tmp_path)


# ------------------------------------------------------------------ MNIST


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "train-images-idx3-ubyte"])
def test_mnist_idx(tmp_path, rng, name):
    pictures, digits = images(rng, 7, 28, 28), np.array([5, 0, 4, 1, 9, 2, 1], dtype=np.uint8)
    write_idx(tmp_path / name, pictures)
    with pytest.raises(FileError, match=r"train-labels.*missing"):
        datasets.load_mnist(data_home=tmp_path)
    write_idx(tmp_path / name.replace("images", "labels").replace("idx3", "idx1"), digits)
    mnist = datasets.load_mnist(data_home=tmp_path)
    np.testing.assert_array_equal(mnist.data.reshape(7, 28, 28), pictures)
    assert [mnist.target_names[code] for code in mnist.target] == [str(digit) for digit in digits]
    few = datasets.load_mnist(data_home=tmp_path, n_images=3)
    np.testing.assert_array_equal(few.data, mnist.data[:3])
    np.testing.assert_array_equal(few.target, mnist.target[:3])


def test_wrong_idx(tmp_path, rng, monkeypatch):
    path = tmp_path / "train-images-idx3-ubyte"
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"")
    head = b"\x00\x00\x08\x03"
    for content, problem in [
        (b"", "does not begin like an idx file"),
        (b"\x00\x00\x0d\x03" + bytes(12), "does not begin like an idx file"),
        (head + struct.pack(">3I", 5, 28, 28) + bytes(100), "cut short .*3920 bytes announced, 100 there"),
        (head + struct.pack(">3I", *[2**32 - 1] * 3), "cut short"),
        (head + bytes(12), "announces no values"),
        (head + bytes(5), "damaged"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=problem):
            datasets.load_mnist(data_home=tmp_path)
    write_idx(path, images(rng, 3, 28, 28))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, dtype=np.uint8))
    with pytest.raises(FileError, match=r"shape \(3, 28, 28\) and .* shape \(2,\)"):
        datasets.load_mnist(data_home=tmp_path)
    monkeypatch.setattr(_formats, "MAX_BYTES", 1000)
    with pytest.raises(FileError, match="unpacks to more than 1000 bytes"):
        datasets.load_mnist(data_home=tmp_path)


# ------------------------------------------------------------------ fetching


def check_fetched(loader, home, monkeypatch):
    """What was fetched is kept as one file that is read without the source, and comes out the same."""
    fetched = loader(data_home=home)
    monkeypatch.undo()
    again = loader(data_home=home, download_if_missing=False)
    np.testing.assert_array_equal(again.data, fetched.data)
    np.testing.assert_array_equal(again.target, fetched.target)
    assert again.target_names == fetched.target_names
    assert [path.name for path in home.iterdir()] == [Path(fetched.filename).name]
    return fetched


def serve(monkeypatch, files, dead=()):
    """Install a fetch_file that knows some files; return the list of addresses and checksums it is asked for."""
    asked = []

    def fetch_file(url, folder, sha256, n_retries):
        asked.append((url, sha256))
        if url.startswith(tuple(dead)):
            raise URLError("down")
        path = Path(folder) / url.rsplit("/", 1)[1]
        path.write_bytes(files[path.name])
        return path

    monkeypatch.setattr(sklearn.datasets, "fetch_file", fetch_file)
    return asked


def test_fetch_mnist_from_the_second_mirror(tmp_path, rng, monkeypatch):
    pictures = write_idx(tmp_path / "train-images-idx3-ubyte.gz", images(rng, 4, 28, 28))
    digits = write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.array([3, 1, 3, 0], dtype=np.uint8))
    files = {path.name: path.read_bytes() for path in (pictures, digits)}
    asked = serve(monkeypatch, files, dead=[loaders.MNIST_MIRRORS[0]])
    mnist = check_fetched(datasets.load_mnist, tmp_path / "home", monkeypatch)
    assert mnist.target.tolist() == [2, 1, 2, 0]
    assert {url.rsplit("/", 1)[1]: sha256 for url, sha256 in asked} == loaders.MNIST_SHA256


def test_fetch_coil_counts_the_images(tmp_path, rng, monkeypatch):
    image = png(np.pad(images(rng, 1, 64, 64)[0], 32))
    members = {f"coil-20-proc/obj{o}__{v}.png": image for o in range(1, 21) for v in range(72)}
    whole = write_zip(tmp_path / "whole.zip", members).read_bytes()
    part = write_zip(tmp_path / "part.zip", dict(list(members.items())[:71])).read_bytes()
    asked = serve(monkeypatch, {"coil-20-proc.zip": part, "coil-100.zip": part})
    for name, n in (("coil100", 100), ("coil20", 20)):
        with pytest.raises(FileNotFoundError, match=f"71 images of 1 objects, not 72 of each of {n}"):
            LOADERS[name](data_home=tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []
    assert asked[0] == (loaders.COIL_MIRRORS[0] + "coil-100/coil-100.zip", loaders.COIL100_SHA256)
    serve(monkeypatch, {"coil-20-proc.zip": whole})
    assert check_fetched(datasets.load_coil20, tmp_path / "home", monkeypatch).data.shape == (1440, 1024)


def test_fetch_refuses_a_wrong_checksum(tmp_path, rng, monkeypatch):
    monkeypatch.undo()  # scikit-learn's own fetch_file, on a file instead of the network
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", images(rng, 4, 28, 28))
    monkeypatch.setattr(loaders, "MNIST_MIRRORS", (f"file://localhost{tmp_path}/",))
    with pytest.raises(FileNotFoundError, match="SHA256 checksum of train-images"):
        datasets.load_mnist(data_home=tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


def test_fetch_by_scikit_learn(tmp_path, rng, monkeypatch):
    """USPS from OpenML (class k + 1 is the digit k), Covtype in UCI's order."""
    digits = rng.permutation(np.repeat(np.arange(1, 11), 2))
    usps = Bunch(data=rng.uniform(-1, 1, (20, 256)), target=digits.astype(str).astype(object))
    cells = Bunch(data=rng.integers(-173, 7173, (30, 54)).astype(float), target=np.repeat(np.arange(1, 7), 5))
    asked = {}
    for name, bunch in (("openml", usps), ("covtype", cells)):
        fetch = lambda name=name, bunch=bunch, **options: asked.update({name: options}) or bunch  # noqa: E731
        monkeypatch.setattr(sklearn.datasets, f"fetch_{name}", fetch)
    found = {name: LOADERS[name](data_home=tmp_path / name) for name in ("usps", "covtype")}
    assert asked["openml"]["data_id"] == 41082
    assert asked["covtype"]["shuffle"] is False
    np.testing.assert_array_equal(found["usps"].data, (usps.data + 1) / 2)
    assert [found["usps"].target_names[k] for k in found["usps"].target] == [str(d - 1) for d in digits]
    np.testing.assert_array_equal(found["covtype"].data, cells.data)
    np.testing.assert_array_equal(found["covtype"].target, cells.target - 1)
    for name in found:
        check_fetched(LOADERS[name], tmp_path / name, monkeypatch)


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
    try:
        loaded = LOADERS[name](**options, data_home=data_home, dtype=np.float32, download_if_missing=False)
    except FileNotFoundError:
        pytest.skip(f"{name} is not in {data_home}")
    assert loaded.data.shape == shape
    assert loaded.data.dtype == np.float32
    np.testing.assert_allclose((loaded.data.min(), loaded.data.max()), value_range, rtol=1e-6)
    counts = np.bincount(loaded.target)
    assert (len(counts), counts.min(), counts.sum()) == (n_classes, smallest_class, shape[0])
    assert loaded.image_shape is None or np.prod(loaded.image_shape) == shape[1]
