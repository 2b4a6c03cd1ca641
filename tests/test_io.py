"""Readers and writers: every format, every way a file can be wrong, and nothing is ever executed."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import stat
import struct
import sys
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse

from subspaces.io import READERS, WRITERS, FileError, check_output, read_table, write_atomically, write_labels
from subspaces.io._matlab5 import list_matrices, read_matrix
from subspaces.io._text import looks_like_header

h5py = pytest.importorskip("h5py")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def points():
    rng = np.random.default_rng(7)
    return rng.normal(size=(12, 4)), np.repeat(["cat", "dog", "elk"], 4), [f"img{i}" for i in range(12)]


def refusal(path, **options):
    """The one line with which a file is refused."""
    with pytest.raises(FileError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith(str(path))
    return text


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def save_mat73(path, arrays):
    """What MATLAB's save -v7.3 writes: HDF5 behind 512 bytes of text, axes in column-major order."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            file.create_dataset(name, data=np.asarray(value).T).attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
    return path


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.write_text, (self.trace, "executed")


# ------------------------------------------------------------------ formats


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".CSV", ".csv.gz", ".tsv.gz", ".parquet"])
def test_tables_come_back(tmp_path, points, suffix):
    X, y, ids = points
    frame = pd.DataFrame(X, columns=["a", "b", "c [red]", "x.1"]).assign(species=y, name=ids)
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if "tsv" in suffix.lower() else ",")
    data = read_table(path, label="species", id="name", ignore=["b"])
    np.testing.assert_array_equal(data.X, X[:, [0, 2, 3]])
    assert [data.classes[code] for code in data.y] == y.tolist()
    assert data.ids == ids
    assert data.feature_names == ["a", "c [red]", "x.1"]
    assert data.source == path
    assert data.notes == ()


@pytest.mark.parametrize("save", ["npz", "compressed", "mat5", "packed mat5", "mat73"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int16"])
def test_named_arrays_come_back(tmp_path, points, save, dtype):
    X = np.asarray(np.abs(points[0]) * 20).astype(dtype)
    y, number = np.repeat([3, 1, 2], 4), np.arange(100, 112)
    arrays = {"X": X, "y": y, "number": number}
    path = tmp_path / ("a.npz" if save in ("npz", "compressed") else "a.mat")
    match save:
        case "npz":
            np.savez(path, **arrays)
        case "compressed":
            np.savez_compressed(path, **arrays)
        case "mat73":
            save_mat73(path, {"X": X, "y": y[:, None], "number": number[None]})
        case _:
            scipy.io.savemat(path, {**arrays, "y": y[:, None]}, do_compression=save == "packed mat5")
    data = read_table(path, label="y", id="number")
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == dtype
    assert [int(data.classes[code]) for code in data.y] == y.tolist()
    assert data.ids == number.tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "bool"])
def test_npy_comes_back(tmp_path, points, dtype):
    X = points[0].astype(dtype)
    np.save(tmp_path / "x.npy", X)
    data = read_table(tmp_path / "x.npy")
    np.testing.assert_array_equal(data.X, X)
    assert data.X.dtype == dtype


def test_images_are_flattened(tmp_path):
    images = np.arange(5 * 3 * 2).reshape(5, 3, 2)
    np.save(tmp_path / "x.npy", images)
    np.savez(tmp_path / "x.npz", images=images, y=np.arange(5))
    scipy.io.savemat(tmp_path / "x.mat", {"images": images})
    for suffix in (".npy", ".npz", ".mat"):
        data = read_table(tmp_path / f"x{suffix}")
        np.testing.assert_array_equal(data.X, images.reshape(5, 6))
        assert "5 points of 3 x 2 values each" in data.notes[0]


def test_float32_parquet_stays_float32_and_index_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}, dtype="float32", index=["p", "q", "r"])
    frame.to_parquet(tmp_path / "x.parquet")
    data = read_table(tmp_path / "x.parquet")
    assert data.X.dtype == np.float32
    assert data.feature_names == ["a", "b"]
    assert data.ids == ["p", "q", "r"]
    assert "row names" in data.notes[0]


