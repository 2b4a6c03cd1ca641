"""Folders of images: read as people have them, sorted into clusters, and nothing harmful on the way."""

from __future__ import annotations

import csv
import io
import os
import struct
import zlib

import numpy as np
import pytest
from scipy import sparse

from subspaces.app.files import FileError, read_table
from subspaces.app.files import image_files as images
from subspaces.engine.confidence import summarize_graph

Image = pytest.importorskip("PIL.Image")

from subspaces.app.files import sorting as sorting  # noqa: E402  (needs Pillow only when used)

posix = pytest.mark.skipif(os.name != "posix", reason="needs links or pipes")


def picture(path, value=100, size=(8, 8), mode="L", **options):
    """Save an image of one value (a corner darker, so that turning shows); `size` is height and width."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((*size, 3) if mode == "RGB" else size, value, dtype=np.uint8)
    pixels[: size[0] // 2, : size[1] // 2] = value // 2
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for i in range(6):
        picture(folder / f"{i}.png", 40 * i)
    return folder


# ------------------------------------------------------------------ reading


def test_images_come_in_order_with_their_paths(photos):
    picture(photos / "below" / "x.JPG", 10)
    picture(photos / "b.tiff", 20)
    for ignored in ("notes.txt", ".hidden.png", "below/.DS_Store"):
        (photos / ignored).write_text("no image")
    picture(photos / ".cache" / "y.png")
    data = read_table(photos)
    assert data.ids == ["0.png", "1.png", "2.png", "3.png", "4.png", "5.png", "b.tiff", "below/x.JPG"]
    assert data.X.shape == (8, 64)
    assert data.X.dtype == np.float32
    assert data.image_shape == (8, 8)
    assert data.is_image_folder
    assert (data.X.min(), data.X.max()) == (0, pytest.approx(200 / 255))
    np.testing.assert_allclose(data.X[2, -1], 80 / 255)
    assert "8 images of 8 x 8 pixels, used as they are" in data.notes[0]
    assert data.skipped == ()


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "bmp", "webp", "gif"])
def test_every_format(tmp_path, suffix):
    for i in (60, 200):
        picture(tmp_path / f"{i}.{suffix}", i)
    X = read_table(tmp_path).X
    np.testing.assert_allclose(X[:, -1], [60 / 255, 200 / 255], atol=0.02)  # 60 comes before 200


def test_sizes_and_colours(tmp_path):
    picture(tmp_path / "wide.png", size=(60, 120), mode="RGB")
    picture(tmp_path / "tall.png", size=(600, 1200))
    data = read_table(tmp_path)
    assert data.image_shape == (23, 45)
    assert "reduced to 23 x 45 pixels" in data.notes[0]
    assert read_table(tmp_path, image_size=(10, 20), color=True).image_shape == (10, 20, 3)
    assert read_table(tmp_path, image_size=(10, 20), color=True).X.shape == (2, 600)
    square = read_table(tmp_path, image_size=(16, 16))
    assert "2 of another shape were cut to the middle" in square.notes[0]


def test_camera_orientation_is_applied(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise
    picture(tmp_path / "turned.png", size=(8, 12), exif=exif)
    picture(tmp_path / "upright.png", size=(12, 8))
    data = read_table(tmp_path)
    assert data.image_shape == (12, 8)
    turned = data.X[0].reshape(12, 8)
    assert turned[0, -1] < turned[0, 0]  # the dark corner went from top left to top right


def test_deep_grey_and_transparency_are_sensible(tmp_path):
    Image.fromarray(np.full((8, 8), 32768, dtype=np.uint16)).save(tmp_path / "a16.png")
    Image.fromarray(np.full((8, 8), 0.5, dtype=np.float32)).save(tmp_path / "b_float.tif")
    Image.fromarray(np.full((8, 8), 40000, dtype=np.int32)).save(tmp_path / "c32.tif")
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "d_clear.png")
    Image.new("P", (8, 8)).save(tmp_path / "e_palette.png")
    Image.new("1", (8, 8), 1).save(tmp_path / "f_bits.png")
    X = read_table(tmp_path).X
    np.testing.assert_allclose(X[:, 0], [0.5, 0.5, 40000 / 65535, 1, 0, 1], atol=1e-4)
    assert read_table(tmp_path, color=True).X.shape == (6, 192)


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def bomb(path, side):
    """A small PNG whose header announces side × side pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b""))


