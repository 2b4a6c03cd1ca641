"""Tables of text cells, from text files and workbooks, as datasets; errors name line and column."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np

from subspaces.app.files.columns import (
    Columns,
    choose_columns,
    find_column,
    keep_out,
    settle_ids,
    settled,
    text_trouble,
)
from subspaces.app.files.dataset import Dataset, Request, encode
from subspaces.app.files.text import (
    DELIMITERS,
    Layout,
    Row,
    count_titles,
    counts_up,
    filled,
    find_decimal,
    kind_of,
    looks_like_header,
    number_of,
    open_text,
    open_unpacked,
    take_sample,
    with_point,
)
from subspaces.utils.files import FileError, argument, check_size, printable
from subspaces.utils.spelling import counted

DECIMALS = (".", ",")
TEXT_BYTES = 60
"""Bytes of a Python text beside its characters."""

TEXT_COPIES = 4
"""Copies of a text in memory while its words are counted."""


@dataclass(frozen=True)
class _Head:
    """Columns of a table with their parts, and the decimal sign, as the first rows show them."""

    names: list[str]
    has_names: bool
    line: int
    columns: Columns
    decimal: str


class _Table:
    """Values of all rows, in plain C buffers of eight bytes per number."""

    def __init__(self) -> None:
        self.values, self.lines, self.codes = array("d"), array("q"), array("q")
        self.classes: dict[str, int] = {}
        self.ids: list[str] = []
        self.first_missing = ""


def read_text(path: Path, request: Request) -> Dataset:
    """Read a table from a text file."""
    with open_text(path, request.max_bytes, request.header) as (rows, layout):
        return dataset_from_rows(path, request, rows, layout)


def dataset_from_rows(path: Path, request: Request, rows: Iterator[Row], layout: Layout) -> Dataset:
    """Find titles, header and parts of the columns in the first rows, then read them all."""
    sample, notes = take_sample(rows, lambda row: sum(map(len, row[1]))), layout.notes
    if not sample:
        raise FileError(path, "the file is empty; it needs one line per point")
    if request.text is not None:
        return replace(_texts_from_rows(path, request, sample, rows), notes=notes)
    n_titles = count_titles([row for _, row in sample])
    if n_titles:
        shown = printable(next((cell for _, row in sample[:n_titles] for cell in row if cell.strip()), ""), 40)
        first, last = sample[0][0], sample[n_titles - 1][0]
        one, many = f"line {first}, above the table, was", f"lines {first} to {last}, above the table, were"
        notes += (f"{one} left out ('{shown}')" if n_titles == 1 else f"{many} left out ('{shown}', ...)",)
    sample = sample[n_titles:]
    width = max(len(filled(row)) for _, row in sample)
    is_wider = 0 < width < max(len(row) for _, row in sample) and request.missing != "keep"  # there gaps mean something
    if layout.is_sheet or is_wider:
        sample = [(line, _fitted(row, width, layout.is_sheet)) for line, row in sample]
        rows = ((line, _fitted(row, width, layout.is_sheet)) for line, row in rows)
    head, body = _head(path, request, sample, layout)
    table = None if is_wider or layout.is_sheet else _read_clean(path, request, body[0][0], head, layout)
    table = table or _fill(path, request, chain(body, rows), head, layout)
    notes += head.columns.notes
    if head.decimal == "," and request.decimal is None:
        notes += ("numbers are written with decimal commas in this file",)
    if request.header is None and not head.has_names and counts_up(sample[0][1]) and len(sample[0][1]) > 2:
        how = f"{argument('header', True)} makes it names"
        notes += (f"the first line counts 0, 1, 2, ... and was read as a point; {how}",)
    return _dataset(path, request, table, head, notes)


def _fitted(row: list[str], width: int, fill_up: bool) -> list[str]:
    """Cut empty cells behind the last column (trailing commas), or add them."""
    if len(row) > width and not any(cell.strip() for cell in row[width:]):
        return row[:width]
    return row + [""] * (width - len(row)) if fill_up else row


def _head(path: Path, request: Request, sample: list[Row], layout: Layout) -> tuple[_Head, list[Row]]:
    """Decide about the columns; return also the rows of the sample below the header."""
    (line, first), second = sample[0], sample[1][1] if len(sample) > 1 else None
    decimal = request.decimal or find_decimal([row for _, row in sample])
    has_header = request.header
    if has_header is None:
        has_header = layout.names is None and looks_like_header(first, second, decimal)
    body = sample[1:] if has_header else sample
    if not body:
        raise FileError(path, "there is a header but no rows; it needs one line per point", line=line)
    given = first if has_header else layout.names
    names = [str(i + 1) for i in range(len(first))]
    if given is not None and len(given) == len(first):
        names = [name.strip() for name in given]
    if given is None and not set(request.columns or ()) <= set(names):  # by position: nothing else is known
        request = replace(request, columns=None)
    columns = choose_columns(path, names, request, _text_columns(body, len(names), decimal))
    if columns.texts:
        j, cells = next(iter(columns.texts.items()))
        text = next(cell for cell in cells if kind_of(cell, decimal) == "text")
        line = next(number for number, row in body if j < len(row) and row[j].strip() == text)
        raise text_trouble(path, {names[j]: cells for j, cells in columns.texts.items()}, request, text, line)
    return _Head(names, given is not None, line, columns, decimal), body


def _text_columns(body: list[Row], width: int, decimal: str) -> dict[int, list[str]]:
    """Return the cells of the columns that hold more texts than numbers."""
    texts = {}
    for j in range(width):
        cells = [row[j].strip() for _, row in body if j < len(row)]
        # a number with the other decimal sign is no text, and has an error of its own
        numbers = sum("number" in {kind_of(cell, sign) for sign in DECIMALS} for cell in cells)
        if sum(kind_of(cell, decimal) == "text" for cell in cells) > numbers:
            texts[j] = cells
    return texts


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
    return settled(data, features, request, lambda i: f"line {table.lines[i]}", table.first_missing)


# ------------------------------------------------------------------ all rows


def _read_clean(path: Path, request: Request, line: int, head: _Head, layout: Layout) -> _Table | None:
    """Read the rows from `line` on by pyarrow, several times faster; None unless every cell is plain.

    It refuses a gap, a blank line, a line break in a cell and a row of another width; `_fill` then says where it is.
    """
    if head.decimal != "." or layout.delimiter == " " or layout.encoding == "utf-16" or find_spec("pyarrow") is None:
        return None
    from pyarrow import csv, float64, string

    columns, table = head.columns, _Table()
    names = [str(j) for j in range(len(head.names))]
    features = [names[j] for j in columns.features]
    kinds = {name: float64() if name in set(features) else string() for name in names}
    with open_unpacked(path, request.max_bytes) as stream:
        for _ in range(line - 1):
            stream.readline()
        try:
            encoding = "utf8" if layout.encoding == "utf-8-sig" else layout.encoding
            reader = csv.open_csv(
                stream,
                csv.ReadOptions(use_threads=False, column_names=names, encoding=encoding),
                csv.ParseOptions(delimiter=layout.delimiter, ignore_empty_lines=False),
                csv.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
            )
            for batch in reader:
                table.values.frombytes(np.column_stack([batch.column(name).to_numpy() for name in features]).tobytes())
                table.lines.extend(range(line + len(table.lines), line + len(table.lines) + batch.num_rows))
                if columns.id is not None:
                    table.ids += batch.column(names[columns.id]).to_pylist()
                if columns.label is not None:
                    labels = [label.strip() for label in batch.column(names[columns.label]).to_pylist()]
                    if not all(labels) or "nan" in map(str.lower, labels):
                        return None
                    table.codes.extend(table.classes.setdefault(label, len(table.classes)) for label in labels)
                texts = sum(TEXT_BYTES + len(text) for text in chain(table.ids, table.classes))
                needed = 8 * (len(table.values) + len(table.lines) + len(table.codes)) + texts
                check_size(path, needed, request.max_bytes, "its values need more than")
        except FileError:
            raise
        except (ValueError, OSError):  # of pyarrow, which does not know the line of the file
            return None
    return None if np.isnan(np.frombuffer(table.values)).any() else table


def _fill(path: Path, request: Request, rows: Iterable[Row], head: _Head, layout: Layout) -> _Table:
    columns, width = head.columns, len(head.names)
    table, beside = _Table(), 0
    features = [head.names[j] for j in columns.features]
    for line, row in rows:
        if len(row) != width:
            raise _wrong_width(path, line, len(row), head, layout)
        cells = [row[j] for j in columns.features]
        try:
            numbers = list(map(float, cells)) if head.decimal == "." else [float(with_point(cell)) for cell in cells]
        except ValueError:
            numbers = _with_gaps(cells, head.decimal)
        if not numbers or "_" in "".join(cells):  # Python reads 2019_04 as 201904; in a file that is text
            raise _bad_cell(path, line, cells, features, request, not table.lines, head.decimal)
        if not table.first_missing and math.isnan(sum(numbers)):  # one pass in C: most files have no gap
            cell = next((cell.strip() for cell in cells if kind_of(cell) == "missing"), "")
            table.first_missing = "(NaN)" if cell.lower() == "nan" else f"'{printable(cell)}'" if cell else ""
        table.values.extend(numbers)
        table.lines.append(line)
        if columns.id is not None:
            table.ids.append(row[columns.id])
            beside += TEXT_BYTES + len(row[columns.id])
        if columns.label is not None:
            label = row[columns.label].strip()
            if label.lower() in ("", "nan"):  # not all of MISSING: "none" and "-" are names of classes too
                problem = "missing label; fill it in, leave out the row or do not name a label"
                raise FileError(path, problem, line=line, column=head.names[columns.label])
            if label not in table.classes:
                beside += 2 * TEXT_BYTES + len(label)
            table.codes.append(table.classes.setdefault(label, len(table.classes)))
        needed = 8 * (len(table.values) + len(table.lines) + len(table.codes)) + beside
        check_size(path, needed, request.max_bytes, "its values need more than")
    return table


def _wrong_width(path: Path, line: int, n_cells: int, head: _Head, layout: Layout) -> FileError:
    quotes = f" (a {DELIMITERS[layout.delimiter]} inside a cell needs quotes around the cell)"
    remedy = "repair the line" + ("" if layout.is_sheet else quotes)
    where = "the first line" if head.line == 1 else f"line {head.line}"
    return FileError(path, f"{counted(n_cells, 'cell')} where {where} has {len(head.names)}; {remedy}", line=line)


def _with_gaps(cells: Sequence[str], decimal: str) -> list[float]:
    """Return numbers with NaN where they are missing; nothing if a cell is neither."""
    kinds = [kind_of(cell, decimal) for cell in cells]
    if "text" in kinds:
        return []
    return [number_of(cell, decimal) if kind == "number" else math.nan for cell, kind in zip(cells, kinds, strict=True)]


def _bad_cell(
    path: Path, line: int, cells: Sequence[str], names: list[str], request: Request, is_first: bool, decimal: str
) -> FileError:
    """Describe the first cell of a row that is neither a number nor missing."""
    cell, column = next((c, n) for c, n in zip(cells, names, strict=True) if kind_of(c, decimal) == "text")
    other = next(sign for sign in DECIMALS if sign != decimal)
    if kind_of(cell, other) == "number":
        sign = {",": "comma", ".": "point"}
        instead = f"{argument('decimal', other)} if all have a {sign[other]}"
        remedy = f"write decimals with a {sign[decimal]}, or use {instead}"
    elif request.columns is not None:
        remedy = "correct it"
    elif is_first:
        remedy = f"use {keep_out(column)} to keep the column out of the points"
    else:
        remedy = f"correct it or leave the column out with {argument('ignore', [column])}"
    return FileError(path, f"'{printable(cell)}' is not a number; {remedy}", line=line, column=column)


# ------------------------------------------------------------------ texts


def _texts_from_rows(path: Path, request: Request, sample: list[Row], rows: Iterable[Row]) -> Dataset:
    """Read a column of texts, and of the others those named as label or identifier.

    The first line names the columns, unless the column is asked for by its number.
    """
    assert request.text is not None
    has_header = not request.text.isdigit() if request.header is None else request.header
    first = [cell.strip() for cell in sample[0][1]]
    names: Sequence[str] = first if has_header else [str(i + 1) for i in range(len(first))]
    wanted = {"text": request.text, "label": request.label, "id": request.id}
    at = {part: find_column(path, names, name, part) for part, name in wanted.items() if name is not None}
    found: dict[str, list[str]] = {part: [] for part in at}
    used, last = 0, max(at.values())
    for line, row in chain(sample[1:] if has_header else sample, rows):
        if len(row) <= last:
            problem = f"{counted(len(row), 'cell')} instead of {last + 1} or more"
            raise FileError(path, f"{problem}; check separators and quotes of this line", line=line)
        for part, position in at.items():
            found[part].append(row[position])
            used += len(row[position]) + TEXT_BYTES
        if not row[at["text"]].strip():
            raise FileError(path, "the text is empty; leave out this row", line=line, column=request.text)
        check_size(path, TEXT_COPIES * used, request.max_bytes, "its texts need")
    if len(found["text"]) < 2:
        raise FileError(path, "fewer than two texts; two or more are needed")
    return dataset_of_texts(path, request, found)


def dataset_of_texts(path: Path, request: Request, found: dict[str, list[str]]) -> Dataset:
    """Return texts with their labels and identifiers where there are any."""
    y, classes = None, None
    if request.label is not None:
        y, classes = encode(path, np.array(found["label"]), request.label)
    X = np.empty((len(found["text"]), 0))
    return Dataset(X, path, y=y, classes=classes, ids=found.get("id"), texts=found["text"])