def test_parquet_takes_integers_booleans_and_decimals_in_several_groups(tmp_path):
    from decimal import Decimal

    table = pa.table({"i": [1, 2, 3], "b": [True, False, True], "d": [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    expected = [[1, 1, 1.5], [2, 0, 2.5], [3, 1, 3.5]]
    np.testing.assert_array_equal(read_table(tmp_path / "x.parquet").X, expected)


# ------------------------------------------------------------------ which array, which column


def test_labels_are_never_used_unasked(tmp_path, points):
    X, y, _ = points
    np.savez(tmp_path / "x.npz", X=X, y=y)
    data = read_table(tmp_path / "x.npz")
    assert data.y is None
    assert data.notes == ("the file also holds 'y', one value per point: --label y scores it",)
    pd.DataFrame(X).assign(label=0).to_csv(tmp_path / "x.csv", index=False)
    data = read_table(tmp_path / "x.csv")
    assert data.X.shape == (12, 5)
    assert "--label label" in data.notes[0]


def test_scale_is_applied_if_scalar(tmp_path):
    X = np.array([[0, 4080], [2040, 1]], dtype=np.int16)
    np.savez(tmp_path / "x.npz", X=X, scale=1 / 4080)
    data = read_table(tmp_path / "x.npz")
    np.testing.assert_allclose(data.X, X / 4080)
    assert "scale" in data.notes[0]
    np.savez(tmp_path / "f.npz", X=X.astype(np.float32), scale=0.5)
    assert read_table(tmp_path / "f.npz").X.dtype == np.float32
    np.savez(tmp_path / "v.npz", X=X, scale=np.array([1.0, 2.0]))
    np.testing.assert_array_equal(read_table(tmp_path / "v.npz").X, X)
    np.savez(tmp_path / "nan.npz", X=X, scale=np.nan)
    assert "'scale' is nan" in refusal(tmp_path / "nan.npz")


def test_array_is_chosen_or_asked_for(tmp_path, points):
    X = points[0]
    path = tmp_path / "x.npz"
    np.savez(path, points=X, other=np.arange(12), n=3)
    np.testing.assert_array_equal(read_table(path).X, X)
    np.savez(path, fea=X, extra=X + 1, gnd=np.arange(12))
    np.testing.assert_array_equal(read_table(path).X, X)
    np.savez(path, A=X, B=X + 1)
    text = refusal(path)
    assert "--array" in text
    assert "'A' (12 x 4); 'B' (12 x 4)" in text
    np.testing.assert_array_equal(read_table(path, array="B").X, X + 1)
    assert "it holds 'A' (12 x 4)" in refusal(path, array="C")
    np.savez(path, A=X, v=np.arange(12), text=np.array(["a"] * 12))
    assert "1 dimensions" in refusal(path, array="v")
    assert "not an array of numbers" in refusal(path, array="text")


def test_companions_must_fit(tmp_path, points):
    X = points[0]
    scipy.io.savemat(tmp_path / "x.mat", {"fea": X.T, "gnd": np.arange(12)[:, None], "name": "hello"})
    assert "transposed" in refusal(tmp_path / "x.mat", label="gnd")
    assert "is not in the file" in refusal(tmp_path / "x.mat", label="y")
    assert "class char" in refusal(tmp_path / "x.mat", id="name")


def test_columns_must_exist(tmp_path):
    path = write(tmp_path / "x.csv", "length,width,width\n1,2,3\n")
    assert "the columns are 'length', 'width', 'width'; did you mean 'length'?" in refusal(path, label="lenght")
    assert "2 columns are called 'width'" in refusal(path, ignore=["width"])
    path = write(tmp_path / "y.csv", "a,b\n1,2\n")
    assert "no column is left" in refusal(path, label="a", ignore=["b"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x.npy", {"label": "y"}),
        ("x.npy", {"id": "y"}),
        ("x.npy", {"array": "X"}),
        ("x.csv", {"array": "X"}),
        ("x.npz", {"ignore": ["X"]}),
        ("x.parquet", {"header": False}),
    ],
)
def test_options_without_meaning_are_refused(tmp_path, name, options):
    (tmp_path / name).touch()
    assert f"--{next(iter(options))} has no meaning" in refusal(tmp_path / name, **options)


# ------------------------------------------------------------------ text


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("x,y", "1,2", True),
        ("1,2", "3,4", False),
        ("5.1,setosa", "4.9,setosa", False),
        ("length,species", "4.9,setosa", True),
        ("0,1,species", "4.9,3,setosa", True),
        (",0,1", "0,4.9,3", True),
        (",1.5,2", "3,4.9,3", False),
        ("nan,1", "2,3", False),
        ("1e-3,+4.", "2,3", False),
        ("a,b", "c,d", True),
        ("2019_04,1", "2019_05,2", False),
    ],
)
def test_header_detection(first, second, expected):
    assert looks_like_header(first.split(","), second.split(",")) is expected


def test_header_can_be_forced(tmp_path):
    path = write(tmp_path / "x.csv", "0,1,2\n3,4,5\n6,7,8\n")
    data = read_table(path)
    assert data.X.shape == (3, 3)
    assert data.feature_names is None
    assert "--header" in data.notes[0]
    data = read_table(path, header=True)
    np.testing.assert_array_equal(data.X, [[3, 4, 5], [6, 7, 8]])
    assert data.feature_names == ["0", "1", "2"]


def test_columns_without_header_are_numbered(tmp_path):
    path = write(tmp_path / "x.csv", "1,2,cat\n3,4,dog\n")
    data = read_table(path, label="3")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.classes == ["cat", "dog"]


def test_row_names_of_pandas_and_r_are_ids(tmp_path):
    pd.DataFrame([[1.5, 2], [3, 4]]).to_csv(tmp_path / "p.csv")
    data = read_table(tmp_path / "p.csv")
    np.testing.assert_array_equal(data.X, [[1.5, 2], [3, 4]])
    assert data.ids == ["0", "1"]
    path = write(tmp_path / "r.csv", '"","a","name"\n"1",1.5,"p"\n"2",3,"q"\n')
    data = read_table(path, id="name")
    assert data.ids == ["p", "q"]
    assert "left out" in data.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4",
        "\ufeffa,b\n1,2\n3,4",
        '"a","b"\n"1",2\n\n 3 , 4 \n\n\n',
        "a;b\n1;2\n3;4\n",
        "a,b\n1e0,2.0\n+3,0x4\n".replace("0x4", "4"),
    ],
)
def test_dialects(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    data = read_table(path)
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.feature_names == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ": the file is empty"),
        ("\n\n", ": the file is empty"),
        ("a,b\n", "line 1: there is a header but no rows"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 cells where the first line has 2"),
        ("a,b\n1,2\n1\n", "line 3: 1 cells where"),
        ("a,b\n1,2\n\n1,\n", r"line 4, column 'b': missing value; .*--ignore"),
        ("a,b\n1,2\nNA,2\n", "line 3, column 'a': missing value 'NA'"),
        ("a,b\n1,2\n1,nan\n", r"line 3, column 'b': missing value \(NaN\)"),
        ("a,b\n1,2\n1,-inf\n", "line 3, column 'b': -inf is not finite"),
        ("a,b\n1,2\n1,1e999\n", "line 3, column 'b': inf is not finite"),
        ("a,s\n1,cat\n", "line 2, column 's': 'cat' is not a number; use --label s, --id s or --ignore s"),
        ("a,b\n1,2\n3,cat\n", "line 3, column 'b': 'cat' is not a number; correct it or .*--ignore b"),
        ("a,b\n1,2019_04\n", "line 2, column 'b': '2019_04' is not a number"),
        ("a;b\n1;2\n1;3,5\n", "line 3, column 'b': '3,5' is not a number; write decimals with a point"),
        ('a,b\n1,2\n1,"2\n', "line 3: the quoting is broken"),
        ("a,[bold]\x1b[31m\n1,2\nx,\x07[red]\n", r"line 3, column 'a': 'x' is not a number"),
        ("a,[bold]\x1b[31m\n1,2\n1,\x07[/red]\n", r"column '\[bold\]\\x1b\[31m': '\\x07\[/red\]' is not"),
        ("a,b\n1,\x00\n", r"'\\x00' is not a number"),
    ],
)
def test_broken_text_is_located(tmp_path, text, expected):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    assert re.search(expected, refusal(path))


