"""Files of a checkpoint: plain arrays and JSON, each there whole or not at all.

After the array of an ``.npy`` file stands its checksum, which NumPy does not read: a piece that was damaged later is
computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from subspaces import __version__
from subspaces.kernels import KERNELS, Kernel
from subspaces.utils.atomic import remove_leftovers, unfinished, write_array, write_atomically, write_text
from subspaces.utils.files import FileError, printable, read_header
from subspaces.utils.process import quiet
from subspaces.utils.types import Array

_FORMAT = 8  # to be raised when the files or what they depend on change


def save(path: Path, array: Array) -> None:
    """Write one array to an ``.npy`` file."""
    with write_atomically(path) as stream:
        _write(stream, array)


def _write(stream: BinaryIO, array: Array) -> None:
    write_array(stream, array)
    stream.write(_checksum(array))


def _checksum(array: Array) -> bytes:
    """Return the CRC-32 of values, type and shape."""
    array = np.ascontiguousarray(array)
    return zlib.crc32(array.data, zlib.crc32(f"{array.dtype.str} {array.shape}".encode())).to_bytes(4, "little")


def save_folder(target: Path, **arrays: Array) -> None:
    """Write arrays as ``.npy`` files of a folder, which appears when it is complete.

    Where another run, or a lost worker, was faster, theirs stays.
    """
    with unfinished(target) as temporary:
        temporary.mkdir()  # no parents: a task that outlives its run must not bring a removed folder back
        for name, array in arrays.items():
            with (temporary / f"{name}.npy").open("wb") as stream:
                _write(stream, array)
                stream.flush()
                os.fsync(stream.fileno())
        if target.is_dir() and not is_whole(target):
            with unfinished(target) as damaged:
                os.replace(target, damaged)
        try:
            os.replace(temporary, target)
        except OSError:
            if not target.is_dir():
                raise


def load(path: Path) -> Array | None:
    """Return a saved array, or None if it is missing or damaged."""
    return np.array(mapped(path)) if is_whole(path) else None


def mapped(path: Path) -> Array:
    """Map a saved array; its bytes stay on disk until they are read."""
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


def is_whole(path: Path, *, content: bool = True) -> bool:
    """Check that a file or folder of a checkpoint is there, not cut short and, with `content`, as it was written."""
    if path.is_dir():
        files = list(path.glob("*.npy"))
        return bool(files) and all(is_whole(file, content=content) for file in files)
    try:
        with path.open("rb") as stream, quiet():
            shape, dtype = read_header(stream)
            stream.seek(int(np.prod(shape)) * dtype.itemsize, os.SEEK_CUR)
            checksum = stream.read(5)
            return len(checksum) == 4 and (not content or checksum == _checksum(mapped(path)))
    except Exception:  # damaged bytes fail in too many ways to list
        return False


def absent(paths: list[Path]) -> list[int]:
    """Return the numbers of those that are missing or damaged.

    From the lists of names: a shared file system may remember for a while that a file is not there.
    """
    present = {name for folder in {path.parent for path in paths} if folder.is_dir() for name in folder.iterdir()}
    return [number for number, path in enumerate(paths) if path not in present or not is_whole(path)]


def named_folder(folder: Path, kind: str, settings: Mapping[str, Any]) -> Path:
    """Make a folder for what depends on these settings, named by them; they are written there too."""
    known = {"format": _FORMAT, "version": __version__, **settings}
    text = json.dumps(known, indent=1, sort_keys=True, default=str)
    target = folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    target.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target, own=True)
    if not (target / "settings.json").exists():
        write_text(target / "settings.json", text)
    return target


def identity_of(kernel: Kernel) -> str:
    """Identify a fitted kernel by name and bandwidth, or by class and fields of a user's own."""
    if type(kernel) is KERNELS.get(kernel.name):
        return f"{kernel.name} {kernel.bandwidth!r}"
    return f"{type(kernel).__module__}.{type(kernel).__qualname__}{sorted(vars(kernel).items())!r}"
