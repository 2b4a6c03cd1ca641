"""Numeric arrays of MATLAB's ``.mat`` files, versions 5 to 7, without SciPy.

`scipy.io.loadmat` (1.17) crashes the interpreter on some damaged files and unpacks without a bound. Numeric arrays
are a small part of the format (MathWorks, "MAT-File Format"), so they are read here: a file is a header of 128
bytes and then elements, each a type, a length and a body. An element is a matrix or a packed matrix; the body of a
matrix is again elements: flags, dimensions, name, values. Bodies are padded to multiples of eight bytes.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from subspaces.utils.files import FileError, printable
from subspaces.utils.types import Array

MATRIX, PACKED = 14, 15

STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""NumPy's name of each numeric element type; MATLAB stores values in the smallest type that holds them."""

OTHER_CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 16: "function_handle", 17: "object"}

SPARSE_CLASS = 5

SPARSE = "a sparse matrix (write full(X) in MATLAB)"

COMPLEX = 0x0800

HEAD = 4096
"""Bytes of a matrix that surely hold everything before its values: 32 dimensions and a name of 63 letters."""


@dataclass(frozen=True)
class ArrayInfo:
    """Description of an array before its values are read."""

    shape: tuple[int, ...]
    kind: str
    """``"number"``, ``"text"``, or in words what else it is (then it is never read)."""
    itemsize: int = 8

    @property
    def is_matrix(self) -> bool:
        """Return True if these can be samples: numbers, and two or more axes longer than one."""
        return self.kind == "number" and sum(length > 1 for length in self.shape) > 1

    @property
    def n_bytes(self) -> int:
        """Return the memory of the values."""
        return math.prod(self.shape) * self.itemsize  # of Python: a hostile shape must not overflow

    def __str__(self) -> str:
        size = printable(" x ".join(str(length) for length in self.shape)) or "scalar"
        return size if self.kind == "number" else f"{size}, {printable(self.kind)}"


class Matrix(NamedTuple):
    """Description of a variable, and the place of its values."""

    info: ArrayInfo
    dtype: np.dtype
    position: int  # of the element in the file
    offset: int  # of the values in the unpacked body


def list_matrices(path: Path) -> dict[str, Matrix]:
    """Find the variables of a file without reading their values."""
    matrices = {}
    size = path.stat().st_size
    with path.open("rb") as stream:
        if stream.read(10).startswith((b"MATLAB 7.3", b"\x89HDF")):
            raise FileError(path, "of MATLAB 7.3 (HDF5); save it with -v7 in MATLAB, or as .npz in Python with h5py")
        order = _byte_order(stream)
        position = 128
        while position + 8 <= size:
            stream.seek(position)
            _, n_bytes = struct.unpack(order + "II", stream.read(8))
            if position + 8 + n_bytes > size:
                raise ValueError(f"the file ends inside the element at byte {position}")
            found = _matrix(_body(stream, position, order, HEAD), position, order)
            if found is not None:
                matrices[found[0]] = found[1]
            position += 8 + n_bytes
    return matrices


def read_matrix(path: Path, matrix: Matrix) -> Array:
    """Read the values of one variable."""
    end = matrix.offset + matrix.info.n_bytes
    with path.open("rb") as stream:
        body = _body(stream, matrix.position, _byte_order(stream), end)
    if len(body) < end:
        raise ValueError("the values are cut short")
    count = math.prod(matrix.info.shape)
    values = np.frombuffer(body, dtype=matrix.dtype, count=count, offset=matrix.offset)
    native = matrix.dtype.newbyteorder("=")
    return np.ascontiguousarray(values.reshape(matrix.info.shape, order="F"), dtype=native)


def _byte_order(stream: BinaryIO) -> str:
    stream.seek(0)
    mark = stream.read(128)[126:128]
    if mark not in (b"IM", b"MI"):
        raise ValueError("no MATLAB header; save it again with -v7")
    return "<" if mark == b"IM" else ">"


def _body(stream: BinaryIO, position: int, order: str, limit: int) -> bytes:
    """Return the first `limit` bytes of the body of the matrix at `position`, unpacked; nothing if it is no matrix."""
    stream.seek(position)
    kind, n_bytes = struct.unpack(order + "II", stream.read(8))
    if kind == MATRIX:
        return stream.read(min(n_bytes, limit))
    if kind != PACKED:
        return b""
    unpacker = zlib.decompressobj()
    # Packing may lengthen data, but never by this much: the first `limit` bytes are in what is read.
    content = unpacker.decompress(stream.read(min(n_bytes, 2 * limit + HEAD)), limit + 8)
    unpacker.decompress(unpacker.unconsumed_tail, HEAD)  # to the end of a short rest: the checksum is compared
    (inner,) = struct.unpack_from(order + "I", content)
    return content[8:] if inner == MATRIX else b""


def _element(body: bytes, offset: int, order: str) -> tuple[int, int, int, int]:
    """Return type, length and start of the element at `offset`, and the offset of the next one."""
    kind, n_bytes = struct.unpack_from(order + "II", body, offset)
    if kind >> 16:  # up to four bytes are stored in the tag itself
        return kind & 0xFFFF, kind >> 16, offset + 4, offset + 8
    return kind, n_bytes, offset + 8, offset + 8 + -(-n_bytes // 8) * 8


def _matrix(body: bytes, position: int, order: str) -> tuple[str, Matrix] | None:
    """Return name and description of a matrix from the beginning of its body; None without name or dimensions."""
    if not body:
        return None
    _, _, start, offset = _element(body, 0, order)
    (flags,) = struct.unpack_from(order + "I", body, start)
    if flags & 0xFF == 17:  # MATLAB's own objects have neither dimensions nor values
        return None
    _, length, start, offset = _element(body, offset, order)
    shape = struct.unpack_from(f"{order}{length // 4}i", body, start)
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"the dimensions {shape} of the element at byte {position} are impossible")
    _, length, start, offset = _element(body, offset, order)
    name = body[start : start + length].decode("latin-1")
    kind = _kind(flags)
    dtype, values = np.dtype("u1"), offset
    if kind == "number" and math.prod(shape) > 0:
        stored, length, values, _ = _element(body, offset, order)
        dtype = np.dtype(order + STORED[stored]) if stored in STORED else dtype
        if stored not in STORED or length != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"the values of the element at byte {position} do not fit its dimensions")
    return (name, Matrix(ArrayInfo(shape, kind, dtype.itemsize), dtype, position, values)) if name else None


def _kind(flags: int) -> str:
    matlab_class = flags & 0xFF
    if matlab_class == SPARSE_CLASS:
        return SPARSE
    if not 6 <= matlab_class <= 15:
        return f"of MATLAB's class {OTHER_CLASSES.get(matlab_class, matlab_class)}"
    return "complex, not real" if flags & COMPLEX else "number"