def test_broken_files_are_listed_and_left_out(photos, monkeypatch):
    (photos / "text.png").write_text("hello")
    (photos / "empty.jpg").touch()
    whole = (photos / "1.png").read_bytes()
    noise = np.random.default_rng(0).integers(255, size=(40, 40), dtype=np.uint8)
    Image.fromarray(noise).save(photos / "cut.png")
    (photos / "cut.png").write_bytes((photos / "cut.png").read_bytes()[:600])
    bomb(photos / "large.png", 10_000)
    bomb(photos / "huge.png", 100_000)
    Image.fromarray(np.full((8, 8), np.nan, dtype=np.float32)).save(photos / "nan.tif")
    (photos / "disguised.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n" + whole)
    data = read_table(photos, image_size=(8, 8))
    assert data.ids == [f"{i}.png" for i in range(6)]
    reasons = dict(data.skipped)
    assert set(reasons) == {"text.png", "empty.jpg", "cut.png", "large.png", "huge.png", "nan.tif", "disguised.png"}
    assert reasons["text.png"] == reasons["disguised.png"] == "not an image of a known format"
    assert reasons["large.png"] == "10000 x 10000 pixels, more than 89 million; make it smaller"
    assert "million pixels" in reasons["huge.png"]
    assert "not finite" in reasons["nan.tif"]
    assert "7 files skipped" in data.notes[1]
    assert "and 3 more" in data.notes[1]


@pytest.mark.parametrize(("mode", "suffix", "size"), [("P", "png", (2, 400_000)), ("RGB", "jpg", (900, 900))])
def test_images_that_take_too_much_to_decode_are_left_out(mode, suffix, size, photos):
    """A tall image takes memory for its rows as well: 82 bytes of a file could ask for a gigabyte."""
    options = {"transparency": 0} if mode == "P" else {}
    Image.new(mode, size).save(photos / f"large.{suffix}", **options)
    data = read_table(photos, image_size=(8, 8), max_bytes=2**22)
    assert data.ids == [f"{i}.png" for i in range(6)]
    ((name, reason),) = data.skipped
    assert name == f"large.{suffix}"
    assert reason.startswith(f"{size[0]} x {size[1]} pixels may take ")
    assert "of memory to decode, 4.19 MB may be used" in reason
    assert len(read_table(photos, image_size=(8, 8), max_bytes=2**27).ids) == 7


def test_too_few_images_are_an_error(tmp_path):
    picture(tmp_path / "one.png")
    (tmp_path / "two\x1b[31m.png").write_text("hello")
    with pytest.raises(FileError, match="1 readable image here; clustering needs at least 2") as caught:
        read_table(tmp_path)
    assert "two\\x1b[31m.png (not an image of a known format)" in str(caught.value)


@posix
def test_links_out_of_the_folder_and_pipes_are_not_followed(photos, tmp_path):
    secret = picture(tmp_path / "secret" / "s.png")
    (photos / "out.png").symlink_to(secret)
    (photos / "folder").symlink_to(secret.parent)
    (photos / "loop").symlink_to(photos)
    (photos / "dead.png").symlink_to(photos / "nothing.png")
    (photos / "inside.png").symlink_to(photos / "1.png")
    os.mkfifo(photos / "pipe.png")
    data = read_table(photos)
    assert data.ids == [*(f"{i}.png" for i in range(6)), "inside.png"]
    assert dict(data.skipped)["out.png"] == "a link that leaves the folder"
    assert dict(data.skipped)["pipe.png"] == "not an ordinary file"
    assert set(dict(data.skipped)) == {"out.png", "pipe.png", "dead.png"}


# ------------------------------------------------------------------ sorting


def summary_of(labels):
    labels = np.asarray(labels)
    W = sparse.csr_array((labels[:, None] == labels).astype(float) + 0.01)
    return summarize_graph(W, labels)


NAMES = [f"{i}.png" for i in range(6)]


