"""Vectors that were computed once, kept in the user's cache folder: one SQLite file, bounded, checked when read.

``SUBSPACES_CACHE`` names another folder, or switches the cache off ("off" or empty). A cache that cannot be used (a
full disk, another's folder, damaged bytes) is never an error: vectors are then computed again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import numpy as np

from subspaces.utils.types import Array

VARIABLE = "SUBSPACES_CACHE"
FILE = "features-1.sqlite"
MAX_BYTES = 2**30
"""Vectors that are kept at most; beyond, those not used for longest go."""

_AT_ONCE = 500  # keys in one question; SQLite's own limit is 999 in old versions
_WAIT = 5.0  # seconds for another process that writes
_PAGES = ("page_count", "freelist_count", "page_size")
_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors (extractor BLOB, item BLOB, used REAL, vector BLOB, "
    "PRIMARY KEY (extractor, item)) WITHOUT ROWID"
)


def folder() -> Path | None:
    """Where vectors are kept; None if they are not."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return None if given.strip().lower() in ("", "0", "off", "no", "none") else Path(given)
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "subspaces"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "subspaces"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "subspaces"


class Cache:
    """The vectors of one extractor; without a database, none, and nothing is kept."""

    def __init__(self, database: sqlite3.Connection | None, identity: str) -> None:
        self.database, self.extractor = database, hashlib.sha256(identity.encode()).digest()

    def get(self, items: Sequence[bytes]) -> dict[bytes, Array]:
        """The vectors that are known and whole."""
        found: dict[bytes, Array] = {}
        for start in range(0, len(items), _AT_ONCE):
            some = items[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            where = f"extractor = ? AND item IN ({marks})"
            rows = self._asked(f"SELECT item, vector FROM vectors WHERE {where}", (self.extractor, *some))
            for item, stored in rows:
                vector = _unpacked(stored)
                if vector is not None:
                    found[bytes(item)] = vector
            self._asked(f"UPDATE vectors SET used = ? WHERE {where}", (time.time(), self.extractor, *some))
        return found

    def put(self, vectors: dict[bytes, Array]) -> None:
        """Keep vectors, all of them or none."""
        if self.database is None:
            return
        now = time.time()
        rows = [(self.extractor, item, now, _packed(vector)) for item, vector in vectors.items()]
        try:
            with self.database:
                self.database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
                self._make_room()
        except sqlite3.Error:
            self._give_up()

    def _make_room(self) -> None:
        """Forget what was not used for longest, a quarter more than must go, so that it is not done every time."""
        assert self.database is not None
        pages = {name: self.database.execute(f"PRAGMA {name}").fetchone()[0] for name in _PAGES}
        total = (pages["page_count"] - pages["freelist_count"]) * pages["page_size"]
        if total <= MAX_BYTES:
            return
        running = "SUM(LENGTH(vector)) OVER (ORDER BY used, extractor, item)"
        old = f"SELECT extractor, item FROM (SELECT extractor, item, {running} AS upto FROM vectors) WHERE upto <= ?"
        must_go = total - MAX_BYTES * 3 // 4
        self.database.execute(f"DELETE FROM vectors WHERE (extractor, item) IN ({old})", (must_go,))

    def _asked(self, question: str, values: tuple[object, ...]) -> list[tuple[bytes, bytes]]:
        if self.database is None:
            return []
        try:
            with self.database:
                return self.database.execute(question, values).fetchall()
        except sqlite3.Error:
            self._give_up()
            return []

    def _give_up(self) -> None:
        """Go on without the cache."""
        if self.database is not None:
            with suppress(sqlite3.Error):
                self.database.close()
        self.database = None


@contextmanager
def opened(identity: str) -> Iterator[Cache]:
    """The cache for an extractor of this identity."""
    place = folder()
    database = None if place is None else _database(place)
    if database is None:
        yield Cache(None, identity)
        return
    with closing(database):
        yield Cache(database, identity)


def _database(place: Path) -> sqlite3.Connection | None:
    """The database; a damaged one is replaced by an empty one, and one that cannot be had is None."""
    file = place / FILE
    for is_second_try in (False, True):
        try:
            place.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(file, timeout=_WAIT)
        except (OSError, sqlite3.Error):
            return None
        try:
            with database:
                database.execute(_TABLE)
                database.execute("SELECT extractor, item, used, vector FROM vectors LIMIT 1").fetchall()
            return database
        except sqlite3.OperationalError as error:  # locked, read-only, full; a table of another shape
            database.close()
            if "no such column" not in str(error) or is_second_try:
                return None
        except sqlite3.DatabaseError:  # not a database, or its pages are damaged
            database.close()
            if is_second_try:
                return None
        with suppress(OSError):
            file.unlink()
    return None


def _packed(vector: Array) -> bytes:
    values = np.ascontiguousarray(vector, dtype="<f4").tobytes()
    return zlib.crc32(values).to_bytes(4, "little") + values


def _unpacked(stored: object) -> Array | None:
    """The vector, unless its bytes changed since it was stored."""
    if not isinstance(stored, bytes) or len(stored) < 8 or len(stored) % 4:
        return None
    if zlib.crc32(stored[4:]) != int.from_bytes(stored[:4], "little"):
        return None
    return np.frombuffer(stored[4:], dtype="<f4")
