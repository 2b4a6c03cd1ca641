"""Attacks on the readers by files: nothing runs, nothing leaves its folder, and bombs take no memory."""

from __future__ import annotations

import ast
import gzip
import io
import os
import pickle
import re
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import subspaces
from io_data import MAT_HEADER, Bomb, npy, npy_header, refusal, refusal_and_peak, write_zip
from subspaces import datasets
from subspaces.app.files import FileError, read_table

# ------------------------------------------------------------------ no code, no way out of the folder


def test_no_source_file_unpickles_evaluates_or_unpacks():
    """The calls that run or unpack what a file says do not occur."""
    forbidden = {"eval", "exec", "extractall", "extract", "unpack_archive", "Unpickler", "Popen"}
    pickles = {("pickle", "load"), ("pickle", "loads"), ("joblib", "load"), ("yaml", "load"), ("marshal", "loads")}
    pickles |= {("os", "system"), ("subprocess", "run"), ("shelve", "open"), ("pd", "read_pickle")}
    words = "|".join([*forbidden, *(f"{owner}\\.{name}" for owner, name in pickles), "allow_pickle", r"\.load\("])
    found = []
    for file in Path(subspaces.__file__).parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(words, text) else ():
            if isinstance(node, ast.Call):
                called = node.func
                name = getattr(called, "attr", getattr(called, "id", ""))
                owner = getattr(getattr(called, "value", None), "id", "")
                plain = name == "eval" and owner not in ("", "builtins")  # network.eval() is PyTorch's
                if (name in forbidden and not plain) or (owner, name) in pickles:
                    found.append(f"{file.name}:{node.lineno} {owner}.{name}")
                switches = [key.value for key in node.keywords if key.arg in ("allow_pickle", "weights_only")]
                wanted = name == "load" and owner == "torch"
                if any(getattr(switch, "value", None) is not wanted for switch in switches):
                    found.append(f"{file.name}:{node.lineno} pickles are allowed")
                if (owner, name) in {("np", "load"), ("torch", "load")} and not switches:
                    found.append(f"{file.name}:{node.lineno} pickles are not forbidden")
    assert found == []


