"""Files that lead elsewhere, never end, or unpack to far more than they are: refused before it happens."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from io_data import refusal, write
from subspaces.app.features import vectors_of
from subspaces.app.files import FileError, read_cube, read_table

h5py = pytest.importorskip("h5py")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


# ------------------------------------------------------------------ what is opened


def test_folders_of_texts_stay_in_the_folder(tmp_path):
    secret = write(tmp_path / "secret.txt", "the key of the house")
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(3):
        write(folder / f"{i}.txt", f"text number {i}")
    (folder / "out.txt").symlink_to(secret)
    (folder / "zero.txt").symlink_to("/dev/zero")
    (folder / "again.txt").symlink_to(folder / "0.txt")
    os.mkfifo(folder / "pipe.txt")
    data = read_table(folder)
    assert data.ids == ["0.txt", "1.txt", "2.txt", "again.txt"]
    left_out = dict(data.skipped)
    assert left_out.pop("pipe.txt") == "not an ordinary file"
    assert left_out == dict.fromkeys(["out.txt", "zero.txt"], "a link that leaves the folder")
    assert "3 files skipped" in data.notes[0]
    assert "only 100 bytes of memory" in refusal(folder, max_bytes=100)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npy", ".npz", ".mat", ".parquet", ".h5ad", ".xlsx", ".mtx"])
def test_pipes_and_devices_are_not_opened(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        assert "not an ordinary file" in refusal(tmp_path / f"{name}{suffix}")


def test_what_lies_beside_a_file_stays_there(tmp_path):
    secret = write(tmp_path / "secret", "a\nb\n")
    folder = tmp_path / "cells"
    folder.mkdir()
    write(folder / "matrix.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 5\n2 2 7\n")
    (folder / "barcodes.tsv").symlink_to(secret)
    assert "a link that leaves the folder" in refusal(folder)
    np.arange(12, dtype="<f4").tofile(tmp_path / "cube")
    fields = "samples = 2\nlines = 2\nbands = 3\ndata type = 4\ninterleave = bsq\n"
    write(folder / "x.hdr", f"ENVI\n{fields}")
    (folder / "x.dat").symlink_to(tmp_path / "cube")
    with pytest.raises(FileError, match="a link that leaves the folder"):
        read_cube(folder / "x.hdr")
    os.mkfifo(folder / "pipe.png")
    with pytest.raises(FileError, match="not an ordinary file"):
        vectors_of([folder / "pipe.png"], "pixels")


# ------------------------------------------------------------------ what is unpacked


@pytest.mark.parametrize("suffix", [".csv.gz", ".mtx.gz"])
def test_kilobytes_do_not_keep_a_reader_busy(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    head = b"%%MatrixMarket matrix array real general\n1000000 1\n" if "mtx" in suffix else b""
    path.write_bytes(gzip.compress(head + b"1.000000000000\n" * 10**6))
    assert "unpacks to more than 200 times its" in refusal(path, max_bytes=10**10)
    whole = write(tmp_path / "x.csv", "1\n" * 1000)
    assert len(read_table(whole).X) == 1000


def test_lines_are_measured_before_they_become_columns(tmp_path):
    path = write(tmp_path / "x.csv", "10," * 10**6)
    assert "a line needs" in refusal(path, max_bytes=10**8)
    path = write(tmp_path / "y.csv", "1," * (2**20 + 1))
    assert "cells in a line, more than 1048576; save the table as .npy" in refusal(path, max_bytes=10**10)


def test_names_count_as_well(tmp_path):
    rows = "".join(f"{'n' * 200}{i},{i}\n" for i in range(2000))
    path = write(tmp_path / "x.csv", f"name,x\n{rows}")
    for part in ("id", "label"):
        assert "its values need more than" in refusal(path, max_bytes=300_000, **{part: "name"})


def test_texts_of_a_fixed_length_are_measured_first(tmp_path):
    """A data set that was never written takes no room in the file, whatever its texts would take."""
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.random.default_rng(0).normal(size=(200, 3))
        file.create_group("obs").attrs["_index"] = "names"
        file["obs"].create_dataset("names", shape=(200,), dtype="S2000000")
    assert path.stat().st_size < 20_000
    assert "its names need 400 MB" in refusal(path, max_bytes=10**8)


def test_categories_of_parquet_are_named(tmp_path):
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 10), pa.array(["u", "v"]))
    pq.write_table(pa.table({"a": np.arange(20.0), "kind": kinds}), tmp_path / "x.parquet")
    text = refusal(tmp_path / "x.parquet")
    assert "column 'kind': 'u' is not a number; use label=\"kind\"" in text
    assert "dictionary" not in text