def test_missing_label_is_located(tmp_path):
    path = write(tmp_path / "x.csv", "a,s\n1,none\n2,-\n")
    assert read_table(path, label="s").classes == ["none", "-"]
    path = write(tmp_path / "x.csv", "a,s\n1,cat\n2,\n")
    assert "line 3, column 's': missing label" in refusal(path, label="s")
    np.savez(tmp_path / "x.npz", X=np.eye(3), y=[1, np.nan, 2])
    assert "column 'y': the label of row 1 is missing" in refusal(tmp_path / "x.npz", label="y")
    pq.write_table(pa.table({"a": [1, 2], "s": ["p", None]}), tmp_path / "x.parquet")
    assert "column 's': row 1 is missing" in refusal(tmp_path / "x.parquet", label="s")


@pytest.mark.parametrize("pack", [False, True])
def test_not_utf8_is_located(tmp_path, pack):
    raw = b"a,b\n1,2\n3,caf\xe9\n"
    path = tmp_path / ("x.csv.gz" if pack else "x.csv")
    path.write_bytes(gzip.compress(raw) if pack else raw)
    assert "line 3: byte 13 (0xe9) is not UTF-8" in refusal(path)


def test_utf16_is_recognised(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("a,b\n1,2\n".encode("utf-16"))
    assert "UTF-16" in refusal(path)


def test_long_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("subspaces.io._text.MAX_LINE", 1000)
    path = write(tmp_path / "x.csv", "a,b\n" + "1" * 2000)
    assert "line 2: more than 1000 characters" in refusal(path)


# ------------------------------------------------------------------ size, damage, pickles


def test_announced_size_is_checked_first(tmp_path):
    zeros = np.zeros((1000, 1000))
    np.savez_compressed(tmp_path / "bomb.npz", X=zeros)
    np.save(tmp_path / "bomb.npy", zeros)
    scipy.io.savemat(tmp_path / "bomb5.mat", {"X": zeros}, do_compression=True)
    with h5py.File(tmp_path / "bomb73.mat", "w") as file:
        file.create_dataset("X", shape=(10**6, 10**6), chunks=(100, 100), dtype="f8")
    with h5py.File(tmp_path / "chunk73.mat", "w") as file:
        file.create_dataset("X", shape=(2, 2), maxshape=(None, None), chunks=(2000, 2000), dtype="f8")
    pq.write_table(pa.table({"a": zeros.ravel()}), tmp_path / "bomb.parquet")
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"0,0,0,0\n" * 10**6))
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(b"0" * 10**7))
    (tmp_path / "bomb.csv").write_bytes(b"0,0,0,0\n" * 10**5)
    bombs = sorted(tmp_path.iterdir())
    assert len(bombs) == 9
    for path in bombs:
        assert re.search(r"only 1 MB of memory may be used", refusal(path, max_bytes=10**6)), path