@pytest.mark.parametrize("name", ["../../X", "/X", "C:\\X", "..\\..\\X", "X\x00", "a/../../X", "\\\\server\\X", "con"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_in_archives_lead_nowhere(tmp_path, name):
    home = tmp_path / "a" / "b"
    home.mkdir(parents=True)
    path = write_zip(home / "x.npz", {f"{name}.npy": npy(np.eye(3))})
    with suppress(FileError):
        assert read_table(path).X.shape == (3, 3)  # the only array, whatever it is called
    if find_spec("PIL") is not None:
        write_zip(home / "coil-20-proc.zip", {f"{name}/obj1__0.png": b"not an image", f"{name}.png": b""})
        with pytest.raises(FileError, match=r"coil-20-proc\.zip"):
            datasets.load_coil20(data_home=home)
    assert {file.name for file in tmp_path.rglob("*") if file.is_file()} <= {"x.npz", "coil-20-proc.zip"}


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tgz", ".zip", ".joblib", ".pkl", ".skops", ".yaml", ".h5"])
def test_archives_and_pickles_are_no_tables(tmp_path, suffix):
    """Links, devices and sparse files in a tar are never met: no tar is ever opened."""
    path, trace = tmp_path / f"x{suffix}", tmp_path / "trace"
    if "t" in suffix and suffix != ".joblib":
        with tarfile.open(path, "w") as archive:
            for name, kind in (("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("tty", tarfile.CHRTYPE)):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "/etc/passwd"
                archive.addfile(member)
    else:
        path.write_bytes(pickle.dumps(Bomb(trace)))
    assert "not one of the known formats" in refusal(path)
    for known in (".csv", ".npy", ".npz", ".mat", ".parquet", ".csv.gz"):  # the same bytes under a name that is read
        path.rename(path.with_name(f"y{known}"))
        path = path.with_name(f"y{known}")
        refusal(path)
    assert not trace.exists()


def test_blank_lines_without_end_are_refused(tmp_path):
    """Kilobytes of a packed file unpack to millions of them: minutes, and not one point."""
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"\n" * 10**7))
    assert "unpacks to more than 200 times its" in refusal(path)
    path.write_bytes(gzip.compress(b"1,2\n\n\n\n3,4\n"))
    assert len(read_table(path).X) == 2  # a few are no harm


def test_odd_file_names_stay_on_one_line(tmp_path):
    name = "a\nb%s{0}\x1b[31m\u202e$(touch x)[red].csv" if os.name == "posix" else "a%s{0}$(touch x).csv"
    path = tmp_path / name
    path.write_text("a,b\n1,x\n3,4\n")
    with pytest.raises(FileError) as caught:
        read_table(path)
    assert str(caught.value).isprintable()
    assert "%s{0}" in str(caught.value)
    path.write_text("a,b\n1,2\n3,4\n")
    assert read_table(path).X.shape == (2, 2)


# ------------------------------------------------------------------ bombs


def test_bombs_behind_honest_headers_take_no_memory(tmp_path):
    """A small array is announced; what follows it, or stands in its place, unpacks to 16 MB and is not unpacked."""
    zeros = bytes(2**24)
    element = struct.pack("<II", 6, 8) + struct.pack("<II", 6, 0) + struct.pack("<II", 5, 8) + struct.pack("<ii", 9, 9)
    element += struct.pack("<II", 1, 1) + b"X".ljust(8, b"\0") + struct.pack("<II", 9, 8) + bytes(8)
    packed = zlib.compress(struct.pack("<II", 14, len(element)) + element + zeros)
    (tmp_path / "tail.mat").write_bytes(MAT_HEADER + struct.pack("<II", 15, len(packed)) + packed)
    write_zip(tmp_path / "header.npz", {"X.npy": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**24) + zeros})
    write_zip(tmp_path / "method.npz", {"X.npy": npy(np.eye(3)) + zeros}, zipfile.ZIP_BZIP2)
    (tmp_path / "line.csv.gz").write_bytes(gzip.compress(b"1" * 2**24, 1))
    (tmp_path / "quote.csv.gz").write_bytes(gzip.compress(b'a,b\n1,"' + b"1\n" * 2**23, 1))
    for path in tmp_path.iterdir():
        assert refusal_and_peak(path, max_bytes=2**20)[1] < 2**22, path


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_packed_in_unbounded_ways_are_refused(tmp_path, method):
    """zipfile unpacks bzip2 and LZMA whole, however few bytes are asked for: 4 kB may be 5 GB."""
    path = write_zip(tmp_path / "x.npz", {"X.npy": npy(np.eye(3))}, method)
    assert "NumPy does not use" in refusal(path)
    if find_spec("PIL") is not None:
        write_zip(tmp_path / "coil-100.zip", {"obj1__0.png": bytes(2**20)}, method)
        with pytest.raises(FileError, match="packed in an unusual way"):
            datasets.load_coil100(data_home=tmp_path)


def test_coil_members_that_lie_about_their_size(tmp_path):
    pytest.importorskip("PIL")
    path = write_zip(tmp_path / "coil-20-proc.zip", {"obj1__0.png": bytes(2**25)})
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", 2**25), struct.pack("<I", 1000)))
    assert refusal_and_peak(path, read=lambda path: datasets.load_coil20(data_home=path.parent))[1] < 2**24


def test_packed_text_of_png_is_bounded(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(2):
        image.new("L", (8, 8), i).save(tmp_path / f"{i}.png")
    whole = (tmp_path / "1.png").read_bytes()
    body = b"zTXt" + b"a\0\0" + zlib.compress(bytes(2**24), 9)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    (tmp_path / "2.png").write_bytes(whole[:33] + chunk + whole[33:])
    tracemalloc.start()
    try:
        data = read_table(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert data.ids[:2] == ["0.png", "1.png"]


def parquet_with(n_rows):
    """A table of three rows whose footer announces another number (Thrift: field 3, a zigzag varint)."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0]}), stream, store_schema=False)
    content = stream.getvalue()
    length = struct.unpack("<I", content[-8:-4])[0]
    value, number = b"", 2 * n_rows
    while number > 127:
        value, number = value + bytes([number & 127 | 128]), number >> 7
    footer = content[-8 - length : -8].replace(b"\x16\x06", b"\x16" + value + bytes([number]), 1)
    return content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


@pytest.mark.parametrize(("n_rows", "problem"), [(300, "cut short: 300 rows"), (10**15, "of memory may be used")])
def test_parquet_announces_rows_it_does_not_hold(tmp_path, n_rows, problem):
    """Found by reading: the rows that were not there came back as whatever was in memory."""
    path = tmp_path / "x.parquet"
    path.write_bytes(parquet_with(3))
    assert read_table(path).X.shape == (3, 1)
    path.write_bytes(parquet_with(n_rows))
    assert problem in refusal(path)


def test_arrays_without_values_bring_no_companions(tmp_path):
    """10**12 points without features and as many labels of no letters: no bytes, and a terabyte of Python objects."""
    members = {"X.npy": npy_header((10**12, 0)), "y.npy": npy_header((10**12,), "<U0"), "id.npy": b""}
    path = write_zip(tmp_path / "x.npz", members | {"id.npy": members["y.npy"]})
    assert "nothing to cluster" in refusal(path, label="y", id="id")
    (tmp_path / "x.npy").write_bytes(members["X.npy"])
    assert "nothing to cluster" in refusal(tmp_path / "x.npy")


def test_idx_of_gigabytes_and_of_many_axes(tmp_path):
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x01\0"))
    for shape, problem in [
        ((2**32 - 1,) * 255, "cut short"),  # more than a float can hold
        ((1,) * 65, "damaged"),  # more axes than NumPy has
        ((0, 28, 28), "announces no values"),
        ((2**20, 28, 28), "cut short"),
    ]:
        head = b"\0\0\x08" + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
        (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + bytes(100)))
        with pytest.raises(FileError, match=rf"train-images-idx3-ubyte\.gz.*({problem})"):
            datasets.load_mnist(data_home=tmp_path)
