"""Text tables: bytes (packed or not, bounded), encodings, and the dialect seen from the first lines."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from subspaces.app.files.cells import kind_of
from subspaces.app.files.head import usual_width
from subspaces.utils.files import FileError, check_size, printable, readable_bytes

SEPARATORS = {".csv": ",;\t", ".tsv": "\t", ".txt": ",;\t "}
"""Candidate separators of cells for each suffix; a blank stands for any number of them."""

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tabulator", " ": "blank"}

MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of a table: 88 were measured for counts of which 1 % are not zero."""

MAX_LINE = 2**26
"""Longest line read, in bytes: a packed file may hide gigabytes without a line break."""

MAX_CELLS = 2**20

SAMPLE, SAMPLE_CHARACTERS = 50, 2**20
"""Rows looked at before a table is read, and characters after which the looking ends (with 3 rows)."""

_COMMENT = ("#", "%", "//")
_ALWAYS = 2**23  # bytes that any packed table may unpack to: some seconds of reading
_PER_CHARACTER, _PER_CELL = 32, 300  # bytes of a line while it is cut into cells, and of the columns they begin
Row = tuple[int, list[str]]
"""Line number and cells."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Layout:
    """Properties of a table known before its rows are read."""

    notes: tuple[str, ...] = ()
    delimiter: str = ","
    encoding: str = ""
    is_sheet: bool = False  # rows end with their last cell that is not empty


# ------------------------------------------------------------------ bytes


def check_ratio(path: Path, unpacked: int, packed: int, remedy: str) -> None:
    """Refuse a table that unpacks to far more than tables do: kilobytes may keep a parser busy for hours."""
    if unpacked > max(_ALWAYS, MAX_RATIO * packed):
        raise FileError(path, f"unpacks to more than {MAX_RATIO} times its {readable_bytes(packed)}; {remedy}")


class _Bounded(io.RawIOBase):
    """Stream of a file, or of the content of a ``.gz``: no endless line, and no more than memory holds."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self.max_bytes, self.max_line = path, max_bytes, min(MAX_LINE, 1000 + max_bytes // _PER_CHARACTER)
        self.n_read = self.in_line = 0
        self.is_packed, self.size = path.suffix.lower() == ".gz", path.stat().st_size
        self.stream = gzip.GzipFile(path, "rb") if self.is_packed else path.open("rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.stream.read(len(buffer))
        self.n_read += len(data)
        if self.is_packed:
            check_size(self.path, self.n_read, self.max_bytes, "unpacks to more than")
            check_ratio(self.path, self.n_read, self.size, "if that is right, unpack it first with gunzip")
        end = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self.in_line = self.in_line + len(data) if end < 0 else len(data) - end
        if self.in_line > self.max_line:
            check_size(self.path, _PER_CHARACTER * self.in_line, self.max_bytes, "a line needs more than")
            raise FileError(self.path, f"a line of more than {self.max_line} bytes; is this a table?")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


def open_unpacked(path: Path, max_bytes: int) -> io.BufferedReader:
    """Open a file, or the content of a ``.gz``, for bounded reading."""
    return io.BufferedReader(_Bounded(path, max_bytes), 2**16)


def find_encoding(path: Path, max_bytes: int) -> str:
    """Return the encoding by content: UTF-16 by its mark or its zeros, UTF-8 if all bytes are, else Windows-1252."""
    with open_unpacked(path, max_bytes) as stream:
        head = stream.peek(2)[:1000]
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
            if 2 * zeros.count(0) > max(len(zeros), 2):
                return encoding
        try:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            while text.read(2**16):
                pass
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8-sig"


@contextmanager
def open_text(path: Path, max_bytes: int) -> Iterator[tuple[Iterator[Row], Layout]]:
    """Open the rows of a text file, with its layout; the suffix gives the candidate separators."""
    candidates = SEPARATORS[Path(path.name.lower().removesuffix(".gz")).suffix]
    encoding = find_encoding(path, max_bytes)
    with io.TextIOWrapper(open_unpacked(path, max_bytes), encoding=encoding, newline="") as stream:
        lines = iter(stream)
        sample = take_sample(lines, len, _is_content)
        n = _count_comments(sample)
        delimiter = find_delimiter(sample[n:], candidates)
        notes = () if encoding != "cp1252" else ("the file is not UTF-8 and was read as Windows-1252",)
        if n:
            which = "line 1 is a comment" if n == 1 else f"lines 1 to {n} are comments"
            was = "was" if n == 1 else "were"
            notes = (*notes, f"{which} and {was} left out")
        rows = _rows(path, chain(sample[n:], lines), delimiter, n, max_bytes)
        yield rows, Layout(notes, delimiter, encoding)


def _rows(path: Path, lines: Iterator[str], delimiter: str, n_before: int, max_bytes: int) -> Iterator[Row]:
    """Yield the cells of every line that is not blank, with its number."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    numbered = enumerate(map(str.split, lines), 1) if delimiter == " " else ((reader.line_num, row) for row in reader)
    most = min(MAX_CELLS, max_bytes // _PER_CELL)
    try:
        for number, row in numbered:
            line = n_before + number
            if len(row) > most:
                check_size(path, _PER_CELL * len(row), max_bytes, "a line needs")
                problem = f"{len(row)} cells in a line, more than {MAX_CELLS}; save the table as .npy"
                raise FileError(path, problem, line=line)
            if row:
                yield line, row
    except csv.Error as error:
        problem = f"the quoting is broken ({printable(error)}); check the quotes of this line"
        raise FileError(path, problem, line=n_before + reader.line_num) from error


# ------------------------------------------------------------------ dialect


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Split lines, up to the first with broken quotes, into the cells of rows that are not blank."""
    rows: list[list[str]] = []
    try:
        for row in map(str.split, lines) if delimiter == " " else csv.reader(lines, delimiter=delimiter):
            rows.append(row)
    except csv.Error:
        pass
    return [row for row in rows if row]


def find_delimiter(lines: Sequence[str], candidates: Sequence[str]) -> str:
    r"""Return the separator that gives most rows of one length, then most numbers, then the first candidate.

    Examples
    --------
    >>> find_delimiter(["a;b\n", "1,5;2,5\n"], ",;"), find_delimiter(["a,b\n", "1,c;d\n"], ",;")
    (';', ',')
    """

    def score(delimiter: str) -> tuple[int, float]:
        rows = _split(lines, delimiter)
        width, n = usual_width(rows)
        if width < 2:
            return 0, 0.0
        alike = [row for row in rows if len(row) == width]
        cells = [cell for row in alike[len(alike) > 1 :] for cell in row]
        return n, sum(kind_of(cell, ".") == "number" for cell in cells) / len(cells)

    return max(candidates, key=score)


def _count_comments(lines: Sequence[str]) -> int:
    """Count the comments above the table, with blank lines between them; 0 where all is comment."""
    first = next((i for i, line in enumerate(lines) if _is_content(line)), 0)
    return max((i + 1 for i in range(first) if lines[i].strip()), default=0)


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(_COMMENT)


def take_sample(
    items: Iterator[Item], length: Callable[[Item], int], counts: Callable[[Item], bool] = lambda _: True
) -> list[Item]:
    """Take the lines or rows that show how a table is laid out: `SAMPLE` that count, fewer if they are long."""
    taken: list[Item] = []
    n = n_characters = 0
    for item in items:
        taken.append(item)
        n += counts(item)
        n_characters += length(item)
        if n == SAMPLE or (len(taken) > 2 and n_characters > SAMPLE_CHARACTERS):
            break
    return taken