def test_numpy_header_may_lie(tmp_path):
    path = tmp_path / "x.npy"
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**12)}
        )
    assert "cut short" in refusal(path)
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (-5, 2)})
    assert "negative length" in refusal(path)


def test_numpy_header_of_gigabytes_is_not_read(tmp_path):
    n = 2**26  # NumPy reads what is announced before it compares it with its bound: a file of 65 kB takes 130 MB
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", b"\x93NUMPY\x02\x00" + n.to_bytes(4, "little") + bytes(n))
    tracemalloc.start()
    try:
        assert f"a header of {n} bytes" in refusal(tmp_path / "x.npz")
        assert tracemalloc.get_traced_memory()[1] < n // 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".npy", ".npz", "5.mat", "73.mat", ".parquet", ".csv.gz"])
def test_damaged_files_are_refused(tmp_path, points, suffix):
    X = points[0]
    path = tmp_path / f"x{suffix}"
    match suffix:
        case ".npy":
            np.save(path, X)
        case ".npz":
            np.savez_compressed(path, X=X)
        case "5.mat":
            scipy.io.savemat(path, {"X": X}, do_compression=True)
        case "73.mat":
            save_mat73(path, {"X": X})
        case ".parquet":
            pd.DataFrame(X, columns=list("abcd")).to_parquet(path)
        case _:
            path.write_bytes(gzip.compress(pd.DataFrame(X).to_csv(index=False).encode()))
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
    for name in ("d.npy", "e.npz", "f.mat", "g.parquet", "h.csv"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb(trace)))
    with zipfile.ZipFile(tmp_path / "i.npz", "w") as archive:
        archive.writestr("X.npy", pickle.dumps(Bomb(trace)))
    assert "never loaded" in refusal(tmp_path / "a.npy")
    assert "never loaded" in refusal(tmp_path / "b.npz")
    assert "never loaded" in refusal(tmp_path / "c.npz", label="y")
    for name in "defghi":
        (path,) = tmp_path.glob(f"{name}.*")
        refusal(path)
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
    assert "X[1, 2] is missing (NaN)" in refusal(tmp_path / "n.npy")
    scipy.sparse.save_npz(tmp_path / "s.npz", scipy.sparse.eye_array(3, format="csr"))
    assert "toarray" in refusal(tmp_path / "s.npz")


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


