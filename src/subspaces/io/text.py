"""CSV and TSV with the standard library: one pass, and errors that name line and column."""

from __future__ import annotations

import csv
import gzip
import io
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import IO, BinaryIO, Literal

import numpy as np

from subspaces.io.columns import Columns, choose_columns, keep_out, settle_missing
from subspaces.io.dataset import Dataset, FileError, Request, argument, check_size, printable

MAX_LINE = 2**26
"""Longest line read, in characters: a packed file may hide gigabytes without a line break."""

MAX_BLANK = 10**6
"""Blank lines read beyond one for each row: two megabytes of a packed file may hide two thousand million of them."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Cells that stand for a missing value (compared in lower case)."""

Row = tuple[int, list[str]]
"""Line number and cells."""


def read_csv(path: Path, request: Request, delimiter: str = ",") -> Dataset:
    """Read a table with commas (or, where the first line has none, semicolons) between the cells."""
    with io.TextIOWrapper(_open(path, request.max_bytes), encoding="utf-8-sig", newline="") as stream:
        try:
            return _parse(path, request, _rows(path, stream, delimiter))
        except UnicodeDecodeError:
            raise _not_utf8(path, request.max_bytes) from None


def read_tsv(path: Path, request: Request) -> Dataset:
    """Read a table with tabulators between the cells."""
    return read_csv(path, request, "\t")


def _parse(path: Path, request: Request, rows: Iterator[Row]) -> Dataset:
    first, second = next(rows, None), next(rows, None)
    if first is None:
        raise FileError(path, "the file is empty; it needs one line per point")
    has_header = looks_like_header(first[1], second and second[1]) if request.header is None else request.header
    names = [name.strip() for name in first[1]] if has_header else [str(i + 1) for i in range(len(first[1]))]
    if has_header and second is None:
        raise FileError(path, "there is a header but no rows; it needs one line per point", line=first[0])
    head = [row for row in (first, second) if row is not None]
    columns = choose_columns(path, names, request)
    table = _fill(path, request, chain(head[1:] if has_header else head, rows), names, columns)

    X = np.frombuffer(table.values, dtype=np.float64).reshape(len(table.lines), len(columns.features))
    notes = columns.notes
    if request.header is None and not has_header and _counts(first[1]) and len(names) > 2:
        how = f"{argument('header', True)} makes it names"
        notes += (f"the first line counts 0, 1, 2, ... and was read as a point; {how}",)
    features = [names[i] for i in columns.features]
    data = Dataset(X, path, feature_names=features if has_header else None, notes=notes)
    if columns.label is not None:
        data = replace(data, y=np.array(table.codes, dtype=np.intp), classes=list(table.classes))
    if columns.id is not None:
        data = replace(data, ids=table.ids)
    return settle_missing(data, request.missing, lambda i: f"line {table.lines[i]}", features, table.first_missing)


class _Table:
    """What one pass over the rows collects; plain C buffers, eight bytes per number."""

    def __init__(self) -> None:
        self.values, self.lines, self.codes = array("d"), array("q"), array("q")
        self.classes: dict[str, int] = {}
        self.ids: list[str] = []
        self.first_missing = ""


def _fill(path: Path, request: Request, rows: Iterator[Row], names: Sequence[str], columns: Columns) -> _Table:
    table, width, pick = _Table(), len(names), _picker(columns.features, len(names))
    features, most = [names[i] for i in columns.features], request.max_bytes // 8
    for line, row in rows:
        if len(row) != width:
            remedy = "repair the line (a comma inside a cell needs quotes around the cell)"
            raise FileError(path, f"{len(row)} cells where the first line has {width}; {remedy}", line=line)
        cells = pick(row)
        try:
            numbers = list(map(float, cells))
        except ValueError:
            numbers = _with_gaps(cells)
            if not numbers:
                raise _bad_cell(path, line, cells, features, not table.lines) from None
        if not table.first_missing and math.isnan(sum(numbers)):  # one pass in C: most files have no gap
            table.first_missing = _shown_gap(cells)
        table.values.extend(numbers)
        # Python reads 2019_04 as 201904; in a file that is text.
        if "_" in "".join(cells):
            raise _bad_cell(path, line, cells, features, not table.lines)
        table.lines.append(line)
        if len(table.values) > most:
            check_size(path, len(table.values) * 8, request.max_bytes, "its values need more than")
        if columns.id is not None:
            table.ids.append(row[columns.id])
        if columns.label is not None:
            label = row[columns.label].strip()
            if label.lower() in ("", "nan"):  # not all of MISSING: "none" and "-" are names of classes too
                problem = "missing label; fill it in, leave out the row or do not name a label"
                raise FileError(path, problem, line=line, column=names[columns.label])
            table.codes.append(table.classes.setdefault(label, len(table.classes)))
    return table


