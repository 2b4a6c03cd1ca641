"""Cells that do nothing but stand there, whatever program opens the table; workbooks and text files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, TextIO

MAX_SHEET_ROWS = 2**20
"""Rows that a sheet of a workbook can have."""

_FORMULA = tuple("=+-@＝＋－＠")  # what a spreadsheet reads as the start of a formula, the wide forms in some locales
_SEPARATORS = ",;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"  # of cells in some country, and of lines
_BEGINS = re.compile(f'(?<=[{_SEPARATORS}])[ \xa0\u3000"]*[{re.escape("".join(_FORMULA))}]')
_TINTS = ("DCE9F5", "FCE8D0", "DDF0DD", "F6DCE6", "FFF6C8", "E6DFF2", "D3F0F0", "EAE3DA")  # black text reads on all
_LOST_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def harmless(cell: Any) -> Any:
    """A cell that no spreadsheet runs as a formula.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-3"), harmless("a=b"), harmless(-3)
    ("'=1+1", '-3', 'a=b', -3)
    """
    if not isinstance(cell, str) or not (cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n"))):
        return cell
    try:
        float(cell)
    except ValueError:
        return "'" + cell
    return cell


def harmless_in_text(cell: Any) -> Any:
    """A cell of a text file that no spreadsheet runs as a formula, wherever it thinks that a cell begins.

    Which character separates cells depends on the country. One that expects semicolons sees a quotation mark behind a
    comma as a letter, so that quotes protect nothing.

    Examples
    --------
    >>> harmless_in_text("a;=1+1"), harmless_in_text("1,-3"), harmless_in_text("a=b; c")
    ("a;'=1+1", '1,-3', 'a=b; c')
    """
    if not isinstance(cell, str):
        return cell
    rest = [(begin.start(), cell[begin.end() - 1 :]) for begin in _BEGINS.finditer(cell)]
    for place, part in reversed(rest):
        if harmless(part) != part:
            cell = f"{cell[:place]}'{cell[place:]}"
    return harmless(cell)


def write_rows(text: TextIO, rows: Iterable[Sequence[Any]], delimiter: str = ",") -> None:
    """Rows as CSV, no cell a formula; the one way in which the package writes names that come from outside.

    A row with a control character or another separator of lines is quoted: the csv module would leave a carriage
    return bare, and readers would see a new row there, whose first cell nobody looked at.
    """
    plain, quoted = [
        csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC)
    ]
    for row in rows:
        cells = [harmless_in_text(cell) for cell in row]
        is_plain = all(cell.isprintable() for cell in cells if isinstance(cell, str))
        (plain if is_plain else quoted).writerow(cells)


def write_sheet(
    stream: BinaryIO, names: Sequence[str], rows: Iterable[Sequence[Any]], n_rows: int, tinted: str = ""
) -> None:
    """Rows as a workbook of one sheet, no cell a formula; characters that XML cannot keep become escapes.

    The names of the columns stay in sight and have buttons that sort and filter; where the column `tinted` holds whole
    numbers, rows of one number have one colour, in whichever order they stand.
    """
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = f"A1:{openpyxl.utils.get_column_letter(len(names))}{n_rows + 1}"
    if tinted in names:
        _tint(sheet, len(names), list(names).index(tinted), n_rows)
    try:
        sheet.append([_for_sheet(name) for name in names])
        for row in rows:
            sheet.append([_for_sheet(cell) for cell in row])
        # openpyxl leaves its archive open where a disk is full, and its closing would complain once more
        packed = io.BytesIO()
        book.save(packed)
        stream.write(packed.getbuffer())
    finally:
        with suppress(Exception):  # closed by now, unless something went wrong
            sheet.close()


def _tint(sheet: Any, n_columns: int, column: int, n_rows: int) -> None:
    """Colour rows by the number in one column; a rule of the sheet, so that sorting keeps the colours right."""
    from openpyxl.formatting.rule import FormulaRule
    from openpyxl.styles import PatternFill
    from openpyxl.utils import get_column_letter

    key, area = f"${get_column_letter(column + 1)}2", f"A2:{get_column_letter(n_columns)}{max(n_rows + 1, 2)}"
    for i, color in enumerate(_TINTS):
        fill = PatternFill(bgColor=color, fill_type="solid")
        rule = f"AND(ISNUMBER({key}),MOD({key},{len(_TINTS)})={i})"
        sheet.conditional_formatting.add(area, FormulaRule(formula=[rule], fill=fill))


def _for_sheet(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return harmless(_LOST_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), cell))


def one_by_one(columns: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    """Columns of one length as rows, numbers as people read them."""
    first, *others = columns
    yield from (list(row) for row in zip(first, *(map(short, column) for column in others), strict=True))


def short(value: Any) -> Any:
    """Numbers as people read them: six digits; yes and no as 1 and 0, which every program sorts and filters."""
    if isinstance(value, bool):
        return int(value)
    return float(f"{value:.6g}") if isinstance(value, float) else value