def test_hdf5_links_into_other_files_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["X"] = np.eye(3)
    with h5py.File(tmp_path / "x.mat", "w") as file:
        file["X"] = h5py.ExternalLink("secret.h5", "X")
        file.create_dataset("raw", (3, 3), "f8", external=[(str(tmp_path / "secret.h5"), 0, 72)])
        group = file.create_group("sparse")
        group.attrs["MATLAB_sparse"] = 3
    assert "--array" in refusal(tmp_path / "x.mat")
    assert "not in the file" in refusal(tmp_path / "x.mat", array="X")
    assert "not an array of real numbers" in refusal(tmp_path / "x.mat", array="raw")
    assert "full(X)" in refusal(tmp_path / "x.mat", array="sparse")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["a", "b", "c"], "of type .*string, not numbers; use --label s"),
        ([[1.0], [2.0], [3.0]], "of type list"),
        ([1.0, None, 3.0], "row 1, column 's': missing value; fill it in, use --missing drop"),
        ([1.0, float("nan"), 3.0], "row 1, column 's': missing value; fill it in, use --missing drop"),
    ],
)
def test_odd_parquet_columns_are_refused(tmp_path, column, expected):
    pq.write_table(pa.table({"a": [1, 2, 3], "s": column}), tmp_path / "x.parquet")
    assert re.search(expected, refusal(tmp_path / "x.parquet"))
    assert read_table(tmp_path / "x.parquet", ignore=["s"]).X.shape == (3, 1)


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


def test_nested_parquet_labels_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1, 2, 3], "s": [[1.0], [2.0], [3.0]]}), tmp_path / "x.parquet")
    for option in ("label", "id"):
        assert "labels and identifiers are numbers or texts" in refusal(tmp_path / "x.parquet", **{option: "s"})


def test_empty_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "x.parquet")
    assert "no rows" in refusal(tmp_path / "x.parquet")


