"""Shared by all readers of files: the error, texts safe for a terminal, ordinary files, sizes, ``.npy`` headers."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from subspaces.utils.process import quiet
from subspaces.utils.spelling import Value, spelled

MAX_HEADER = 10_000
"""Most bytes of a header (NumPy's own bound, which it compares only after it has read them all)."""


def printable(text: object, limit: int = 60) -> str:
    r"""Return text of a file safe for a terminal: one line, control characters as ``\x1b``, at most `limit` long.

    Examples
    --------
    >>> printable("a\x1b[31mred\n")
    'a\\x1b[31mred\\n'
    """
    raw = str(text)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in raw[:limit])
    return shown[:limit] + ("..." if max(len(raw), len(shown)) > limit else "")


def quoted(names: Sequence[str], limit: int = 12) -> str:
    """Join names for an error message: the first `limit`, then how many more there are."""
    shown = ", ".join(f"'{printable(name)}'" for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")


def argument(name: str, value: Value = None) -> str:
    r"""Return the name of an argument of `read_table` for a message, with what to pass if a `value` is given.

    Examples
    --------
    >>> argument("label", "a\x1b")
    'label="a\\x1b"'
    """
    if value is None or isinstance(value, bool):
        return spelled(name, value)
    return spelled(name, printable(value) if isinstance(value, str) else [printable(item) for item in value])


class FileError(ValueError):
    """Error of a file that cannot be used. Its text is one line: file, place, problem, remedy.

    Parameters
    ----------
    path : the file
    problem : the problem and its remedy; text taken from the file must have gone through `printable`
    line : of the file, counted from 1
    column : its name
    remedy : arguments of `read_table` with which it can be used
    """

    def __init__(
        self,
        path: Path | str,
        problem: str,
        *,
        line: int | None = None,
        column: str | None = None,
        remedy: dict[str, Any] | None = None,
    ) -> None:
        self.path, self.problem, self.line, self.column, self.remedy = path, problem, line, column, remedy or {}
        place = printable(path, limit=4096)
        if line is not None:
            place += f", line {line}"
        if column is not None:
            place += f", column '{printable(column)}'"
        super().__init__(f"{place}: {problem}")

    def saying(self, problem: str, path: Path | None = None) -> FileError:
        """Return the same error in other words, or of a file by another name."""
        return FileError(path or self.path, problem, line=self.line, column=self.column, remedy=self.remedy)


def readable_bytes(n_bytes: float) -> str:
    """Format bytes in the unit a person would use."""
    n_bytes = min(n_bytes, 10**300)  # a hostile header announces more than a float can hold
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def check_size(path: Path, n_bytes: int, max_bytes: int, what: str = "its values need") -> None:
    """Refuse a file by what its header announces, before anything of that size is allocated."""
    if n_bytes > max_bytes:
        problem = f"{what} {readable_bytes(n_bytes)}, and only {readable_bytes(max_bytes)} of memory may be used"
        raise FileError(path, f"{problem}; take fewer rows or columns, or a machine with more memory")


def user_cache() -> Path:
    """Return the folder for what is computed or fetched once, in the user's cache folder."""
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        cache = "~/Library/Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "subspaces"


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


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and type of an array from its header; NumPy reads it as a literal, no code runs."""
    version = np.lib.format.read_magic(stream)
    first = version == (1, 0)
    length = stream.read(2 if first else 4)
    announced = int.from_bytes(length, "little")
    if announced > MAX_HEADER:
        raise ValueError(f"a header of {announced} bytes, more than {MAX_HEADER}")
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    with quiet():  # of headers that Python 2 wrote and of odd literals: both are settled here
        shape, _, dtype = read(io.BytesIO(length + stream.read(announced)))
    if any(length < 0 for length in shape):
        raise ValueError(f"negative length in the shape {shape}")
    return shape, dtype
