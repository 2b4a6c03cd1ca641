"""CSV, TSV and other text with the standard library: bytes, lines and cells; never more of them than allowed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

from subspaces.app.files.dataset import Dataset, Request
from subspaces.app.files.dialect import Row, count_comments, find_delimiter, names_in_comment, take_lines
from subspaces.app.files.safe_files import open_unpacked
from subspaces.app.files.text_tables import Layout, dataset_from_rows
from subspaces.utils.files import FileError, check_size, printable

SEPARATORS = {".csv": ",;\t", ".tsv": "\t", ".txt": ",;\t "}
"""What may separate the cells in files of each suffix."""

MAX_LINE = 2**26
"""Longest line read, in characters: a packed file may hide gigabytes without a line break."""

MAX_CELLS = 2**20
"""Most cells of a line."""

MAX_BLANK = 10**6
"""Blank lines read beyond one for each row: two megabytes of a packed file may hide two thousand million of them."""


_PER_CHARACTER, _PER_CELL = 32, 300  # bytes of a line while it is cut into cells, and of the columns they begin


@contextmanager
def open_text(path: Path, request: Request, candidates: str) -> Iterator[tuple[Iterator[Row], Layout]]:
    """Rows of a text file and what is known of them; of the `candidates`, what separates cells is found by itself."""
    with io.TextIOWrapper(open_unpacked(path, request.max_bytes), encoding="utf-8-sig", newline="") as stream:
        try:
            lines = _lines(path, stream, request.max_bytes)
            head = take_lines(lines)
            n = count_comments(head)
            delimiter = find_delimiter(head[n:], candidates)
            is_named = n > 0 and request.header is None
            names = names_in_comment(head[n - 1], head[n:], delimiter) if is_named else None
            notes = (_told_comments(n, names is not None),) if n else ()
            rows = _rows(path, chain(head[n:], lines), delimiter, n, request.max_bytes)
            yield rows, Layout(names, notes, delimiter)
        except UnicodeDecodeError:
            raise _not_utf8(path, request.max_bytes) from None


def read_text(path: Path, request: Request) -> Dataset:
    """Read a table from a text file."""
    with open_text(path, request, SEPARATORS[Path(path.name.lower().removesuffix(".gz")).suffix]) as (rows, layout):
        return dataset_from_rows(path, request, rows, layout)


def _told_comments(n: int, named: bool) -> str:
    which = "line 1 is a comment" if n == 1 else f"lines 1 to {n} are comments"
    if not named:
        return f"{which} and {'was' if n == 1 else 'were'} left out"
    return f"{which}; the names of the columns were taken from {'it' if n == 1 else 'the last'}"


def _rows(path: Path, lines: Iterator[str], delimiter: str, n_before: int, max_bytes: int) -> Iterator[Row]:
    """Cells of every line that is not blank, with its number."""
    reader = _Blanks(lines) if delimiter == " " else csv.reader(lines, delimiter=delimiter, strict=True)
    n_rows, n_blank, most = 0, 0, min(MAX_CELLS, max_bytes // _PER_CELL)
    try:
        for row in reader:
            if row:
                n_rows += 1
                if len(row) > most:
                    check_size(path, _PER_CELL * len(row), max_bytes, "a line needs")
                    problem = f"{len(row)} cells in a line, more than {MAX_CELLS}; save the table as .npy"
                    raise FileError(path, problem, line=n_before + reader.line_num)
                yield n_before + reader.line_num, row
                continue
            n_blank += 1
            if n_blank > MAX_BLANK + n_rows:
                raise FileError(path, f"{n_blank} blank lines so far; remove them", line=n_before + reader.line_num)
    except csv.Error as error:
        problem = f"the quoting is broken ({printable(error)}); check the quotes of this line"
        raise FileError(path, problem, line=n_before + reader.line_num) from error


class _Blanks:
    """Cells between blanks, counted as the csv module counts lines."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.line_num = lines, 0

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.lines:
            self.line_num += 1
            yield line.split()


def _lines(path: Path, stream: IO[str], max_bytes: int) -> Iterator[str]:
    number, most = 0, min(MAX_LINE, 1000 + max_bytes // _PER_CHARACTER)
    while line := stream.readline(most):
        number += 1
        if len(line) == most:
            check_size(path, _PER_CHARACTER * most, max_bytes, "a line needs more than")
            raise FileError(path, f"more than {most} characters; is this a table?", line=number)
        yield line


def _not_utf8(path: Path, max_bytes: int) -> FileError:
    """Find the first line that is not UTF-8; slow, so only done once something is known to be wrong."""
    offset, remedy = 0, "save the file as UTF-8 (in Excel: Save As, CSV UTF-8)"
    with open_unpacked(path, max_bytes) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                where = f"byte {offset + error.start} (0x{byte:02x})"
                if number == 1 and line[:2] in (b"\xff\xfe", b"\xfe\xff"):
                    return FileError(path, f"this is UTF-16 text; {remedy}", line=1)
                return FileError(path, f"{where} is not UTF-8 text; {remedy}", line=number)
            offset += len(line)
    return FileError(path, f"not UTF-8 text; {remedy}")
