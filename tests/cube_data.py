"""Images with many bands for the tests: written as other programs write them, refused in one line."""

from __future__ import annotations

from functools import partial

import numpy as np

from io_data import refusal
from subspaces.app.files import read_cube

ORDERS = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}
TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8", 12: "u2", 13: "u4", 14: "i8", 15: "u8"}
"""Axes of an ENVI file among (rows, columns, bands), slowest first; NumPy's name of each of its data types."""

UTM = "UTM, 1, 1, 500000, 4600000, 10, 20, 33, North, WGS-84, units=Meters"


def small_cube(dtype="f4"):
    """Three rows, four columns, five bands, every value another."""
    return np.arange(60).reshape(3, 4, 5).astype(dtype)


def write_envi(path, values, interleave="bsq", byte_order=0, offset=0, **fields):
    """A header and its data file; `fields` replace or add entries (``data_type=99``), None leaves one out."""
    dtype = np.dtype("<>"[byte_order == 1] + values.dtype.str[1:])
    stored = np.ascontiguousarray(values.transpose(ORDERS.get(interleave, (2, 0, 1))), dtype=dtype)
    path.with_suffix(".dat").write_bytes(bytes(offset) + stored.tobytes())
    codes = {name: code for code, name in TYPES.items()}
    entries = {
        "samples": values.shape[1],
        "lines": values.shape[0],
        "bands": values.shape[2],
        "header offset": offset,
        "data type": codes[values.dtype.str[1:]],
        "interleave": interleave,
        "byte order": byte_order,
        **{name.replace("_", " ").strip(): value for name, value in fields.items()},
    }
    lines = [f"{name} = {value}" for name, value in entries.items() if value is not None]
    path.write_text("\n".join(["ENVI", *lines, ""]), encoding="utf-8")
    return path


cube_refusal = partial(refusal, read=read_cube)
"""The one line with which an image is refused."""
