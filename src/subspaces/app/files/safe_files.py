"""Which files are opened, and how much of a packed one is unpacked; every reader asks here."""

from __future__ import annotations

import gzip
import io
import stat
from pathlib import Path
from typing import BinaryIO

from subspaces.app.files.dataset import FileError, check_size, readable_bytes

MAX_RATIO = 200
"""How many times its size a packed table may unpack to: 88 were measured for counts of which 1 % are not zero."""

_ALWAYS = 2**23  # bytes that any packed table may unpack to: some seconds of reading


def check_regular(path: Path) -> None:
    """Refuse a pipe or a device, which may be read for ever; a file that is not there is left to its reader."""
    if path.exists() and not path.is_file():
        raise FileError(
            path, "a pipe or device, not an ordinary file; copy it into one, or give a table from a pipe as -"
        )


def inside(path: Path, folder: Path) -> Path:
    """Return the file that a name found in a folder stands for.

    Raises
    ------
    ValueError
        If it is a link that leaves the folder, or no ordinary file.
    """
    resolved = path.resolve(strict=True)
    if not resolved.is_relative_to(folder.resolve()):
        raise ValueError("a link that leaves the folder")
    if not stat.S_ISREG(resolved.stat().st_mode):  # opening a pipe would wait for ever
        raise ValueError("not an ordinary file")
    return resolved


def check_beside(path: Path) -> Path:
    """Refuse a file that belongs to one that was named, but does not lie beside it."""
    try:
        return inside(path, path.parent)
    except ValueError as error:
        raise FileError(path, f"{error}; copy the file itself there") from None


def check_ratio(path: Path, unpacked: int, packed: int, remedy: str) -> None:
    """Refuse a table that unpacks to far more than tables do: kilobytes may keep a parser busy for hours."""
    if unpacked > max(_ALWAYS, MAX_RATIO * packed):
        raise FileError(path, f"unpacks to more than {MAX_RATIO} times its {readable_bytes(packed)}; {remedy}")


class _Unpacked(io.RawIOBase):
    """The bytes of a ``.gz``, not more of them than memory holds or a table would have."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.max_bytes, self.n_read, self.packed = path, max_bytes, 0, path.stat().st_size
        self.stream = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self.stream.read(len(buffer))
        self.n_read += len(data)
        check_size(self.path, self.n_read, self.max_bytes, "unpacks to more than")
        check_ratio(self.path, self.n_read, self.packed, "if that is right, unpack it first with gunzip")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


def open_unpacked(path: Path, max_bytes: int) -> BinaryIO:
    """Open a file to be read; of a ``.gz``, what is packed in it, bounded."""
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    return io.BufferedReader(_Unpacked(path, max_bytes))  # type: ignore[type-var]
