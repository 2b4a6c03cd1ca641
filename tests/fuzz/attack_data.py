"""Hostile files for the tests of the readers."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from subspaces.app.files import FileError

MAT_HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)


def npy_header(shape, descr="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_2_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def write_zip(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def peak_of(run):
    """The most memory that Python and NumPy took while a file was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(FileError) as caught:
            run()
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


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
