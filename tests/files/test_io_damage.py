"""Files too large, damaged, odd or hostile: refused in one line before it happens, and nothing is ever executed."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import struct
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from io_data import POINTS, Bomb, npy_header, refusal, write, write_zip
from subspaces.app.features import vectors_of
from subspaces.app.files import READERS, FileError, read_cube, read_table
from subspaces.utils.mat_files import list_matrices, read_matrix

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SPARSE = scipy.sparse.random_array((30, 12), density=0.3, rng=np.random.default_rng(0), format="csr")
PARTS = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr, "shape": SPARSE.shape}
PARTS |= {"format": b"csr"}
"""What ``scipy.sparse.save_npz`` writes."""


def test_announced_size_is_checked_first(tmp_path):
    zeros = np.zeros((1000, 1000))
    np.savez_compressed(tmp_path / "bomb.npz", X=zeros)
    np.save(tmp_path / "bomb.npy", zeros)
    scipy.io.savemat(tmp_path / "bomb5.mat", {"X": zeros}, do_compression=True)
    pq.write_table(pa.table({"a": zeros.ravel()}), tmp_path / "bomb.parquet")
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"0,0,0,0\n" * 10**6))
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(b"0" * 10**7))
    (tmp_path / "bomb.csv").write_bytes(b"0,0,0,0\n" * 10**5)
    scipy.sparse.save_npz(tmp_path / "wide.npz", scipy.sparse.csr_array((1, 10**6)))
    bombs = sorted(tmp_path.iterdir())
    assert len(bombs) == 8
    for path in bombs:
        assert re.search(r"only 1 MB of memory may be used", refusal(path, max_bytes=10**6)), path


def test_numpy_header_may_lie(tmp_path):
    for shape, words in (((10**12, 10**12), "cut short"), ((-5, 2), "negative length")):
        (tmp_path / "x.npy").write_bytes(npy_header(shape))
        assert words in refusal(tmp_path / "x.npy")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mat", ".parquet", ".csv.gz"])
def test_damaged_files_are_refused(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    match suffix:
        case ".npy":
            np.save(path, POINTS)
        case ".npz":
            np.savez_compressed(path, POINTS=POINTS)
        case ".mat":
            scipy.io.savemat(path, {"X": POINTS}, do_compression=True)
        case ".parquet":
            pd.DataFrame(POINTS, columns=list("abcd")).to_parquet(path)
        case _:
            path.write_bytes(gzip.compress(pd.DataFrame(POINTS).to_csv(index=False).encode()))
    whole = path.read_bytes()
    read_table(path)
    for length in sorted({0, 1, 10, 130, len(whole) // 3, len(whole) // 2, len(whole) - 100, len(whole) - 9}):
        if 0 <= length < len(whole):
            path.write_bytes(whole[:length])
            refusal(path)
    path.write_bytes(os.urandom(500))
    refusal(path)
    rng = np.random.default_rng(0)
    for _ in range(30):  # a scrambled file is refused in one line or read as other numbers, nothing else
        scrambled = bytearray(whole)
        for i in rng.integers(len(whole), size=5):
            scrambled[i] = rng.integers(256)
        path.write_bytes(bytes(scrambled))
        with suppress(FileError):
            read_table(path, max_bytes=10**7)


def test_pickles_are_never_loaded(tmp_path):
    trace = tmp_path / "trace"
    bomb = np.array([[Bomb(trace)]], dtype=object)
    np.save(tmp_path / "a.npy", bomb, allow_pickle=True)
    np.savez(tmp_path / "b.npz", X=bomb)
    np.savez(tmp_path / "c.npz", X=np.eye(3), y=np.array([Bomb(trace)] * 3, dtype=object))
    write_zip(tmp_path / "d.npz", {"X.npy": pickle.dumps(Bomb(trace))})
    assert "never loaded" in refusal(tmp_path / "a.npy")
    assert "never loaded" in refusal(tmp_path / "b.npz")
    assert "never loaded" in refusal(tmp_path / "c.npz", label="y")
    refusal(tmp_path / "d.npz")
    read_table(tmp_path / "c.npz")  # an object array that is not asked for is not touched
    assert not trace.exists()


def test_odd_arrays_are_refused(tmp_path):
    np.save(tmp_path / "c.npy", np.eye(3) * 1j)
    assert "complex128" in refusal(tmp_path / "c.npy")
    np.save(tmp_path / "v.npy", np.arange(3))
    assert "two dimensions" in refusal(tmp_path / "v.npy")
    np.save(tmp_path / "e.npy", np.empty((0, 3)))
    assert "nothing to cluster" in refusal(tmp_path / "e.npy")
    bad = np.eye(3)
    bad[1, 2] = np.nan
    np.save(tmp_path / "n.npy", bad)
    assert "row 1, column '2': missing value; fill it in, use missing=\"drop\"" in refusal(tmp_path / "n.npy")
    np.save(tmp_path / "n.npy", np.where(np.arange(3) == 1, np.nan, bad))
    text = refusal(tmp_path / "n.npy", missing="mean")  # of ignore=, which arrays do not know, nothing is said
    assert text.endswith("column '1': every value is missing; leave the column out")


# ------------------------------------------------------------------ sparse


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_archives_of_scipy(tmp_path, kind, container):
    scipy.sparse.save_npz(tmp_path / "x.npz", container(SPARSE).asformat(kind))
    found = read_table(tmp_path / "x.npz").X
    assert isinstance(found, scipy.sparse.csr_array)
    np.testing.assert_array_equal(found.toarray(), SPARSE.toarray())


def test_labels_may_lie_beside_a_sparse_matrix(tmp_path):
    np.savez(tmp_path / "x.npz", **PARTS, y=np.arange(30) % 3, name=np.array([f"p{i}" for i in range(30)]))
    data = read_table(tmp_path / "x.npz", label="y", id="name")
    assert (data.classes, data.ids[:2]) == (["0", "1", "2"], ["p0", "p1"])
    assert "does not give one value for each of the 30" in refusal(tmp_path / "x.npz", label="indptr")
    assert "has no meaning" in refusal(tmp_path / "x.npz", array="data")


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("indices", SPARSE.indices + 50, "do not fit together"),
        ("indices", SPARSE.indices - 50, "do not fit together"),
        ("indices", SPARSE.indices[:-1], "do not fit together"),
        ("indptr", SPARSE.indptr[::-1], "do not fit together"),
        ("indptr", SPARSE.indptr[:-1], "do not fit together"),
        ("data", SPARSE.data[:, None], "do not fit together"),
        ("data", np.where(np.arange(SPARSE.nnz) == 3, np.nan, SPARSE.data), r"row \d+, column \d+ is nan"),
        ("data", np.where(np.arange(SPARSE.nnz) == 3, np.inf, SPARSE.data), r"row \d+, column \d+ is inf"),
        ("shape", np.array([30, -12]), "nothing to cluster"),
        ("shape", np.array([30, 12, 2]), "nothing to cluster"),
        ("shape", np.array([30, 10**15]), "rows and columns need"),
        ("format", np.array(b"dia"), "save X.tocsr"),
        ("format", np.array([b"x" * 900] * 900), "needs"),
    ],
)
def test_sparse_archives_that_lie(tmp_path, part, value, words):
    np.savez(tmp_path / "x.npz", **{**PARTS, part: value})
    assert re.search(words, refusal(tmp_path / "x.npz"))


# ------------------------------------------------------------------ MATLAB and Parquet


def test_odd_matlab_is_refused(tmp_path):
    cell = np.empty((2, 2), dtype=object)
    cell[:] = 1.0
    odd = {"sparse": scipy.sparse.csc_array(np.eye(3)), "cell": cell, "struct": {"a": 1}, "complex": np.eye(3) * 1j}
    scipy.io.savemat(tmp_path / "x.mat", odd)
    assert "full(X)" in refusal(tmp_path / "x.mat", array="sparse")
    assert "class cell" in refusal(tmp_path / "x.mat", array="cell")
    assert "class struct" in refusal(tmp_path / "x.mat", array="struct")
    assert "complex, not real" in refusal(tmp_path / "x.mat", array="complex")


@pytest.mark.parametrize("packed", [True, False])
def test_matlab5_agrees_with_scipy(tmp_path, packed):
    rng = np.random.default_rng(3)
    kinds = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?")
    shapes = ((3, 2), (1, 1), (1, 5), (4, 3, 2), (70, 60))
    arrays = {
        f"{kind.replace('?', 'b1')}_{i}": (rng.normal(size=shape) * 50).astype(kind)
        for kind in kinds
        for i, shape in enumerate(shapes)
    }
    others = {
        "text": "hello",
        "cell": np.array([1, "a"], dtype=object),
        "struct": {"X": np.eye(2)},
        "none": np.empty((0, 3)),
    }
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {**others, **arrays}, do_compression=packed)
    expected = scipy.io.loadmat(path)
    matrices = list_matrices(path)
    shapes_of = {name: shape for name, shape, _ in scipy.io.whosmat(path)}
    shapes_of["text"] = (1, 5)  # SciPy counts strings there, the file letters
    assert {name: matrix.info.shape for name, matrix in matrices.items()} == shapes_of
    assert {name for name, m in matrices.items() if m.info.kind == "number"} == {*arrays, "none"}
    for name in arrays:
        values = read_matrix(path, matrices[name])
        assert values.dtype == expected[name].dtype
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize("order", ["<", ">"])
def test_matlab5_values_in_smaller_types_and_either_byte_order(tmp_path, order):
    def element(kind, payload):
        padding = bytes(-len(payload) % 8)
        return struct.pack(order + "II", kind, len(payload)) + payload + padding

    def matrix(name, stored, values, shape):  # of class double, as MATLAB writes whole numbers
        flags = element(6, struct.pack(order + "II", 6, 0))
        parts = [flags, element(5, struct.pack(order + "2i", *shape)), element(1, name), element(stored, values)]
        return element(14, b"".join(parts))

    X = np.arange(20).reshape(10, 2)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(order + "HH", 0x0100, 0x4D49)
    points = matrix(b"X", 4, X.astype(order + "u2").tobytes(order="F"), (10, 2))
    labels = matrix(b"y", 2, bytes([1, 2] * 5), (10, 1))
    (tmp_path / "x.mat").write_bytes(header + points + labels)
    data = read_table(tmp_path / "x.mat", label="y")
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype.isnative
    assert data.classes == ["1", "2"]
    np.testing.assert_array_equal(scipy.io.loadmat(tmp_path / "x.mat")["X"], X)


def test_damage_that_crashes_scipy_is_refused(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"X": np.eye(7)})
    damaged = bytearray(path.read_bytes())
    at = damaged.index(struct.pack("=II", 9, 7 * 7 * 8))
    damaged[at] = 0x36  # an element type that does not exist: scipy.io.loadmat 1.17 ends the interpreter here
    path.write_bytes(bytes(damaged))
    assert "do not fit its dimensions" in refusal(path)


def test_hdf5_is_not_read(tmp_path):
    for head in (b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512), b"\x89HDF\r\n\x1a\n"):
        (tmp_path / "x.mat").write_bytes(head + bytes(600))
        assert "of MATLAB 7.3 (HDF5); save it with -v7" in refusal(tmp_path / "x.mat")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["a", "b", "b"], "column 's': 'a' is not a number; use label=\"s\""),
        ([[1.0], [2.0], [3.0]], "of type list"),
        ([1.0, None, 3.0], "row 1, column 's': missing value; fill it in, use missing=\"drop\""),
        ([1.0, float("nan"), 3.0], "row 1, column 's': missing value; fill it in, use missing=\"drop\""),
    ],
)
def test_odd_parquet_columns_are_refused(tmp_path, column, expected):
    pq.write_table(pa.table({"a": [1, 2, 3], "s": column}), tmp_path / "x.parquet")
    assert re.search(expected, refusal(tmp_path / "x.parquet"))
    assert read_table(tmp_path / "x.parquet", ignore=["s"]).X.shape == (3, 1)


def test_odd_parquet_tables_are_refused(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "x.parquet")
    assert "no rows" in refusal(tmp_path / "x.parquet")
    pq.write_table(pa.table([[1.0, 2.0], [3.0, 4.0]], names=["a", "a"]), tmp_path / "x.parquet")
    assert "two columns have the same name; give every column its own" in refusal(tmp_path / "x.parquet")


@pytest.mark.parametrize("option", ["label", "id", None])
def test_parquet_texts_are_measured_before_they_are_unpacked(tmp_path, option):
    n, path = 100, tmp_path / "x.parquet"
    name = "s" if option else "__index_level_0__"  # row names are taken unasked
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int32)), pa.array(["x" * 10**5]))
    pq.write_table(pa.table({"a": np.arange(n), name: text}), path, compression="zstd")
    assert path.stat().st_size < 3000
    options = {option: name} if option else {}
    assert "its texts unpack to 10 MB" in refusal(path, max_bytes=10**6, **options)
    data = read_table(path, max_bytes=10**8, **options)
    assert (data.classes if option == "label" else data.ids[:1]) == ["x" * 10**5]


def test_unknown_names_are_refused(tmp_path):
    assert "no such file" in refusal(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "folder" in refusal(tmp_path / "folder.csv")
    for name in ("x.docx", "x", "x.gz", "x.json.gz"):
        (tmp_path / name).touch()
        assert all(suffix in refusal(tmp_path / name) for suffix in READERS)


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


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npy", ".npz", ".mat", ".parquet", ".xlsx"])
def test_pipes_and_devices_are_not_opened(tmp_path, suffix):
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        assert "not an ordinary file" in refusal(tmp_path / f"{name}{suffix}")


def test_what_lies_beside_a_file_stays_there(tmp_path):
    pytest.importorskip("rasterio", reason='GDAL reads ENVI: pip install "subspaces[geo]"')
    folder = tmp_path / "cubes"
    folder.mkdir()
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


def test_kilobytes_do_not_keep_a_reader_busy(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"1.000000000000\n" * 10**6))
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


def test_categories_of_parquet_are_named(tmp_path):
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 10), pa.array(["u", "v"]))
    pq.write_table(pa.table({"a": np.arange(20.0), "kind": kinds}), tmp_path / "x.parquet")
    text = refusal(tmp_path / "x.parquet")
    assert "column 'kind': 'u' is not a number; use label=\"kind\"" in text
    assert "dictionary" not in text
