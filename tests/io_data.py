"""Files for the tests of the readers: how they are written, refused, and what must never run."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from subspaces.app.files import FileError, read_table

MAT_HEADER = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)


POINTS = np.random.default_rng(7).normal(size=(12, 4))
CLASSES, NAMES = np.repeat(["cat", "dog", "elk"], 4), [f"img{i}" for i in range(12)]
"""Twelve points with their classes and names."""


def refusal(source, read=read_table, **options):
    """The one line with which a file (or several, or a stream) is refused."""
    with pytest.raises(FileError) as caught:
        read(source, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 1000
    if isinstance(source, Path) and "mask" not in options:
        assert text.startswith(str(source))
    return text


def refusal_and_peak(source, **options):
    """The same, with the most memory that Python and NumPy took meanwhile."""
    tracemalloc.start()
    try:
        return refusal(source, **options), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------ how files are written


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def write_zip(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array):
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def npy_header(shape, descr="<f8"):
    """The header of a ``.npy`` file, without values."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_2_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return stream.getvalue()


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.write_text, (self.trace, "executed")


@cache
def workbook():
    """The parts of a small workbook."""
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["a", "b", "c"], [1, 2.5, "x"], [3, "=A2", "y"], [5, True, "x"]):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    with zipfile.ZipFile(stream) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    # texts apart, as Excel writes them and openpyxl does not
    namespace = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/sharedStrings.xml"] = b'<sst xmlns="%s"><si><t>a</t></si><si><r><t>b</t></r></si></sst>' % namespace
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%s"/></Types>' % kind
    parts["[Content_Types].xml"] = parts["[Content_Types].xml"].replace(b"</Types>", override)
    sheet = parts["xl/worksheets/sheet1.xml"]
    parts["xl/worksheets/sheet1.xml"] = sheet.replace(b't="inlineStr"><is><t>b</t></is>', b't="s"><v>1</v>')
    return parts