def names_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_files_are_copied_into_a_folder_per_cluster(photos, tmp_path):
    target = tmp_path / "sorted"
    sorting.check_target(target, source=photos)
    places = sorting.sort_into(target, photos, NAMES, summary_of([0, 1, 0, 1, 0, 1]))
    assert places[:2] == ["cluster_00/0.png", "cluster_01/1.png"]
    expected = [*places, "index.csv", images.MARKER]
    assert names_in(target) == sorted(expected)
    assert all(
        (target / place).read_bytes() == (photos / name).read_bytes() for place, name in zip(places, NAMES, strict=True)
    )
    assert all((photos / name).exists() for name in NAMES)
    rows = list(csv.DictReader((target / "index.csv").read_text().splitlines()))
    assert [row["file"] for row in rows] == places
    assert list(rows[0]) == ["id", "cluster", "confidence", "second_cluster", "margin", "fits_nowhere", "file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "sorted"]


@posix
def test_files_are_linked(photos, tmp_path):
    places = sorting.sort_into(tmp_path / "sorted", photos, NAMES, summary_of([0, 1, 0, 1, 0, 1]), link=True)
    assert [(tmp_path / "sorted" / place).readlink() for place in places] == [photos / name for name in NAMES]


@posix
def test_no_spreadsheet_finds_a_formula_in_the_index(photos, tmp_path):
    """Not at the start of a name, and not where a line in it would end."""
    names = ["=1+1.png", "x\r=HYPERLINK(1).png", "y\n=1+1.png", "z\x0b=1+1.png", "\t+1.png", "@a.png"]
    for old, new in zip(NAMES, names, strict=True):
        (photos / old).rename(photos / new)
    places = sorting.sort_into(tmp_path / "sorted", photos, names, summary_of([0, 1, 0, 1, 0, 1]))
    text = (tmp_path / "sorted" / "index.csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]
    expected = ["'=1+1.png", "x\r'=HYPERLINK(1).png", "y\n'=1+1.png", "z\x0b'=1+1.png", "'\t'+1.png", "'@a.png"]
    assert [row[0] for row in rows] == expected
    assert [row[-1].replace("'", "") for row in rows] == places
    for name in expected[1:4]:
        assert f'"{name}"' in text


def test_equal_names_do_not_collide(tmp_path):
    names = ["a/x.png", "b/X.png", "b/x__1.png", "x.png", "a/b__y.png", "a/b/x.png", "n.png"]
    places = sorting._places(names, summary_of([0, 0, 0, 0, 0, 0, 1]))
    assert len({place.casefold() for place in places}) == len(names)
    assert places[:2] == ["cluster_00/a__x.png", "cluster_00/b__X.png"]
    assert all(place.count("/") == 1 for place in places)
    assert places[-1] == "cluster_01/n.png"


def test_nothing_that_is_there_is_replaced(photos, tmp_path):
    target = tmp_path / "sorted"
    target.mkdir()
    sorting.check_target(target, source=photos)  # empty: fine
    sorting.sort_into(target, photos, NAMES, summary_of([0, 1, 0, 1, 0, 1]))
    before = names_in(target)
    with pytest.raises(FileError, match="the folder is not empty; choose another, or remove it first"):
        sorting.check_target(target, source=photos)
    with pytest.raises(OSError, match="not empty"):
        sorting.sort_into(target, photos, NAMES, summary_of([0, 0, 0, 1, 1, 1]))
    assert names_in(target) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "sorted"]


def test_bad_targets_are_refused(photos, tmp_path):
    for target, expected in (
        (photos, "the images themselves are in this folder"),
        (tmp_path, "the images themselves are in this folder"),
        (tmp_path / "no" / "where", "its folder does not exist"),
        (photos / "1.png", "this is a file"),
    ):
        with pytest.raises(FileError, match=expected):
            sorting.check_target(target, source=photos)
    if os.name == "posix":
        (tmp_path / "link").symlink_to(photos)
        with pytest.raises(FileError, match="this is a link"):
            sorting.check_target(tmp_path / "link", source=photos)


def test_full_disk_is_refused_before_copying(photos, tmp_path, monkeypatch):
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(sorting.shutil, "disk_usage", lambda _: usage(9, 9, 0))
    with pytest.raises(FileError, match="link=True or another disk"):
        sorting.sort_into(tmp_path / "sorted", photos, NAMES, summary_of([0, 1, 0, 1, 0, 1]))


def test_sorted_folders_are_no_input(photos):
    sorting.sort_into(photos / "sorted", photos, NAMES, summary_of([0, 1, 0, 1, 0, 1]))
    assert read_table(photos).ids == NAMES


def test_bombs_are_never_decoded(photos, monkeypatch):
    from PIL import ImageFile

    decoded = []
    original = ImageFile.ImageFile.load
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: decoded.append(self.size) or original(self))
    bomb(photos / "large.png", 10_000)
    read_table(photos)
    assert decoded
    assert max(decoded) == (8, 8)
