"""Hostile files for the tests of the readers."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from subspaces.io import FileError, read_table


def refusal(path, **options):
    """The one line with which a file is refused."""
    with pytest.raises(FileError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert path.name in text
    assert len(text) < 1000
    return text


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


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.write_text, (self.trace, "executed")


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
