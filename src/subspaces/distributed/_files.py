"""Files of a checkpoint: plain arrays and JSON, each there whole or not at all."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from subspaces._typing import Array
from subspaces.io import write_atomically

_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


def save(path: Path, array: Array) -> None:
    """Write one array as ``.npy``."""
    with write_atomically(path) as stream:
        np.lib.format.write_array(stream, array, allow_pickle=False)


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
        np.savez(stream, allow_pickle=False, **arrays)


def load(path: Path) -> Array | None:
    """A saved array, or None if there is none that can be read."""
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except _UNREADABLE:
        return None


def load_several(path: Path) -> dict[str, Array] | None:
    """Saved arrays, or None if they cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _UNREADABLE:
        return None


def mapped(path: Path) -> Array:
    """A saved array whose bytes stay on disk until they are read."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def digest(array: Array) -> str:
    """Hexadecimal name of the content of an array."""
    found = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:32]


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed run was writing: nothing under such a name is ever read."""
    for pattern in (".data-*.tmp", ".labels-*.tmp", ".graph-*.tmp", "graph-*/.rows-*.tmp"):
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
