"""What is refused, or got over, when files are odd in ways that damage alone does not make them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from io_data import refusal
from subspaces.app.files import READERS, FileError, read_table
from subspaces.datasets import _formats
from subspaces.engine.confidence import summarize_graph
from subspaces.utils.mat_files import list_matrices, read_matrix

# ------------------------------------------------------------------ tables


def test_too_little_memory_is_said_of_the_file(tmp_path, monkeypatch):
    def reader(path, request):
        raise MemoryError

    monkeypatch.setitem(READERS, ".csv", reader)
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    assert "does not fit in memory; use fewer rows or columns" in refusal(tmp_path / "x.csv")


def test_parquet_columns_of_one_name_are_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"]), tmp_path / "x.parquet")
    assert "two columns have the same name; give every column its own" in refusal(tmp_path / "x.parquet")


# ------------------------------------------------------------------ MATLAB


def element(kind, payload):
    return struct.pack("<II", kind, len(payload)) + payload + bytes(-len(payload) % 8)


def matrix(name, values):
    flags, shape = element(6, struct.pack("<II", 6, 0)), element(5, struct.pack("<2i", *values.shape))
    return element(14, flags + shape + element(1, name) + element(9, values.tobytes(order="F")))


def test_matlab_elements_that_are_no_matrices_are_passed_over(tmp_path):
    X = np.arange(12.0).reshape(6, 2)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)
    loose = element(5, struct.pack("<2i", 7, 7))
    of_a_class_of_its_own = element(14, element(6, struct.pack("<II", 17, 0)))
    (tmp_path / "x.mat").write_bytes(header + loose + of_a_class_of_its_own + matrix(b"X", X))
    assert list(list_matrices(tmp_path / "x.mat")) == ["X"]
    np.testing.assert_array_equal(read_table(tmp_path / "x.mat").X, X)


def test_matlab_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"X": np.eye(9)})
    (found,) = list_matrices(path).values()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="cut short"):
        read_matrix(path, found)


def test_text_of_matlab_73_is_no_array_of_numbers(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.mat", "w") as file:  # MATLAB keeps the letters as numbers
        file.create_dataset("X", data=np.full((4, 3), 65, dtype=np.uint16)).attrs["MATLAB_class"] = np.bytes_("char")
    assert "of MATLAB's class char" in refusal(tmp_path / "x.mat", array="X")


def test_images_of_another_size_are_refused(tmp_path):
    path = tmp_path / "faces.mat"
    scipy.io.savemat(path, {"fea": np.ones((6, 7)), "gnd": np.ones((6, 1))})
    with pytest.raises(FileError, match="points have 7 values, images of 4 x 5 pixels have 20"):
        _formats.read_matlab_images(path, (4, 5))
    scipy.io.savemat(path, {"Y": np.ones((2016, 7))})
    with pytest.raises(FileError, match="'Y' has 2016 x 7 values; 2016 pixels of images of 3 subjects"):
        _formats.read_yaleb_crop(path, 3)


def test_labels_of_older_matlab_files_are_found_without_h5py(tmp_path, monkeypatch):
    scipy.io.savemat(tmp_path / "x.mat", {"X": np.eye(4), "y": np.array([[3], [3], [5], [5]])})
    monkeypatch.setattr(_formats, "find_spec", lambda name: None)
    points = _formats.read_arrays(tmp_path / "x.mat")
    np.testing.assert_array_equal(points.y, [0, 0, 1, 1])
    assert points.classes == ["3", "5"]


# ------------------------------------------------------------------ folders of images


@pytest.fixture
def photos(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    (tmp_path / "photos").mkdir()
    noise = np.random.default_rng(0).integers(255, size=(4, 40, 40), dtype=np.uint8)
    for i, pixels in enumerate(noise):
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{i}.png")
    return tmp_path / "photos"


NAMES = [f"{i}.png" for i in range(4)]


def summary_of(*labels):
    codes = np.asarray(labels)
    return summarize_graph(sparse.csr_array((codes[:, None] == codes) + 0.01), codes)


def test_folder_of_which_one_image_can_be_decoded_is_refused(photos):
    for name in NAMES[1:]:  # the headers are whole
        (photos / name).write_bytes((photos / name).read_bytes()[:600])
    assert "1.png" in refusal(photos, image_size=(8, 8))


def test_contact_sheet_shows_what_can_be_read(photos):
    from subspaces.app.files import sorting

    sheet = np.asarray(sorting.contact_sheet([photos / "0.png", photos / "gone.png"]))
    first, second = sheet[:, : sorting.TILE + 4], sheet[:, sorting.TILE + 6 :]
    middle = sorting.TILE // 2
    assert first.std() > 10
    assert (second[middle - 5 : middle + 5, middle - 5 : middle + 5] == 204).all()  # grey


def test_long_names_give_way_to_names_that_are_there():
    from subspaces.app.files.sorting import _places

    places = _places(["a/x.png", "b/x.png", "a__x.png"], summary_of(0, 0, 0))
    assert places == ["cluster_00/a__x_2.png", "cluster_00/b__x.png", "cluster_00/a__x.png"]


def test_target_that_may_not_be_written_is_refused_first(photos, tmp_path, monkeypatch):
    from subspaces.app.files import sorting

    monkeypatch.setattr(sorting.os, "access", lambda *_: False)
    with pytest.raises(FileError, match="may not be written to; choose another"):
        sorting.check_target(tmp_path / "sorted", source=photos)


def test_old_folder_comes_back_if_the_new_one_cannot_take_its_place(photos, tmp_path, monkeypatch):
    from subspaces.app.files import sorting

    target = tmp_path / "sorted"
    sorting.sort_into(target, photos, NAMES, summary_of(0, 1, 0, 1))
    before = sorted(path.relative_to(target) for path in target.rglob("*"))
    rename = Path.rename

    def refuse(self, to):
        if self.suffix == ".tmp":
            raise PermissionError(13, "Permission denied", str(self))
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError):
        sorting.sort_into(target, photos, NAMES, summary_of(0, 0, 0, 1))
    assert sorted(path.relative_to(target) for path in target.rglob("*")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "sorted"]
