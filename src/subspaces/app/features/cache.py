"""Vectors that were computed once: a small file for each in the user's cache folder, bounded, checked when read.

``SUBSPACES_CACHE`` names another folder, or switches the cache off ("off" or empty). A cache that cannot be used (a
full disk, another's folder, damaged bytes) is never an error: vectors are then computed again.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from subspaces.utils.atomic import unfinished
from subspaces.utils.files import user_cache
from subspaces.utils.types import Array

VARIABLE = "SUBSPACES_CACHE"
FOLDER = "vectors"
MAX_BYTES = 2**30
"""Bytes of vectors that are kept at most; beyond, the oldest go, until half is left."""


def folder() -> Path | None:
    """Return the folder of the cache; None if it is switched off."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return user_cache() / FOLDER
    return None if given.strip().lower() in ("", "0", "off", "no", "none") else Path(given) / FOLDER


class Cache:
    """The vectors of one extractor in a folder; in None, there are none and nothing is kept."""

    def __init__(self, place: Path | None, identity: str) -> None:
        self.place = None if place is None else place / hashlib.sha256(identity.encode()).hexdigest()

    def get(self, item: bytes) -> Array | None:
        """Return a vector that is known and whole."""
        if self.place is not None:
            with suppress(OSError):
                stored = (self.place / item.hex()).read_bytes()
                if len(stored) > 4 and stored[:4] == _checksum(stored[4:]):
                    return np.frombuffer(stored[4:], dtype="<f4")
        return None

    def put(self, item: bytes, vector: Array) -> None:
        """Keep a vector, whole or not at all."""
        if self.place is not None:
            values = np.ascontiguousarray(vector, dtype="<f4").tobytes()
            try:
                self.place.mkdir(parents=True, exist_ok=True)
                with unfinished(self.place / item.hex()) as building:
                    building.write_bytes(_checksum(values) + values)
                    os.replace(building, self.place / item.hex())
            except OSError:
                self.place = None


@contextmanager
def opened(identity: str) -> Iterator[Cache]:
    """Open the cache for an extractor of this identity; forget old vectors at the end."""
    place = folder()
    yield Cache(place, identity)
    if place is not None:
        with suppress(OSError):
            found = [(path.stat(), path) for path in place.glob("*/*")]
            total = sum(info.st_size for info, _ in found)
            if total > MAX_BYTES:
                for info, path in sorted(found, key=lambda item: item[0].st_mtime_ns):
                    path.unlink(missing_ok=True)
                    total -= info.st_size
                    if total <= MAX_BYTES // 2:
                        break


def _checksum(values: bytes) -> bytes:
    return zlib.crc32(values).to_bytes(4, "little")
