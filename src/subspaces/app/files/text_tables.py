"""A table of texts, from whatever file, as points: one pass, and errors that name line and column."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path

import numpy as np

from subspaces.app.files.columns import Columns, choose_columns, keep_out, settle_ids, settle_missing, text_trouble
from subspaces.app.files.dataset import Dataset, Request
from subspaces.app.files.dialect import (
    DELIMITERS,
    Row,
    count_titles,
    counts_up,
    filled,
    find_decimal,
    kind_of,
    looks_like_header,
    number_of,
    take_rows,
    with_point,
)
from subspaces.app.files.identifiers import without_ids
from subspaces.app.files.text_files import texts_from_rows
from subspaces.utils.files import FileError, argument, check_size, printable
from subspaces.utils.spelling import counted

DECIMALS = (".", ",")
_TEXT = 60  # bytes of a text beside its characters


@dataclass(frozen=True)
class Layout:
    """What is known of a table before its rows are read: names of columns, remarks, what separates cells."""

    names: list[str] | None = None
    notes: tuple[str, ...] = ()
    delimiter: str = ","
    is_sheet: bool = False  # rows end with their last cell that is not empty


@dataclass(frozen=True)
class _Head:
    """What the first rows say of the table: its columns, their parts, the sign before decimals."""

    names: list[str]
    has_names: bool
    line: int
    columns: Columns
    decimal: str


def dataset_from_rows(path: Path, request: Request, rows: Iterator[Row], layout: Layout | None = None) -> Dataset:
    """Find titles, header and parts of the columns in the first rows, then read them all."""
    layout = layout or Layout()
    sample, notes = take_rows(rows), layout.notes
    if not sample:
        raise FileError(path, "the file is empty; it needs one line per point")
    if request.text is not None:
        return replace(texts_from_rows(path, request, sample, rows), notes=notes)
    n_titles = count_titles([row for _, row in sample])
    if n_titles:
        notes += (_told_titles(sample[:n_titles]),)
    sample = sample[n_titles:]
    width = max(len(filled(row)) for _, row in sample)
    is_wider = 0 < width < max(len(row) for _, row in sample) and request.missing != "keep"  # there gaps mean something
    if layout.is_sheet or is_wider:
        fit = _fitter(width, layout.is_sheet)
        sample = [(line, fit(row)) for line, row in sample]
        rows = ((line, fit(row)) for line, row in rows)
    head, body = _head(path, request, sample, layout)
    table = _fill(path, request, chain(body, rows), head, layout)
    return _dataset(path, request, table, head, notes + _remarks(request, head, sample[0][1]))


def _told_titles(titles: list[Row]) -> str:
    first, last = titles[0][0], titles[-1][0]
    shown = next((cell for _, row in titles for cell in row if cell.strip()), "")
    if len(titles) == 1:
        return f"line {first}, above the table, was left out ('{printable(shown, 40)}')"
    return f"lines {first} to {last}, above the table, were left out ('{printable(shown, 40)}', ...)"


def _fitter(width: int, fill_up: bool) -> Callable[[list[str]], list[str]]:
    """What cuts empty cells behind the last column (trailing commas, sheets that were wider once), or adds them."""

    def fit(row: list[str]) -> list[str]:
        if len(row) > width and not any(cell.strip() for cell in row[width:]):
            return row[:width]
        return row + [""] * (width - len(row)) if fill_up else row

    return fit


def _head(path: Path, request: Request, sample: list[Row], layout: Layout) -> tuple[_Head, list[Row]]:
    """Settle the columns; return the rows of the sample that are points, too."""
    (line, first), second = sample[0], sample[1][1] if len(sample) > 1 else None
    decimal = request.decimal or find_decimal([row for _, row in sample])
    if request.header is not None:
        has_header = request.header
    else:
        has_header = layout.names is None and looks_like_header(first, second, decimal)
    body = sample[1:] if has_header else sample
    if has_header and not body:
        raise FileError(path, "there is a header but no rows; it needs one line per point", line=line)
    given = first if has_header else layout.names
    names = [str(i + 1) for i in range(len(first))] if given is None else [name.strip() for name in given]
    if len(names) != len(first):
        names = [str(i + 1) for i in range(len(first))]
    if given is None and not set(request.columns or ()) <= set(names):  # by position: nothing else is known
        request = replace(request, columns=None)
    columns = choose_columns(path, names, request, _texts(body, len(names), decimal))
    if columns.texts:
        j, cells = next(iter(columns.texts.items()))
        text = next(cell for cell in cells if kind_of(cell, decimal) == "text")
        line = next(number for number, row in body if j < len(row) and row[j].strip() == text)
        raise text_trouble(path, {names[j]: cells for j, cells in columns.texts.items()}, request, text, line)
    return _Head(names, given is not None, line, columns, decimal), body


def _texts(body: list[Row], width: int, decimal: str) -> dict[int, list[str]]:
    """Return the cells of the columns that hold more texts than numbers."""
    texts = {}
    for j in range(width):
        cells = [row[j].strip() for _, row in body if j < len(row)]
        # a number with the other sign before its decimals is no text, and has an error of its own
        numbers = sum("number" in {kind_of(cell, sign) for sign in DECIMALS} for cell in cells)
        if sum(kind_of(cell, decimal) == "text" for cell in cells) > numbers:
            texts[j] = cells
    return texts


def _remarks(request: Request, head: _Head, first: list[str]) -> tuple[str, ...]:
    """What a person should know about how the table was understood."""
    notes = head.columns.notes
    if head.decimal == "," and request.decimal is None:
        notes += ("numbers are written with decimal commas in this file",)
    if request.header is None and not head.has_names and counts_up(first) and len(first) > 2:
        how = f"{argument('header', True)} makes it names"
        notes += (f"the first line counts 0, 1, 2, ... and was read as a point; {how}",)
    return notes


def _dataset(path: Path, request: Request, table: _Table, head: _Head, notes: tuple[str, ...]) -> Dataset:
    columns = head.columns
    X = np.frombuffer(table.values, dtype=np.float64).reshape(len(table.lines), len(columns.features))
    features = [head.names[i] for i in columns.features]
    is_named = head.has_names or len(features) < len(head.names)  # else their order is all that is known of them
    lines, kept = np.array(table.lines, dtype=np.intp), features if is_named else None
    data = Dataset(X, path, feature_names=kept, notes=notes, lines=lines, left_out=columns.left_out)
    if columns.label is not None:
        data = replace(data, y=np.array(table.codes, dtype=np.intp), classes=list(table.classes))
    if columns.id is not None:
        data = replace(data, ids=settle_ids(path, head.names[columns.id], table.ids, columns, request, table.lines[0]))
    data = without_ids(data, features, request)
    names, can_ignore = data.feature_names or features, request.columns is None
    row_name = lambda i: f"line {table.lines[i]}"  # noqa: E731
    return settle_missing(data, request.missing, row_name, names, table.first_missing, can_ignore)


class _Table:
    """What one pass over the rows collects; plain C buffers, eight bytes per number."""

    def __init__(self) -> None:
        self.values, self.lines, self.codes = array("d"), array("q"), array("q")
        self.classes: dict[str, int] = {}
        self.ids: list[str] = []
        self.first_missing = ""


def _fill(path: Path, request: Request, rows: Iterable[Row], head: _Head, layout: Layout) -> _Table:
    columns, width = head.columns, len(head.names)
    table, pick = _Table(), _picker(columns.features, width)
    features, beside = [head.names[i] for i in columns.features], 0
    for line, row in rows:
        if len(row) != width:
            raise _wrong_width(path, line, len(row), head, layout)
        cells = pick(row)
        try:
            numbers = list(map(float, cells)) if head.decimal == "." else [float(with_point(cell)) for cell in cells]
        except ValueError:
            numbers = _with_gaps(cells, head.decimal)
            if not numbers:
                raise _bad_cell(path, line, cells, features, request, not table.lines, head.decimal) from None
        if not table.first_missing and math.isnan(sum(numbers)):  # one pass in C: most files have no gap
            table.first_missing = _shown_gap(cells)
        table.values.extend(numbers)
        # Python reads 2019_04 as 201904; in a file that is text.
        if "_" in "".join(cells):
            raise _bad_cell(path, line, cells, features, request, not table.lines, head.decimal)
        table.lines.append(line)
        if columns.id is not None:
            table.ids.append(row[columns.id])
            beside += _TEXT + len(row[columns.id])
        if columns.label is not None:
            label = row[columns.label].strip()
            if label.lower() in ("", "nan"):  # not all of MISSING: "none" and "-" are names of classes too
                problem = "missing label; fill it in, leave out the row or do not name a label"
                raise FileError(path, problem, line=line, column=head.names[columns.label])
            if label not in table.classes:
                beside += 2 * _TEXT + len(label)
            table.codes.append(table.classes.setdefault(label, len(table.classes)))
        needed = 8 * (len(table.values) + len(table.lines) + len(table.codes)) + beside
        if needed > request.max_bytes:
            check_size(path, needed, request.max_bytes, "its values need more than")
    return table


def _wrong_width(path: Path, line: int, n_cells: int, head: _Head, layout: Layout) -> FileError:
    quotes = f" (a {DELIMITERS[layout.delimiter]} inside a cell needs quotes around the cell)"
    remedy = "repair the line" + ("" if layout.is_sheet else quotes)
    where = "the first line" if head.line == 1 else f"line {head.line}"
    return FileError(path, f"{counted(n_cells, 'cell')} where {where} has {len(head.names)}; {remedy}", line=line)


def _picker(positions: list[int], width: int) -> Callable[[list[str]], Sequence[str]]:
    if positions == list(range(width)):
        return lambda row: row
    if len(positions) == 1:
        return lambda row: (row[positions[0]],)
    return itemgetter(*positions)


def _with_gaps(cells: Sequence[str], decimal: str) -> list[float]:
    """Numbers with NaN where they are missing; empty if a cell is neither."""
    kinds = [kind_of(cell, decimal) for cell in cells]
    if "text" in kinds:
        return []
    return [number_of(cell, decimal) if kind == "number" else math.nan for cell, kind in zip(cells, kinds, strict=True)]


def _shown_gap(cells: Sequence[str]) -> str:
    cell = next((cell.strip() for cell in cells if kind_of(cell) == "missing"), "")
    return "(NaN)" if cell.lower() == "nan" else f"'{printable(cell)}'" if cell else ""


def _bad_cell(
    path: Path, line: int, cells: Sequence[str], names: list[str], request: Request, is_first: bool, decimal: str
) -> FileError:
    """Describe the first cell of a row that is neither a number nor missing."""
    cell, column = next((c, n) for c, n in zip(cells, names, strict=True) if kind_of(c, decimal) == "text")
    other = next(sign for sign in DECIMALS if sign != decimal)
    if kind_of(cell, other) == "number":
        sign = {",": "comma", ".": "point"}
        remedy = (
            f"write decimals with a {sign[decimal]}, or use {argument('decimal', other)} if all have a {sign[other]}"
        )
    elif request.columns is not None:
        remedy = "correct it"
    elif is_first:
        remedy = f"use {keep_out(column)} to keep the column out of the points"
    else:
        remedy = f"correct it or leave the column out with {argument('ignore', [column])}"
    return FileError(path, f"'{printable(cell)}' is not a number; {remedy}", line=line, column=column)
