"""Workbooks (``.xlsx``) by openpyxl: stored values only, no formula is ever computed, no macro opened."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subspaces.app.files.dataset import Dataset, Request
from subspaces.app.files.dialect import Row
from subspaces.app.files.excel_scan import scan
from subspaces.app.files.text_tables import Layout, dataset_from_rows
from subspaces.utils.files import FileError, argument, printable, quoted
from subspaces.utils.process import quiet
from subspaces.utils.spelling import counted

MAX_BLANK = 10**6
"""Empty rows read beyond one for each that is not: a few bytes can announce any number of them."""


def read_xlsx(path: Path, request: Request) -> Dataset:
    """Read a sheet of a workbook: the one that `request.array` names, else the first that is not empty."""
    with open_sheet(path, request) as (rows, layout):
        return dataset_from_rows(path, request, rows, layout)


@contextmanager
def open_sheet(path: Path, request: Request) -> Iterator[tuple[Iterator[Row], Layout]]:
    """Rows of a sheet and what is known of them."""
    try:
        import openpyxl
    except ImportError:
        problem = 'reading workbooks needs openpyxl: pip install "subspaces[app]" (or save the sheet as CSV)'
        raise FileError(path, problem) from None
    found = scan(path, request.max_bytes)
    # quiet of what a workbook holds that is no concern of a table: validation, drawings, odd dates; the file is opened
    # here because openpyxl leaves it open where it fails
    with quiet(), path.open("rb") as stream:
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        sheets, name = {sheet.title: sheet for sheet in book.worksheets}, ""
        try:
            name, rows = _choose(path, sheets, request)
            yield rows, Layout(notes=_told(sheets, name), is_sheet=True)
        except FileError as error:
            problem = error.problem
            if found.n_unstored and "missing" in problem:
                formulas = counted(found.n_unstored, "formula has", "formulas have")
                why = f"{formulas} no stored result, the first in cell {printable(found.unstored)}"
                problem += f" ({why}; open the workbook in a spreadsheet program and save it)"
            if request.array is None and name:
                problem = "; ".join([problem, *_told(sheets, name)])
            raise error.saying(problem) from None
        finally:
            book.close()


def _choose(path: Path, sheets: dict[str, Any], request: Request) -> tuple[str, Iterator[Row]]:
    if request.array is not None:
        if request.array not in sheets:
            problem = f"{argument('array')} '{printable(request.array)}' is not a sheet"
            raise FileError(path, f"{problem}; the workbook has {quoted(list(sheets))}")
        return request.array, _rows(path, sheets[request.array])
    for name, sheet in sheets.items():
        rows = _rows(path, sheet)
        first = next(rows, None)
        if first is not None:
            return name, _with(first, rows)
    raise FileError(path, "the workbook is empty; it needs a sheet with one line per point")


def _with(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _told(sheets: dict[str, Any], name: str) -> tuple[str, ...]:
    if len(sheets) < 2:
        return ()
    other = next(other for other in sheets if other != name)
    how = f"{argument('array', other)} would read another"
    return (f"of {len(sheets)} sheets, '{printable(name)}' was read; {how}",)


def _rows(path: Path, sheet: Any) -> Iterator[Row]:
    """Cells of every row that is not empty, as text, with its number."""
    sheet.reset_dimensions()  # what it announces may be a million columns of nothing
    n_rows = n_blank = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if any(value is not None for value in row):
            n_rows += 1
            yield number, [_text(value) for value in row]
            continue
        n_blank += 1
        if n_blank > MAX_BLANK + n_rows:
            raise FileError(path, f"{n_blank} empty rows so far; remove them", line=number)


def _text(value: Any) -> str:
    """A value as a text file would hold it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)
