"""Workbooks (``.xlsx``, ``.ods``) by calamine: stored values only, no formula is ever computed, no macro opened."""

from __future__ import annotations

import datetime
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from xml.parsers import expat

from subspaces.app.files.cells import find_decimal, is_unsure, kind_of, number_of
from subspaces.app.files.dataset import Dataset, Request, imported
from subspaces.app.files.tables import dataset_from_rows
from subspaces.app.files.text import Layout, Row, check_ratio
from subspaces.utils.files import FileError, argument, check_size, printable, quoted

_ELEMENT, _CELL = 64, 128  # bytes of an element of texts and styles, and of a cell of the rectangle that is read
_CHUNK = 2**16
_CONTAINER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def read_xlsx(path: Path, request: Request) -> Dataset:
    """Read a sheet of a workbook: the one that `request.array` names, else the first that is not empty."""
    with open_sheet(path, request) as (rows, layout):
        return dataset_from_rows(path, request, rows, layout)


@contextmanager
def open_sheet(path: Path, request: Request) -> Iterator[tuple[Iterator[Row], Layout]]:
    """Open the rows of a sheet, with its layout."""
    calamine = imported(path, "python_calamine", "reading workbooks", instead=" (or save the sheet as CSV)")
    _check_plain(path)
    _scan(path, request.max_bytes)
    notes: tuple[str, ...] = ()
    book = calamine.CalamineWorkbook.from_path(path)
    try:
        names = [sheet.name for sheet in book.sheets_metadata if "work" in str(sheet.typ).lower()]
        name, rows = _choose(path, book, names, request)
        if len(names) > 1:
            other = argument("sheet", next(other for other in names if other != name))
            notes = (f"of {len(names)} sheets, '{printable(name)}' was read; {other} would read another",)
        texts = [[value for value in row if isinstance(value, str)] for row in rows]
        sign = request.decimal or find_decimal(texts)
        if request.decimal is None and any(
            "," in text and kind_of(text, sign) == "number" for row in texts for text in row
        ):
            notes += ("some numbers are written as text with decimal commas or thousands separators",)
        yield _rows(rows, sign), Layout(notes=notes, is_sheet=True)
    except FileError as error:
        raise error.saying("; ".join([error.problem, *notes[:1]]) if request.array is None else error.problem) from None
    finally:
        book.close()


def _check_plain(path: Path) -> None:
    """Refuse what Excel wrote in its old container: workbooks with a password, and those of before 2007."""
    with path.open("rb") as stream:
        if stream.read(8) != _CONTAINER:
            return
        stream.seek(0)
        is_locked = any(
            "EncryptedPackage".encode("utf-16-le") in block for block in iter(partial(stream.read, 2**20), b"")
        )
    what = "protected by a password; save it without one" if is_locked else "of the old kind (.xls); save it as .xlsx"
    raise FileError(path, f"the workbook is {what} (in Excel: File, Save As), or save the sheet as .csv")


def _choose(path: Path, book: Any, names: list[str], request: Request) -> tuple[str, list[list[Any]]]:
    """Return the sheet that was asked for, else the first with at least a quarter of the numbers of any."""
    if request.array is not None and request.array not in names:
        problem = f"{argument('sheet')} '{printable(request.array)}' is not a sheet"
        raise FileError(path, f"{problem}; the workbook has {quoted(names)}")
    best, chosen, found = 0, "", list[list[Any]]()
    for name in names if request.array is None else [request.array]:
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        size = sum(1 + 1000 * (type(value) in (int, float)) for row in rows for value in row if value != "")
        if size > 4 * best:
            chosen, found = name, rows
        best = max(best, size)
    if not best:
        raise FileError(path, "the workbook is empty; it needs a sheet with one line per point")
    return chosen, found


def _rows(rows: list[list[Any]], sign: str) -> Iterator[Row]:
    """Yield the cells of every row that is not empty, as text, with its number; numbers among texts with a point."""
    for number, row in enumerate(rows, start=1):
        if any(value != "" for value in row):
            yield number, [_text(value, sign) for value in row]


def _text(value: Any, sign: str) -> str:
    """Return a value as a text file would hold it; `sign` is the decimal sign in numbers that are stored as texts."""
    if isinstance(value, str) and ("," in value or "." in value):
        if kind_of(value, sign) == "number":
            number = number_of(value, sign)
            return repr(number) if "," in value or number != number_of(value) else value
        return value.replace(".", ",") if is_unsure(value, sign) else value  # a point would be taken for a decimal one
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


# ------------------------------------------------------------------ size


def _scan(path: Path, max_bytes: int) -> None:
    """Refuse a workbook that needs more than `max_bytes`.

    A workbook is a zip archive of XML, and a sheet is read as the rectangle around its cells: two cells in far corners
    ask for gigabytes. So its parts first pass through a parser that keeps nothing and counts.
    """
    with zipfile.ZipFile(path) as archive:
        if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()):
            raise ValueError("packed in a way that workbooks are not")
        unpacked = sum(info.file_size for info in archive.infolist())  # no more than this is ever unpacked
        check_size(path, unpacked, max_bytes, "unpacks to")
        check_ratio(path, unpacked, path.stat().st_size, "if that is right, save the sheet as .csv")
        for member in archive.infolist():
            with archive.open(member) as stream:
                head = stream.read(_CHUNK)
                if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
                    continue  # a picture or a macro, which nobody opens
                part = _Part()
                while head:
                    part.parser.Parse(head, False)
                    needed = unpacked + _ELEMENT * part.n_elements + _CELL * part.bottom * part.right
                    check_size(path, needed, max_bytes, "the workbook needs")
                    head = stream.read(_CHUNK)
                part.parser.Parse(b"", True)


class _Part:
    """Counter of the elements of a part, and the extent of its cells."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.n_elements = self.row = self.column = self.bottom = self.right = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition(" ")[2]
        if element == "row":
            given = attributes.get("r", "")
            self.row, self.column = int(given) if given.isdigit() else self.row + 1, 0
        elif element == "c" and self.row:
            self.column += 1
            if place := re.fullmatch(r"([A-Za-z]+)(\d+)", attributes.get("r", "")):
                self.row, self.column = int(place[2]), 0
                for letter in place[1].upper():
                    self.column = 26 * self.column + ord(letter) - 64
            self.bottom, self.right = max(self.bottom, self.row), max(self.right, self.column)
        elif element in ("table", "table-row", "table-cell"):  # of OpenDocument, where many may be written as one
            times = next((int(n) for key, n in attributes.items() if key.endswith("-repeated") and n.isdigit()), 1)
            if element == "table-cell":
                self.column += times
                if any(key.endswith("value-type") for key in attributes):
                    self.bottom, self.right = max(self.bottom, self.row), max(self.right, self.column)
            else:
                self.row, self.column = self.row + times if element == "table-row" else 0, 0
        elif not self.row:
            self.n_elements += 1

    def _refuse(self, *_: Any) -> None:
        raise ValueError("its XML defines entities, which no spreadsheet program writes")
