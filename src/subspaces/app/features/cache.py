"""Vectors that were computed once, kept in the user's cache folder: one SQLite file, bounded, checked when read.

``SUBSPACES_CACHE`` names another folder, or switches the cache off ("off" or empty). A cache that cannot be used (a
full disk, another's folder, damaged bytes) is never an error: vectors are then computed again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from subspaces.utils.files import user_cache
from subspaces.utils.types import Array

VARIABLE = "SUBSPACES_CACHE"
FILE = "features-2.sqlite"
MAX_BYTES = 2**30
"""Bytes of vectors that are kept at most; beyond, the older half goes."""

_AT_ONCE = 500  # keys in one question; SQLite's own limit is 999 in old versions
_WAIT = 5.0  # seconds for another process that writes
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (extractor BLOB, item BLOB, vector BLOB, PRIMARY KEY (extractor, item))"


def folder() -> Path | None:
    """Return the folder of the cache; None if it is switched off."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return user_cache()
    return None if given.strip().lower() in ("", "0", "off", "no", "none") else Path(given)


class Cache:
    """The vectors of one extractor; without a database, none, and nothing is kept."""

    def __init__(self, database: sqlite3.Connection | None, identity: str) -> None:
        self.database, self.extractor = database, hashlib.sha256(identity.encode()).digest()

    def get(self, items: Sequence[bytes]) -> dict[bytes, Array]:
        """Return the vectors that are known and whole."""
        found: dict[bytes, Array] = {}

        def ask(database: sqlite3.Connection) -> None:
            for start in range(0, len(items), _AT_ONCE):
                some = items[start : start + _AT_ONCE]
                places = ", ".join("?" * len(some))
                question = f"SELECT item, vector FROM vectors WHERE extractor = ? AND item IN ({places})"
                rows = database.execute(question, (self.extractor, *some))
                found.update({item: vector for item, stored in rows if (vector := _unpacked(stored)) is not None})

        self._try(ask)
        return found

    def put(self, vectors: dict[bytes, Array]) -> None:
        """Keep vectors, all of them or none."""
        rows = [(self.extractor, item, _packed(vector)) for item, vector in vectors.items()]

        def keep(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            names = ("page_count", "freelist_count", "page_size")
            n_pages, n_free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
            if (n_pages - n_free) * size > MAX_BYTES:
                middle = "(SELECT (MIN(rowid) + MAX(rowid)) / 2 FROM vectors)"
                database.execute(f"DELETE FROM vectors WHERE rowid <= {middle}")

        self._try(keep)

    def _try(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Work in one transaction; after an error go on without the cache."""
        if self.database is None:
            return
        try:
            with self.database:
                work(self.database)
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self.database.close()
            self.database = None


@contextmanager
def opened(identity: str) -> Iterator[Cache]:
    """Open the cache for an extractor of this identity."""
    place = folder()
    cache = Cache(None if place is None else _database(place), identity)
    try:
        yield cache
    finally:
        if cache.database is not None:
            cache.database.close()


def _database(place: Path) -> sqlite3.Connection | None:
    """Open the database; a damaged one is replaced by an empty one, and one that cannot be had is None."""
    for _ in range(2):
        try:
            place.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(place / FILE, timeout=_WAIT)
        except (OSError, sqlite3.Error):
            return None
        try:
            with database:
                database.execute(_TABLE)
                database.execute("SELECT extractor, item, vector FROM vectors LIMIT 1").fetchall()
            return database
        except sqlite3.DatabaseError as error:
            database.close()
            # locked, read-only, full: leave it; else not a database, damaged pages, or a table of another shape
            if isinstance(error, sqlite3.OperationalError) and "no such column" not in str(error):
                return None
        with suppress(OSError):
            (place / FILE).unlink()
    return None


def _packed(vector: Array) -> bytes:
    values = np.ascontiguousarray(vector, dtype="<f4").tobytes()
    return zlib.crc32(values).to_bytes(4, "little") + values


def _unpacked(stored: object) -> Array | None:
    """Return the vector, unless its bytes changed since it was stored."""
    if not isinstance(stored, bytes) or len(stored) < 8 or len(stored) % 4:
        return None
    if zlib.crc32(stored[4:]) != int.from_bytes(stored[:4], "little"):
        return None
    return np.frombuffer(stored[4:], dtype="<f4")
