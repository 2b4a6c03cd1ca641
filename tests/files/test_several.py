"""Several files, patterns, pipes and addresses; pictures that are not read; classes by folder."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from io_data import refusal, write
from subspaces.app.files import FileError, image_files, read_table

# ------------------------------------------------------------------ tables


def test_tables_with_the_same_columns_become_one(tmp_path):
    a = write(tmp_path / "a.csv", "x,y,kind\n1,2,p\n3,4,q\n")
    b = write(tmp_path / "b.csv", "kind;y;x\nr;2,5;1\nq;6;5\n")
    data = read_table([a, b], label="kind")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4], [1, 2.5], [5, 6]])
    assert [data.classes[code] for code in data.y] == ["p", "q", "r", "q"]
    assert data.ids == ["a.csv:2", "a.csv:3", "b.csv:2", "b.csv:3"]
    assert data.notes == (
        "2 files were read as one table (a.csv 2, b.csv 2)",
        "b.csv: numbers are written with decimal commas in this file",
    )
    np.testing.assert_array_equal(read_table(str(tmp_path / "*.csv"), label="kind").X, data.X)


def test_names_of_several_tables_stay_unless_they_meet(tmp_path):
    a = write(tmp_path / "a.csv", "n,x\np,1\nq,2\n")
    b = write(tmp_path / "b.csv", "n,x\nr,1\ns,2\n")
    assert read_table([a, b], id="n").ids == ["p", "q", "r", "s"]
    write(b, "n,x\nq,1\ns,2\n")
    assert read_table([a, b], id="n").ids == ["a.csv:p", "a.csv:q", "b.csv:q", "b.csv:s"]
    (tmp_path / "c").mkdir()
    c = write(tmp_path / "c" / "a.csv", "n,x\nq,1\n")
    assert read_table([a, c], id="n").ids[-1] == f"{c.as_posix()}:q"


def test_dropped_rows_of_several_tables(tmp_path):
    a = write(tmp_path / "a.csv", "x,y\n1,2\n,4\n5,6\n")
    b = write(tmp_path / "b.csv", "x,y\n1,2\n3,4\n")
    data = read_table([a, b], missing="drop")
    assert data.rows.tolist() == [0, 2, 3, 4]
    assert data.n_rows == 5
    assert data.ids == ["a.csv:2", "a.csv:4", "b.csv:2", "b.csv:3"]
    assert data.row_ids == ["a.csv:2", "a.csv:3", "a.csv:4", "b.csv:2", "b.csv:3"]


def test_tables_that_do_not_fit_together_are_refusal(tmp_path):
    a, b = write(tmp_path / "a.csv", "x,y\n1,2\n3,4\n"), write(tmp_path / "b.csv", "x,z\n1,2\n3,4\n")
    assert "a.csv and this file differ in 'y', 'z'; files that are read together need the same" in refusal([a, b])
    write(b, "1,2,3\n4,5,6\n")
    assert f"{b}: 3 columns, and a.csv has 2; files" in refusal([a, b])
    assert "no such file" in refusal([a, tmp_path / "c.csv"])
    assert "no file fits this pattern" in refusal(str(tmp_path / "*.tsv"))
    assert "memory may be used" in refusal([a, a], max_bytes=40)
    with pytest.raises(ValueError, match="path is an empty list"):
        read_table([])


def test_names_with_brackets_are_files_first(tmp_path):
    path = write(tmp_path / "x[1].csv", "1,2\n3,4\n")
    assert read_table(path).X.shape == (2, 2)


@pytest.mark.parametrize("address", ["https://example.com/x.csv", "http:/example.com/x.csv", "S3://bucket/x.npy"])
def test_addresses_get_one_honest_sentence(address):
    text = refusal(address)
    assert text.endswith("files are not fetched from the net; download it first and name the copy")
    assert "://" in text.partition(": ")[0]


# ------------------------------------------------------------------ pipes


def test_pipes_are_tables(tmp_path):
    X = np.array([[1.5, 2], [3, 4]])
    sources = [b"a,b\n1.5,2\n3,4\n", b"1,5;2\n3;4\n", b"1.5 2\n3 4\n", gzip.compress(b"1.5\t2\n3\t4\n")]
    for content in sources:
        data = read_table(io.BytesIO(content))
        np.testing.assert_array_equal(data.X, X)
        assert str(data.source) == "standard input"


def test_pipes_with_mistakes(tmp_path):
    assert refusal(io.BytesIO(b"a,b\n1,2\n1\n")).startswith("standard input, line 3: 1 cell where")
    assert "standard input: the file is empty" in refusal(io.BytesIO(b""))
    assert "standard input: not a table of text" in refusal(io.BytesIO(b"PK\x03\x04nonsense"))
    assert "it holds more than" in refusal(io.BytesIO(b"1,2\n" * 1000), max_bytes=1000)
    with pytest.raises(FileError, match=r"^standard input, line 2: 2 columns hold text"):
        read_table(io.BytesIO(b"a,b,c\n1,x,y\n2,x,y\n"))


# ------------------------------------------------------------------ images


@pytest.fixture
def photos(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    for folder in ("cats", "dogs"):
        (tmp_path / "photos" / folder).mkdir(parents=True)
        for i in range(3):
            Image.fromarray(np.full((8, 8), 20 * i, dtype=np.uint8)).save(tmp_path / "photos" / folder / f"{i}.png")
    return tmp_path / "photos"


def test_images_by_name_and_by_pattern(photos):
    files = [photos / "dogs" / "1.png", photos / "cats" / "2.png", photos / "cats" / "0.png"]
    data = read_table(files)
    assert data.ids == ["cats/0.png", "cats/2.png", "dogs/1.png"]
    assert data.is_image_folder
    assert data.source.resolve() == photos.resolve()
    assert read_table(str(photos / "cats" / "*.png")).ids == ["0.png", "1.png", "2.png"]
    assert read_table([photos / "cats", photos / "dogs"]).ids == read_table(photos).ids
    (photos / "cats" / "notes.txt").write_text("fluffy")
    assert "1 file skipped: notes.txt (not an image)" in read_table(str(photos / "cats" / "*")).notes[1]
    assert "1 readable image here; clustering needs at least 2" in refusal([photos / "cats" / "1.png"])


def test_folders_are_classes(photos):
    data = read_table(photos)
    assert data.notes[1] == 'the images are in 2 folders: label="folder" scores the clusters by them'
    data = read_table(photos, label="folder")
    assert data.classes == ["cats", "dogs"]
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert "the folder of an image is its class ('cats', 'dogs')" in data.notes
    assert 'all images are in one folder, and label="folder" needs one for each class' in refusal(
        photos / "cats", label="folder"
    )
    assert "label of images can only be the subfolder of each, label=\"folder\"; got 'y'" in refusal(photos, label="y")


def test_pictures_of_other_kinds_are_named(photos, monkeypatch):
    monkeypatch.setattr(image_files, "reads_heif", lambda: False)
    for name in ("IMG_1.HEIC", "IMG_2.heic", "IMG_3.heic", "IMG_4.CR2", "film.MP4", "notes.txt"):
        (photos / name).write_bytes(b"whatever")
    data = read_table(photos)
    assert dict(data.skipped).keys() == {"IMG_1.HEIC", "IMG_2.heic", "IMG_3.heic", "IMG_4.CR2", "film.MP4"}
    told = data.notes[-1]
    assert told.startswith("5 files skipped: ")
    assert "IMG_1.HEIC, IMG_2.heic and 1 more (HEIC, which pillow-heif reads: pip install pillow-heif)" in told
    assert "IMG_4.CR2 (a camera's raw file; save it as JPEG or TIFF)" in told
    assert "film.MP4 (a film; save frames of it as images)" in told
    phone = photos.parent / "phone"
    phone.mkdir()
    for i in range(30):
        (phone / f"IMG_{i}.HEIC").write_bytes(b"whatever")
    assert "0 readable images here" in refusal(phone)
    assert "30 files skipped: IMG_0.HEIC, IMG_1.HEIC and 28 more (HEIC, which pillow-heif reads" in refusal(phone)
