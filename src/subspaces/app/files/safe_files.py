"""Which files are opened, and how much of a packed one is unpacked; every reader asks here."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import BinaryIO

from subspaces.utils.files import FileError, check_size, readable_bytes

MAX_RATIO = 200
"""How many times its size a packed table may unpack to: 88 were measured for counts of which 1 % are not zero."""

_ALWAYS = 2**23  # bytes that any packed table may unpack to: some seconds of reading


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