def _picker(positions: list[int], width: int) -> Callable[[list[str]], Sequence[str]]:
    if len(positions) == width:
        return lambda row: row
    if len(positions) == 1:
        return lambda row: (row[positions[0]],)
    return itemgetter(*positions)


def _with_gaps(cells: Sequence[str]) -> list[float]:
    """Numbers with NaN where they are missing; empty if a cell is neither."""
    kinds = [kind_of(cell) for cell in cells]
    if "text" in kinds:
        return []
    return [float(cell) if kind == "number" else math.nan for cell, kind in zip(cells, kinds, strict=True)]


def _shown_gap(cells: Sequence[str]) -> str:
    cell = next((cell.strip() for cell in cells if kind_of(cell) == "missing"), "")
    return "(NaN)" if cell.lower() == "nan" else f"'{printable(cell)}'" if cell else ""


def _bad_cell(path: Path, line: int, cells: Sequence[str], names: list[str], is_first: bool) -> FileError:
    """Describe the first cell of a row that is neither a number nor missing."""
    cell, column = next((c, n) for c, n in zip(cells, names, strict=True) if kind_of(c) == "text")
    if is_first:
        remedy = f"use {keep_out(column)} to keep the column out of the points"
    elif kind_of(cell.replace(",", ".")) == "number":
        remedy = "write decimals with a point"
    else:
        remedy = f"correct it or leave the column out with {argument('ignore', [column])}"
    return FileError(path, f"'{printable(cell)}' is not a number; {remedy}", line=line, column=column)


def kind_of(cell: str) -> Literal["number", "missing", "text"]:
    """What a cell holds."""
    if cell.strip().lower() in MISSING:
        return "missing"
    try:
        float(cell)
    except ValueError:
        return "text"
    return "text" if "_" in cell else "number"


def looks_like_header(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Whether the first line names the columns.

    It does when it has text above a number. Text above text decides nothing (a column of class names), so
    then the other cells do: pandas names unnamed columns 0, 1, 2, ...

    Examples
    --------
    >>> looks_like_header(["length", "species"], ["5.1", "setosa"])
    True
    >>> looks_like_header(["4.9", "setosa"], ["5.1", "setosa"])
    False
    >>> looks_like_header(["", "0", "1"], ["0", "5.1", "3.5"])
    True
    """
    kinds = [kind_of(cell) for cell in first]
    if all(kind == "number" for kind in kinds):
        return False
    if second is None:
        return "text" in kinds
    pairs = list(zip(kinds, (kind_of(cell) for cell in second), strict=False))
    if ("text", "number") in pairs or not any(below == "number" for _, below in pairs):
        return "text" in kinds
    numbers = [cell for cell, kind in zip(first, kinds, strict=True) if kind == "number"]
    return len(numbers) > 1 and _counts(numbers)


def _counts(cells: Sequence[str]) -> bool:
    return list(cells) == [str(i) for i in range(len(cells))]


def _rows(path: Path, stream: IO[str], delimiter: str) -> Iterator[Row]:
    """Cells of every line that is not blank, with its number."""
    lines = _lines(path, stream)
    first = next(lines, "")
    if delimiter == "," and "," not in first and ";" in first:
        delimiter = ";"  # spreadsheets write these where the comma is the decimal sign
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    n_rows = n_blank = 0
    try:
        for row in reader:
            if row:
                n_rows += 1
                yield reader.line_num, row
                continue
            n_blank += 1
            if n_blank > MAX_BLANK + n_rows:
                raise FileError(path, f"{n_blank} blank lines so far; remove them", line=reader.line_num)
    except csv.Error as error:
        problem = f"the quoting is broken ({printable(error)}); check the quotes of this line"
        raise FileError(path, problem, line=reader.line_num) from error


def _lines(path: Path, stream: IO[str]) -> Iterator[str]:
    number = 0
    while line := stream.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE:
            raise FileError(path, f"more than {MAX_LINE} characters; is this a table?", line=number)
        yield line


class _Bounded(io.RawIOBase):
    """The bytes of a stream, but not more than `max_bytes` of them."""

    def __init__(self, path: Path, stream: BinaryIO, max_bytes: int) -> None:
        self.path, self.stream, self.max_bytes, self.n_read = path, stream, max_bytes, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self.stream.read(len(buffer))
        self.n_read += len(data)
        check_size(self.path, self.n_read, self.max_bytes, "unpacks to more than")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


def _open(path: Path, max_bytes: int) -> BinaryIO:
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    return io.BufferedReader(_Bounded(path, gzip.open(path, "rb"), max_bytes))  # type: ignore[type-var, arg-type]


def _not_utf8(path: Path, max_bytes: int) -> FileError:
    """Find the first line that is not UTF-8; slow, so only done once something is known to be wrong."""
    offset, remedy = 0, "save the file as UTF-8"
    with _open(path, max_bytes) as stream:
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
