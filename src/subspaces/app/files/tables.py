"""Tables of text cells, from text files and workbooks, as datasets; errors name line and column."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path

import numpy as np

from subspaces.app.files.cells import MISSING, TRUTHS, find_decimal, is_limit, is_unsure, kind_of, number_of
from subspaces.app.files.columns import Columns, choose_columns, dataset_of_columns, find_column, keep_out, text_trouble
from subspaces.app.files.dataset import Dataset, Original, Request, encode
from subspaces.app.files.head import are_below, count_titles, counts_up, filled, is_total, name_columns, told_rows
from subspaces.app.files.text import DELIMITERS, Layout, Row, open_text, open_unpacked, take_sample
from subspaces.utils.files import FileError, argument, check_size, printable
from subspaces.utils.spelling import counted

DECIMALS = (".", ",")
TEXT_BYTES = 60
"""Bytes of a Python text beside its characters."""

TEXT_COPIES = 4
"""Copies of a text in memory while its words are counted."""

_MOST_BELOW = 20  # rows below a table that may be sums and notes
_PLAIN = frozenset("0123456789+-eE.%")
_SHOWN = 4  # spellings of numbers that a note explains


@dataclass(frozen=True)
class _Head:
    """Columns of a table with their parts, units, and the decimal sign, as the first rows show them."""

    names: list[str]
    has_names: bool
    line: int
    columns: Columns
    decimal: str
    units: dict[str, str]
    empty: set[int]

    @property
    def others(self) -> list[int]:
        """Columns that are no features."""
        return sorted({*range(len(self.names))} - {*self.columns.features})


@dataclass
class _Table:
    """Values of all rows, the features in plain C buffers of eight bytes per number."""

    others: dict[int, list[str]]
    values: array[float] = field(default_factory=lambda: array("d"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    spellings: dict[frozenset[str], tuple[str, float]] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)
    first_missing: str = ""
    notes: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    beside: int = 0

    def add(self, line: int, numbers: Iterable[float], row: Sequence[str]) -> None:
        """Take a row; texts that come again are kept once."""
        self.values.extend(numbers)
        self.lines.append(line)
        for j, cells in self.others.items():
            if (text := self.texts.get(row[j])) is None:
                self.texts[row[j]] = text = row[j]
                self.beside += 2 * TEXT_BYTES + len(text)
            cells.append(text)

    def check(self, path: Path, max_bytes: int) -> None:
        """Refuse what does not fit in memory."""
        needed = 8 * (len(self.values) + len(self.lines) * (1 + len(self.others))) + self.beside
        check_size(path, needed, max_bytes, "its values need more than")


def read_text(path: Path, request: Request) -> Dataset:
    """Read a table from a text file."""
    with open_text(path, request.max_bytes) as (rows, layout):
        return dataset_from_rows(path, request, rows, layout)


def dataset_from_rows(path: Path, request: Request, rows: Iterator[Row], layout: Layout) -> Dataset:
    """Find titles, header and parts of the columns in the first rows, then read them all."""
    sample, notes = take_sample(rows, lambda row: sum(map(len, row[1]))), layout.notes
    if not sample:
        raise FileError(path, "the file is empty; it needs one line per point")
    if request.text is not None:
        return replace(_texts_from_rows(path, request, sample, rows), notes=notes)
    if n_titles := count_titles([row for _, row in sample]):
        above = sample[:n_titles]
        notes += (told_rows([line for line, _ in above], [cell for _, row in above for cell in row], "above"),)
    sample = sample[n_titles:]
    width = max(len(filled(row)) for _, row in sample)
    is_wider = 0 < width < max(len(row) for _, row in sample) and request.missing != "keep"  # there gaps mean something
    if layout.is_sheet or is_wider:
        sample = [(line, _fitted(row, width, layout.is_sheet)) for line, row in sample]
        rows = ((line, _fitted(row, width, layout.is_sheet)) for line, row in rows)
    decimal = "" if layout.is_sheet else request.decimal or find_decimal([row for _, row in sample])
    head, body, told = _head(path, request, sample, layout, decimal)
    table = None if is_wider or layout.is_sheet else _read_clean(path, request, body[0], head, layout)
    table = table or _fill(path, request, chain(body, rows), head, layout)
    _cut_totals(table, len(head.columns.features))
    notes += (*told, *table.notes)
    if decimal == "," and request.decimal is None:
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


def _head(
    path: Path, request: Request, sample: list[Row], layout: Layout, decimal: str
) -> tuple[_Head, list[Row], tuple[str, ...]]:
    """Decide about the columns; return also the rows of the sample below the header, and notes."""
    line, first = sample[0]
    found = name_columns([row for _, row in sample], request.header)
    body = sample[found.n_rows :]
    if not body:
        raise FileError(path, "there is a header but no rows; it needs one line per point", line=line)
    given = found.names
    names = [str(i + 1) for i in range(len(first))]
    if given is not None and len(given) == len(first):
        names = [name.strip() for name in given]
    if given is None and not set(request.columns or ()) <= set(names):  # by position: nothing else is known
        request = replace(request, columns=None)
    texts = _text_columns(body, len(names), decimal)
    empty = {
        j for j, name in enumerate(names) if not name and not any("".join(row[j : j + 1]).strip() for _, row in body)
    }
    columns = choose_columns(path, names, request, texts, empty if request.missing != "keep" else set())
    if columns.texts:
        j, cells = next(iter(columns.texts.items()))
        text = next(cell for cell in cells if kind_of(cell, decimal) == "text")
        line = next(number for number, row in body if j < len(row) and row[j].strip() == text)
        raise text_trouble(path, {names[j]: cells for j, cells in columns.texts.items()}, request, text, line)
    return _Head(names, given is not None, line, columns, decimal, found.units or {}, empty), body, found.notes


def _text_columns(body: list[Row], width: int, decimal: str) -> dict[int, list[str]]:
    """Return the cells of the columns that hold more texts than numbers."""
    texts = {}
    for j in range(width):
        cells = [row[j].strip() for _, row in body if j < len(row)]
        kinds = [kind_of(cell, decimal) for cell in cells]
        numbers = kinds.count("number") + sum(is_unsure(cell, decimal) for cell in cells)  # those have their own error
        are_truths = all(cell.lower() in TRUTHS for cell, kind in zip(cells, kinds, strict=True) if kind == "text")
        if kinds.count("text") > numbers and not are_truths:
            texts[j] = cells
    return texts


def _dataset(path: Path, request: Request, table: _Table, head: _Head, notes: tuple[str, ...]) -> Dataset:
    columns = head.columns
    X = np.frombuffer(table.values, dtype=np.float64).reshape(len(table.lines), len(columns.features))
    if told := [f"'{printable(cell)}' is {value:.12g}" for cell, value in list(table.spellings.values())[:_SHOWN]]:
        notes += (f"numbers were understood like this: {', '.join(told)}",)
    if limits := table.limits:
        one = counted(len(limits), "value is", "values are")
        notes += (f"{one} beyond a limit of measurement ('{printable(limits[0])}'), and so missing",)
    if late := [str(j + 1) for j in sorted(head.empty) if any(map(str.strip, table.others.get(j, ())))]:
        notes += (f"not used: the columns without a name, number {', '.join(late)}",)
    lines = np.array(table.lines, dtype=np.intp)
    labels = None if columns.label is None else [cell.strip() for cell in table.others[columns.label]]
    is_named = head.has_names or len(columns.features) < len(head.names)  # else their order is all that is known
    original = Original(head.names, X, columns.features, table.others)
    data = Dataset(X, path, notes=notes, lines=lines, units=head.units, columns=original)
    if labels is not None:
        known = [label for label in labels if label.lower() not in ("", "nan")]  # "none" and "-" are names of classes
        classes = {label: code for code, label in enumerate(dict.fromkeys(known))}
        if not classes:
            raise FileError(path, "missing label, in every row; fill in some, or name no label", column=request.label)
        data = replace(data, y=np.array([classes.get(label, -1) for label in labels], dtype=np.intp))
        data = replace(data, classes=list(classes))
    return dataset_of_columns(data, columns, request, table.first_missing, is_named)


# ------------------------------------------------------------------ all rows


def _read_clean(path: Path, request: Request, first: Row, head: _Head, layout: Layout) -> _Table | None:
    """Read the rows from the `first` on by pyarrow, several times faster; None unless every cell is plain.

    It refuses a gap that is no error, a blank line, a line break in a cell and a row of another width; `_fill` then
    says where it is.
    """
    is_odd = head.decimal == "?" or layout.delimiter == " " or layout.encoding.startswith("utf-16")
    if is_odd or find_spec("pyarrow") is None:
        return None
    from pyarrow import csv, float64, string

    columns, table = head.columns, _Table({j: [] for j in head.others})
    names = [str(j) for j in range(len(head.names))]
    features = [names[j] for j in columns.features]
    kinds = {name: float64() if name in set(features) else string() for name in names}
    gaps = [] if request.missing == "error" else sorted({form(text) for text in MISSING for form in (str, str.upper)})
    line = first[0] - sum(cell.count("\n") for cell in first[1])
    with open_unpacked(path, request.max_bytes) as stream:
        for _ in range(line - 1):
            stream.readline()
        try:
            encoding = "utf8" if layout.encoding == "utf-8-sig" else layout.encoding
            reader = csv.open_csv(
                stream,
                csv.ReadOptions(use_threads=False, column_names=names, encoding=encoding),
                csv.ParseOptions(delimiter=layout.delimiter, ignore_empty_lines=False),
                csv.ConvertOptions(
                    column_types=kinds, null_values=gaps, strings_can_be_null=False, decimal_point=head.decimal or "."
                ),
            )
            for batch in reader:
                numbers = [batch.column(name).to_numpy(zero_copy_only=False) for name in features]
                table.values.frombytes(np.column_stack(numbers).tobytes())
                table.lines.extend(range(line + len(table.lines), line + len(table.lines) + batch.num_rows))
                for j, cells in table.others.items():
                    found = batch.column(names[j])
                    table.beside += found.nbytes + (TEXT_BYTES - 8) * len(found)
                    cells += found.to_pylist()
                    if any("\n" in cell or "\r" in cell for cell in cells[-len(found) :]):
                        return None
                table.check(path, request.max_bytes)
        except FileError:
            raise
        except (ValueError, OSError):  # of pyarrow, which does not know the line of the file
            return None
    is_gap = np.isnan(np.frombuffer(table.values)).reshape(len(table.lines), -1)
    return None if (is_gap.all(axis=1) if gaps else is_gap).any() else table


def _fill(path: Path, request: Request, rows: Iterable[Row], head: _Head, layout: Layout) -> _Table:
    columns, width, rows = head.columns, len(head.names), iter(rows)
    table = _Table({j: [] for j in head.others})
    features = [head.names[j] for j in columns.features]
    for line, row in rows:
        if not any(map(str.strip, row)) and request.missing != "keep":
            continue
        numbers: list[float] = []
        if len(row) == width:
            cells = [row[j] for j in columns.features]
            numbers = _numbers(cells, head.decimal, table)
        if not numbers:
            below = [(line, row), *islice(rows, _MOST_BELOW + 1)]
            if table.lines and len(below) <= _MOST_BELOW and are_below([cells for _, cells in below], width):
                table.notes = (told_rows([line for line, _ in below], row, "below"),)
                break
            if len(row) != width:
                raise _wrong_width(path, line, len(row), head, layout)
            raise _bad_cell(path, line, cells, features, request, not table.lines, head.decimal)
        if not table.first_missing and math.isnan(sum(numbers)):  # one pass in C: most files have no gap
            cell = next((cell.strip() for cell in cells if kind_of(cell) == "missing"), "")
            table.first_missing = "(NaN)" if cell.lower() == "nan" else f"'{printable(cell)}'" if cell else ""
        table.add(line, numbers, row)
        table.check(path, request.max_bytes)
    if not table.lines:
        raise FileError(path, "there is a header but no rows; it needs one line per point", line=head.line)
    return table


def _numbers(cells: Sequence[str], decimal: str, table: _Table) -> list[float]:
    """Return the numbers of a row with NaN where they are missing; nothing if a cell is neither."""
    try:
        if decimal in ("", ".") and "_" not in "".join(cells):
            return list(map(float, cells))
    except ValueError:
        pass
    try:
        return [_number(cell, decimal, table) for cell in cells]
    except ValueError:
        return []


def _number(cell: str, decimal: str, table: _Table) -> float:
    """Return the number in a cell, and remember how it was understood where that is not plain."""
    if "_" not in cell and (decimal in ("", ".") or "." not in cell):
        with suppress(ValueError):
            return float(cell.replace(",", ".") if decimal == "," else cell)
    plain = cell.strip()
    if kind_of(plain, decimal) == "missing":
        table.limits += [plain] if is_limit(plain) else []
        return math.nan
    value = TRUTHS[plain.lower()] if plain.lower() in TRUTHS else number_of(plain, decimal)
    if (signs := frozenset(plain) - _PLAIN) or (decimal in (",", "?") and "." in plain):
        table.spellings.setdefault(signs, (plain, value))
    return value


def _cut_totals(table: _Table, m: int) -> None:
    """Leave out sums, means and notes that stand below the samples like another one; their first cell is a text."""
    first, n = table.others.get(0, []), len(table.lines)

    def is_note(i: int) -> bool:
        is_alone = not any(cells[i].strip() for j, cells in table.others.items() if j)
        return " " in first[i].strip() and is_alone and all(map(math.isnan, table.values[i * m : (i + 1) * m]))

    end = n
    while first and end > max(1, n - _MOST_BELOW) and (is_total(first[end - 1], True) or is_note(end - 1)):
        end -= 1
    if any(is_total(first[i]) or is_note(i) for i in range(end, n)):
        table.notes = (told_rows(table.lines[end:], first[end:], "below"), *table.notes)
        del table.values[end * m :], table.lines[end:]
        table.others = {j: cells[:end] for j, cells in table.others.items()}


def _wrong_width(path: Path, line: int, n_cells: int, head: _Head, layout: Layout) -> FileError:
    quotes = f" (a {DELIMITERS[layout.delimiter]} inside a cell needs quotes around the cell)"
    remedy = "repair the line" + ("" if layout.is_sheet else quotes)
    where = "the first line" if head.line == 1 else f"line {head.line}"
    return FileError(path, f"{counted(n_cells, 'cell')} where {where} has {len(head.names)}; {remedy}", line=line)


def _bad_cell(
    path: Path, line: int, cells: Sequence[str], names: list[str], request: Request, is_first: bool, decimal: str
) -> FileError:
    """Describe the first cell of a row that is neither a number nor missing."""
    texts = ((c.strip(), n) for c, n in zip(cells, names, strict=True) if kind_of(c, decimal) == "text")
    cell, column = next((c, n) for c, n in texts if c.lower() not in TRUTHS)
    if is_unsure(cell, decimal):
        read = " or ".join(f"{number_of(cell, sign):.12g} ({argument('decimal', sign)})" for sign in DECIMALS)
        return FileError(path, f"'{printable(cell)}' may be {read}; say which", line=line, column=column)
    if is_first and request.columns is None:
        remedy = f"use {keep_out(column)} to keep the column out of the points"
    else:
        remedy = "correct it, or empty the cell to make it a missing value"
    return FileError(path, f"'{printable(cell)}' is not a number; {remedy}", line=line, column=column)


# ------------------------------------------------------------------ texts


def _texts_from_rows(path: Path, request: Request, sample: list[Row], rows: Iterable[Row]) -> Dataset:
    """Read a column of texts, and those named as label or identifier; the others are kept beside.

    The first line names the columns, unless the column is asked for by its number.
    """
    assert request.text is not None
    has_header = not request.text.isdigit() if request.header is None else request.header
    first = [cell.strip() for cell in sample[0][1]]
    names = first if has_header else [str(i + 1) for i in range(len(first))]
    wanted = {"text": request.text, "label": request.label, "id": request.id}
    at = {part: find_column(path, names, name, part) for part, name in wanted.items() if name is not None}
    table, last = _Table({j: [] for j in range(len(names))}), max(at.values())
    for line, row in chain(sample[1:] if has_header else sample, rows):
        if len(row) <= last:
            problem = f"{counted(len(row), 'cell')} instead of {last + 1} or more"
            raise FileError(path, f"{problem}; check separators and quotes of this line", line=line)
        if not row[at["text"]].strip():
            raise FileError(path, "the text is empty; leave out this row", line=line, column=request.text)
        table.add(line, (), [*row, *[""] * (len(names) - len(row))])
        check_size(path, TEXT_COPIES * table.beside, request.max_bytes, "its texts need")
    if len(table.lines) < 2:
        raise FileError(path, "fewer than two texts; two or more are needed")
    data = dataset_of_texts(path, request, {part: table.others[j] for part, j in at.items()})
    return replace(data, columns=Original(names, data.X, [], table.others))


def dataset_of_texts(path: Path, request: Request, found: dict[str, list[str]]) -> Dataset:
    """Return texts with their labels and identifiers where there are any."""
    y, classes = None, None
    if request.label is not None:
        y, classes = encode(path, np.array(found["label"]), request.label)
    X = np.empty((len(found["text"]), 0))
    return Dataset(X, path, y=y, classes=classes, ids=found.get("id"), texts=found["text"])
