"""Files of a checkpoint: plain arrays and JSON, each there whole or not at all."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.io import FileError, write_atomically, writing
from subspaces.io.dataset import printable
from subspaces.io.numpy_files import read_header
from subspaces.numerics.process import quiet
from subspaces.numerics.types import Array


def save(path: Path, array: Array) -> None:
    """Write one array as ``.npy``."""
    with write_atomically(path) as stream:
        writing.write_array(stream, array)


def save_rows(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[Array]) -> None:
    """Write an array as ``.npy`` from blocks of its rows, which are never together in memory."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with write_atomically(path) as stream:
        np.lib.format.write_array_header_2_0(stream, header)
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype=dtype).data)


def save_several(path: Path, **arrays: Any) -> None:
    """Write arrays as ``.npz``."""
    with write_atomically(path) as stream:
        np.savez(stream, **arrays)  # no allow_pickle: before NumPy 2.2 it would be stored as one more array


def load(path: Path) -> Array | None:
    """A saved array, or None if there is none that can be read."""
    try:
        return np.array(mapped(path))
    except Exception:  # damaged bytes fail in too many ways to list
        return None


def load_several(path: Path) -> dict[str, Array] | None:
    """Saved arrays, or None if they cannot be read."""
    try:
        # opened here: np.load leaves a file open that it cannot read
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if any(info.compress_type != zipfile.ZIP_STORED for info in file.zip.infolist()):
                return None  # not ours, and what it unpacks to is not bounded by the file
            arrays = {name: file[name] for name in file.files}
    except Exception:
        return None
    return arrays if all(isinstance(array, np.ndarray) for array in arrays.values()) else None


def mapped(path: Path) -> Array:
    """A saved array whose bytes stay on disk until they are read."""
    try:
        with quiet():  # of odd headers, which are read or refused
            with path.open("rb") as stream:
                read_header(stream)  # refuses one that announces gigabytes, which NumPy would ask for
            return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except FileNotFoundError:
        raise
    except Exception as error:
        reason = printable(" ".join(str(error).split()), 120)
        raise FileError(path, f"not an array in NumPy's format, or cut short ({reason}); write it again") from error


def digest(array: Array) -> str:
    """Hexadecimal name of the content of an array."""
    found = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:32]


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed run was writing, but nothing that another run is writing at this moment."""
    for pattern in (".data*.tmp", ".labels-*.tmp", ".graph-*.tmp", "graph-*/.rows-*.tmp"):
        writing.remove_leftovers(folder, pattern)
