"""The data sets in their original files and from their sources: read whole, refused when damaged, and no network."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from subspaces import datasets
from subspaces.app.files import FileError
from subspaces.datasets import _catalogue, _formats


def images(rng, n, height, width, low=0, high=256):
    return rng.integers(low, high, (n, height, width)).astype(np.uint8)


def png(pixels):
    from PIL import Image

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


def coil_members(rng, objects=(1, 2, 10), views=(0, 1, 10, 2), colour=False, folder="coil-20-proc/"):
    """Images in the disorder of an archive, and what they must come out as: by object, then view, as numbers."""
    shape = (128, 128, 3) if colour else (128, 128)
    pixels = {(o, v): rng.integers(0, 256, shape).astype(np.uint8) for o in objects for v in views}
    members = {f"{folder}obj{o}__{v}.png": png(image) for (o, v), image in pixels.items()}
    return members, [pixels[key] for key in sorted(pixels)]


def slow_block_means(image):
    return [image[i : i + 4, j : j + 4].mean() for i in range(0, 128, 4) for j in range(0, 128, 4)]


# ------------------------------------------------------------------ COIL


def test_coil20_archive_and_folder(tmp_path, rng):
    pytest.importorskip("PIL")
    members, expected = coil_members(rng)
    write_zip(
        tmp_path / "coil-20-proc.zip", members | {"coil-20-proc/readme.txt": b"x", "__MACOSX/._obj1__0.png": b"x"}
    )
    coil = datasets.load_coil20(data_home=tmp_path)
    np.testing.assert_allclose(coil.data, [np.array(slow_block_means(image)) / 255 for image in expected], rtol=1e-12)
    assert coil.target_names == ["1", "2", "10"]
    assert coil.target.tolist() == [0] * 4 + [1] * 4 + [2] * 4

    folder = tmp_path / "other" / "coil-20-proc"
    folder.mkdir(parents=True)
    for name, content in members.items():
        (folder / Path(name).name).write_bytes(content)
    np.testing.assert_array_equal(datasets.load_coil20(data_home=tmp_path / "other").data, coil.data)


def test_coil100_is_grey(tmp_path, rng):
    pytest.importorskip("PIL")
    members, expected = coil_members(rng, objects=(3, 20), views=(0, 5, 100), colour=True, folder="coil-100/")
    write_zip(tmp_path / "coil-100.zip", members)
    coil = datasets.load_coil100(data_home=tmp_path)
    assert coil.target.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(coil.data, np.rint(coil.data))
    grey = [slow_block_means(image @ [0.299, 0.587, 0.114]) for image in expected]
    assert np.abs(coil.data - grey).max() < 1.01  # rounded once by pixel and once by block


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"../../obj1__0.png": b"not a png"}, "damaged"),
        ({"a.txt": b""}, "no image with a name like"),
        ({"obj1__0.png": bytes(2**20 + 1)}, "unpacks to 1048577 bytes"),
        ({"obj1__0.png": "small"}, "64 x 64 pixels"),
        ({"obj1__0.png": "good", "b/obj1__0.png": "good"}, "two images called"),
    ],
)
def test_hostile_coil_archives(tmp_path, rng, members, problem):
    pytest.importorskip("PIL")
    drawn = {"small": png(images(rng, 1, 64, 64)[0]), "good": png(images(rng, 1, 128, 128)[0])}
    home = tmp_path / "a" / "b"
    home.mkdir(parents=True)
    write_zip(home / "coil-20-proc.zip", {name: drawn.get(content, content) for name, content in members.items()})
    with pytest.raises(FileError, match=problem):
        datasets.load_coil20(data_home=home)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["coil-20-proc.zip"]


def test_coil_archive_cut_short(tmp_path, rng):
    pytest.importorskip("PIL")
    members, _ = coil_members(rng, objects=(1,), views=(0,))
    path = write_zip(tmp_path / "coil-20-proc.zip", members)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match="damaged, cut short"):
        datasets.load_coil20(data_home=tmp_path)


def test_coil_without_pillow(tmp_path, rng, monkeypatch):
    write_zip(tmp_path / "coil-20-proc.zip", {"obj1__0.png": b""})
    monkeypatch.setattr(_formats, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install pillow"):
        datasets.load_coil20(data_home=tmp_path)
    with pytest.raises(ImportError, match="pip install pillow"):  # and before 131 MB are fetched
        datasets.load_coil100(data_home=tmp_path)


# ------------------------------------------------------------------ MNIST, USPS, Covtype


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "train-images-idx3-ubyte", "train-images.idx3-ubyte"])
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


def test_wrong_idx(tmp_path, rng):
    path = tmp_path / "train-images-idx3-ubyte"
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"")
    for content, problem in [
        (b"", "does not begin like an idx file"),
        (b"\x00\x00\x0d\x03" + bytes(12), "does not begin like an idx file"),
        (
            b"\x00\x00\x08\x03" + struct.pack(">3I", 5, 28, 28) + bytes(100),
            "cut short .*3920 bytes announced, 100 there",
        ),
        (b"\x00\x00\x08\x03" + struct.pack(">3I", 2**32 - 1, 2**32 - 1, 2**32 - 1), "of memory may be used"),
        (b"\x00\x00\x08\x03" + bytes(5), "damaged"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=problem):
            datasets.load_mnist(data_home=tmp_path)
    write_idx(path, images(rng, 3, 28, 28))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, dtype=np.uint8))
    with pytest.raises(FileError, match=r"shape \(3, 28, 28\) and .* shape \(2,\)"):
        datasets.load_mnist(data_home=tmp_path)


def test_usps_text(tmp_path, rng):
    X, y = np.round(rng.uniform(-1, 1, (9, 256)), 3), rng.permutation(np.repeat([0, 4, 9], 3))
    lines = [
        f"{digit}.0000 " + " ".join(f"{value:.4f}" for value in row) + " \n" for digit, row in zip(y, X, strict=True)
    ]
    (tmp_path / "zip.train.gz").write_bytes(gzip.compress("".join(lines[:6]).encode()))
    with pytest.raises(FileError, match=r"zip\.test\.gz: missing"):
        datasets.load_usps(data_home=tmp_path)
    (tmp_path / "zip.test.gz").write_bytes(gzip.compress("".join(lines[6:]).encode()))
    usps = datasets.load_usps(data_home=tmp_path)
    np.testing.assert_allclose(usps.data, (X + 1) / 2, atol=1e-15)
    assert [int(usps.target_names[code]) for code in usps.target] == y.tolist()


def test_covtype_text(tmp_path, rng, monkeypatch):
    table = rng.integers(-200, 7200, (20, 55))
    table[:, -1] = rng.permutation(np.repeat([1, 2, 5, 7], 5))
    text = "".join(",".join(map(str, row)) + "\n" for row in table).encode()
    (tmp_path / "covtype.data.gz").write_bytes(gzip.compress(text))
    covtype = datasets.load_covtype(data_home=tmp_path)
    np.testing.assert_array_equal(covtype.data, table[:, :-1])
    assert covtype.image_shape is None
    assert covtype.target_names == ["1", "2", "5", "7"]
    (tmp_path / "covtype.data.gz").write_bytes(gzip.compress(text.replace(b"\n", b",1\n")))
    with pytest.raises(FileError, match="56 numbers a line where 55"):
        datasets.load_covtype(data_home=tmp_path)
    monkeypatch.setattr(_formats, "MAX_TEXT_BYTES", 1000)
    with pytest.raises(FileError, match="unpacks to more than 1000 bytes"):
        datasets.load_covtype(data_home=tmp_path)


# ------------------------------------------------------------------ fetching


def check_fetched(loader, home, monkeypatch):
    """What was fetched is kept as one file that is read without the source, and comes out the same."""
    fetched = loader(data_home=home)
    monkeypatch.undo()
    monkeypatch.setattr(sklearn.datasets, "fetch_file", None)
    again = loader(data_home=home, download_if_missing=False)
    np.testing.assert_array_equal(again.data, fetched.data)
    np.testing.assert_array_equal(again.target, fetched.target)
    assert again.target_names == fetched.target_names
    assert [path.name for path in home.iterdir()] == [Path(fetched.filename).name]
    return fetched


def serve(monkeypatch, files, dead=()):
    """A fetch_file that knows some files; also which addresses and checksums it was asked for."""
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
    asked = serve(monkeypatch, files, dead=[_catalogue.MNIST_MIRRORS[0]])
    mnist = check_fetched(datasets.load_mnist, tmp_path / "home", monkeypatch)
    assert mnist.target.tolist() == [2, 1, 2, 0]
    assert {url.rsplit("/", 1)[1]: sha256 for url, sha256 in asked} == _catalogue.MNIST_SHA256


def test_fetch_coil(tmp_path, rng, monkeypatch):
    pytest.importorskip("PIL")
    image = png(np.pad(images(rng, 1, 64, 64)[0], 32))
    members = {f"coil-20-proc/obj{o}__{v}.png": image for o in range(1, 21) for v in range(72)}
    whole = write_zip(tmp_path / "whole.zip", members).read_bytes()
    part = write_zip(tmp_path / "part.zip", dict(list(members.items())[:71])).read_bytes()

    asked = serve(monkeypatch, {"coil-20-proc.zip": part, "coil-100.zip": part})
    with pytest.raises(FileNotFoundError, match="71 images of 1 objects, not 72 of each of 100"):
        datasets.load_coil100(data_home=tmp_path / "home")
    with pytest.raises(FileNotFoundError, match="71 images of 1 objects, not 72 of each of 20"):
        datasets.load_coil20(data_home=tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []
    assert asked[0] == (_catalogue.COIL_MIRRORS[0] + "coil-100/coil-100.zip", _catalogue.COIL100_SHA256)
    serve(monkeypatch, {"coil-20-proc.zip": whole})
    assert check_fetched(datasets.load_coil20, tmp_path / "home", monkeypatch).data.shape == (1440, 1024)


def test_wrong_checksum_is_refused(tmp_path, rng, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    write_idx(source / "train-images-idx3-ubyte.gz", images(rng, 4, 28, 28))
    # scikit-learn's own fetch_file, on a file instead of the network
    monkeypatch.setattr(_catalogue, "MNIST_MIRRORS", (f"file://localhost{source}/",))
    with pytest.raises(FileNotFoundError, match="SHA256 checksum of train-images"):
        datasets.load_mnist(data_home=tmp_path / "home")
    assert list((tmp_path / "home").iterdir()) == []


def test_fetch_usps(tmp_path, rng, monkeypatch):
    X, y = rng.uniform(-1, 1, (20, 256)), rng.permutation(np.repeat(np.arange(1, 11), 2))

    def fetch_openml(*, data_id, data_home, as_frame, parser, n_retries):
        assert (data_id, as_frame, parser) == (41082, False, "liac-arff")
        return Bunch(data=X, target=y.astype(str).astype(object))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    usps = check_fetched(datasets.load_usps, tmp_path, monkeypatch)
    np.testing.assert_array_equal(usps.data, (X + 1) / 2)
    np.testing.assert_array_equal(usps.target, y - 1)
    assert usps.target_names == [str(digit) for digit in range(10)]


def test_fetch_covtype(tmp_path, rng, monkeypatch):
    X, y = rng.integers(-173, 7173, (30, 54)).astype(float), np.repeat(np.arange(1, 7, dtype=np.int32), 5)

    def fetch_covtype(*, data_home, shuffle, n_retries):
        assert shuffle is False
        return Bunch(data=X, target=y)

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch_covtype)
    covtype = check_fetched(datasets.load_covtype, tmp_path, monkeypatch)
    np.testing.assert_array_equal(covtype.data, X)
    np.testing.assert_array_equal(covtype.target, y - 1)


def test_fetch_orl(tmp_path, rng, monkeypatch):
    pictures = images(rng, 6, 64, 64)
    faces = Bunch(images=(pictures / 255).astype(np.float32), target=np.repeat([0, 1, 2], 2))
    monkeypatch.setattr(sklearn.datasets, "fetch_olivetti_faces", lambda **options: faces)
    orl = check_fetched(datasets.load_orl, tmp_path, monkeypatch)
    means = (
        pictures[:, ::2, ::2] + 0.0 + pictures[:, 1::2, ::2] + pictures[:, ::2, 1::2] + pictures[:, 1::2, 1::2]
    ) / 4
    assert np.abs(orl.data - means.reshape(6, -1)).max() <= 0.5 + 1e-4
    assert "Olivetti" in orl.DESCR