@pytest.mark.parametrize(("name", "module"), [("x.parquet", "pyarrow"), ("x.mat", "h5py")])
def test_missing_extra_is_named(tmp_path, monkeypatch, name, module):
    path = tmp_path / name
    save_mat73(path, {"X": np.eye(3)}) if name == "x.mat" else path.touch()
    monkeypatch.setitem(sys.modules, module, None)
    assert 'pip install "subspaces[io]"' in refusal(path)


def test_unknown_names_are_refused(tmp_path):
    assert "no such file" in refusal(tmp_path / "nothing.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "folder" in refusal(tmp_path / "folder.csv")
    for name in ("x.xlsx", "x", "x.gz", "x.json.gz"):
        (tmp_path / name).touch()
        assert all(suffix in refusal(tmp_path / name) for suffix in READERS)


# ------------------------------------------------------------------ writing


@pytest.mark.parametrize("suffix", [*WRITERS, ".CSV"])
@pytest.mark.parametrize("named", [True, False])
def test_labels_come_back(tmp_path, suffix, named):
    labels = np.array([2, 0, 1])
    ids = ["plain", 'quote",comma\ttab', "line\nbreak\ré"] if named else None
    path = tmp_path / f"labels{suffix}"
    write_labels(path, labels, ids=ids, extra={"n_clusters": 3})
    key, expected = ("id", ids) if named else ("row", [0, 1, 2])
    match suffix.lower():
        case ".npy":
            np.testing.assert_array_equal(np.load(path, allow_pickle=False), labels)
            return
        case ".json":
            document = json.loads(path.read_text())
            assert document == {"n_clusters": 3, "labels": [2, 0, 1]} | ({"ids": ids} if named else {})
            return
        case ".parquet":
            frame = pd.read_parquet(path)
        case _:
            frame = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    assert list(frame) == [key, "label"]
    assert frame[key].tolist() == expected
    assert frame["label"].tolist() == [2, 0, 1]


def write_half(path, error):
    with write_atomically(path) as stream:
        stream.write(b"half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError])
def test_failed_writing_leaves_nothing_and_keeps_the_old(tmp_path, error):
    path = tmp_path / "x.csv"
    for old in (None, "old"):
        if old is not None:
            path.write_text(old)
        with pytest.raises(error):
            write_half(path, error)
        assert [file.name for file in tmp_path.iterdir()] == ([] if old is None else ["x.csv"])
        assert old is None or path.read_text() == old


@pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")
def test_written_file_is_an_ordinary_file(tmp_path):
    target, link, plain = tmp_path / "target.csv", tmp_path / "link.csv", tmp_path / "plain"
    plain.touch()
    target.write_text("old")
    link.symlink_to(target)
    write_labels(link, np.array([1]), force=True)
    assert link.is_symlink()
    assert target.read_text() == "row,label\n0,1\n"
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_outputs_are_checked(tmp_path, monkeypatch):
    def problem(name, **options):
        with pytest.raises(FileError) as caught:
            check_output(tmp_path / name, **options)
        return str(caught.value)

    (tmp_path / "old.csv").write_text("a,b\n1,2\n")
    (tmp_path / "folder.csv").mkdir()
    assert "--force" in problem("old.csv")
    check_output(tmp_path / "old.csv", force=True)
    assert "input file" in problem("old.csv", force=True, source=tmp_path / "old.csv")
    assert "choose one of .csv" in problem("x.xlsx")
    assert "without a suffix" in problem("labels")
    assert "folder does not exist" in problem("nowhere/x.csv")
    assert "this is a folder" in problem("folder.csv")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "may not be written to" in problem("x.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "subspaces[io]" in problem("x.parquet")


def test_ids_must_match_labels(tmp_path):
    with pytest.raises(ValueError, match="one id per label"):
        write_labels(tmp_path / "x.csv", np.array([1, 2]), ids=["a"])
    assert not list(tmp_path.iterdir())
