"""Labels to files that are there whole or not at all, in cells that no spreadsheet runs as a formula."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from subspaces.utils.atomic import remove_leftovers, temporary_name, write_array, write_atomically
from subspaces.utils.files import FileError, argument, printable
from subspaces.utils.types import Array, Labels

Table = dict[str, list[Any]]
"""Columns by name; the first holds the identifiers or row numbers."""

Sheets = Mapping[str, Sequence[Sequence[Any]]]
"""Rows of more sheets of a workbook by their titles."""

_MAX_SHEET_ROWS = 2**20
_FORMULA = tuple("=+-@＝＋－＠")  # starts of a formula in a spreadsheet, the wide forms in some locales
_SEPARATORS = ",;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029"  # of cells in some country, and of lines
_BEGINS = re.compile(f'(?<=[{_SEPARATORS}])[ \xa0\u3000"]*[{re.escape("".join(_FORMULA))}]')
_TINTS = ("DCE9F5", "FCE8D0", "DDF0DD", "F6DCE6", "FFF6C8", "E6DFF2", "D3F0F0", "EAE3DA")  # black text reads on all
_LOST_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEEDED = {".parquet": ("pyarrow", "Parquet"), ".xlsx": ("openpyxl", "workbooks")}


def check_output(
    path: str | PathLike[str],
    *,
    force: bool = False,
    source: str | PathLike[str] | None = None,
    suffixes: Sequence[str] = (".csv", ".tsv", ".xlsx", ".parquet", ".npy"),
    what: str = "labels",
) -> None:
    """Refuse an output that could not be written, before hours are spent computing it.

    Parameters
    ----------
    path : the file to write; its suffix gives the format
    force : allow an existing file to be replaced
    source : the input file, which is never replaced
    suffixes : endings that the name may have
    what : the content, for the error
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in suffixes:
        found = f"the suffix '{printable(file.suffix)}'" if file.suffix else "a name without a suffix"
        raise FileError(file, f"{what} cannot be written to {found}; choose one of {', '.join(suffixes)}")
    if suffix in _NEEDED and find_spec(_NEEDED[suffix][0]) is None:
        module, kind = _NEEDED[suffix]
        raise FileError(file, f'writing {kind} needs {module}: pip install "subspaces[app]" (or choose .csv)')
    if file.is_dir():
        raise FileError(file, "this is a folder; name a file in it")
    check_folder_of(file)
    if source is not None and file.exists() and Path(source).exists() and file.samefile(source):
        raise FileError(file, f"this is the input file; choose another name for the {what}")
    if file.exists() and not force:
        allow = f"allow it to be replaced with {argument('force', True)}"
        raise FileError(file, f"the file exists; choose another name or {allow}")


def check_folder_of(file: Path) -> None:
    """Refuse an output whose folder is not there or takes no file of that name.

    Files that killed processes left in the folder are removed first: they may be what fills the disk.
    """
    probe = file.resolve().with_name(temporary_name(file.name))
    if not probe.parent.is_dir():
        raise FileError(file, "its folder does not exist; create it or choose another")
    if not os.access(probe.parent, os.W_OK):
        raise FileError(file, "its folder may not be written to; choose another or change its permissions")
    remove_leftovers(probe.parent)
    try:  # what permissions do not tell: a disk that refuses even its owner, a name that is too long
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        probe.unlink()
    except OSError as error:
        reason = printable(error.strerror or str(error))
        raise FileError(file, f"cannot be written ({reason}); choose another name or folder") from None
    finally:  # again: Ctrl-C may have come before the first
        with suppress(OSError):
            probe.unlink()


def write_labels(
    path: str | PathLike[str],
    labels: Labels,
    *,
    ids: Sequence[Any] | None = None,
    columns: Mapping[str, Array] | None = None,
    lines: Labels | None = None,
    rows: Labels | None = None,
    n_rows: int | None = None,
    original: Any = None,
    sheets: Sheets | None = None,
    force: bool = False,
) -> None:
    """Write one label per sample to a ``.csv``, ``.tsv``, ``.xlsx``, ``.parquet`` or ``.npy`` file.

    Tables have the columns ``id`` (or ``line``, where the samples have lines but no identifiers, or ``row``, counted
    from 0, where they have neither), those of `original`, ``cluster`` and those of `columns`. A ``.npy`` file holds the
    labels only.
    In CSV, TSV and workbooks a text identifier that a spreadsheet would take for a formula (it starts with ``=``,
    ``+``, ``-``, ``@``, a tabulator or a new line and is no number) gets an apostrophe in front; in CSV and TSV also
    inside of an identifier, behind a comma, semicolon, tabulator or new line.

    Parameters
    ----------
    path : the file to write
    labels : array of shape (n_samples,)
    ids : an identifier for each sample (each row, with `n_rows`)
    columns : more columns, such as the confidence: names, and arrays of shape (n_samples,)
    lines : line of each sample (each row, with `n_rows`) in the file it was read from
    rows : row of each sample in a table of `n_rows` rows; the others get an empty label (−1 in ``.npy``)
    n_rows : rows of the table, by default as many as samples
    original : pandas.DataFrame with the columns of the file that was clustered, a row for each row of the table
    sheets : more sheets of a workbook; other formats leave them out
    force : allow an existing file to be replaced
    """
    file = Path(path)
    check_output(file, force=force)
    n = len(labels) if n_rows is None else n_rows
    if ids is not None and len(ids) != n:
        raise ValueError(f"ids has {len(ids)} entries and labels {n}; there must be one id per label")
    check_n_rows(file, n)
    table: Table = {"row": list(range(n))}
    if ids is not None:
        table = {"id": list(ids)}
    elif lines is not None:
        table = {"line": lines.tolist()}
    for name, values in {"cluster": labels, **(columns or {})}.items():
        table[name] = plain = np.asarray(values).tolist()
        if rows is not None:
            table[name] = [None] * n
            for row, value in zip(rows.tolist(), plain, strict=True):
                table[name][row] = value
    if original is not None and len(original) != n:
        raise ValueError(f"original has {len(original)} rows and the table {n}; there must be one for each")
    suffix, (first, *ours) = file.suffix.lower(), table
    if suffix in (".csv", ".tsv", ".xlsx"):  # as people read them
        table |= {name: list(map(_short, table[name])) for name in ours}
    if original is not None:
        table = {first: table[first], **_own_columns(original, table), **{name: table[name] for name in ours}}
    with write_atomically(file) as stream:
        WRITERS[suffix](stream, table, sheets or {})


def _own_columns(original: Any, ours: Table) -> Table:
    """Return the columns of a person's table with None in empty cells, under names that differ from each other's."""
    plain = original.astype(object).where(original.notna(), None)
    columns: Table = {}
    for j, name in enumerate(map(str, plain.columns)):
        cells = plain.iloc[:, j].tolist()
        if name in ("id", "line", "row") and list(map(str, cells)) == list(map(str, ours.get(name, ()))):
            continue  # there already
        while name in ours or name in columns:
            name += " (before)" if name in ours else f" ({j + 1})"
        columns[name] = cells
    return columns


def check_n_rows(path: Path, n_rows: int) -> None:
    """Refuse more rows than a file of this kind can hold."""
    if path.suffix.lower() == ".xlsx" and n_rows >= _MAX_SHEET_ROWS:
        raise FileError(path, f"a sheet holds {_MAX_SHEET_ROWS - 1} labels at most, not {n_rows}; choose .csv")


# ------------------------------------------------------------------ cells


def harmless(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs as a formula.

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
    """Return a cell of a text file that no spreadsheet runs as a formula, wherever it thinks that a cell begins.

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
    """Write rows as CSV, no cell a formula; all names that come from outside are written by this function.

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


def _short(value: Any) -> Any:
    """Return numbers with six digits, and True and False as 1 and 0, which every program sorts and filters."""
    if isinstance(value, bool):
        return int(value)
    return float(f"{value:.6g}") if isinstance(value, float) else value


# ------------------------------------------------------------------ formats


def _write_text(stream: BinaryIO, table: Table, sheets: Sheets, delimiter: str = ",") -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    write_rows(text, [list(table)], delimiter)
    write_rows(text, zip(*table.values(), strict=True), delimiter)
    text.detach()  # flushes, and leaves the file open for the caller


def _write_xlsx(stream: BinaryIO, table: Table, sheets: Sheets) -> None:
    """Write a workbook of one sheet; characters that XML cannot keep become escapes.

    The names of the columns stay in sight and have buttons that sort and filter; rows of one cluster have one colour.
    """
    import openpyxl
    from openpyxl.formatting.rule import FormulaRule
    from openpyxl.styles import PatternFill
    from openpyxl.utils import get_column_letter

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("labels")
    last, bottom = get_column_letter(len(table)), len(next(iter(table.values()))) + 1
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = f"A1:{last}{bottom}"
    key = f"${get_column_letter(list(table).index('cluster') + 1)}2"
    for i, color in enumerate(_TINTS):  # by a rule of the sheet, so that sorting keeps the colours right
        rule = f"AND(ISNUMBER({key}),MOD({key},{len(_TINTS)})={i})"
        fill = PatternFill(bgColor=color, fill_type="solid")
        sheet.conditional_formatting.add(f"A2:{last}{max(bottom, 2)}", FormulaRule(formula=[rule], fill=fill))
    try:
        for row in ([*table], *zip(*table.values(), strict=True)):
            sheet.append([_for_sheet(cell) for cell in row])
        for title, rows in sheets.items():
            more = book.create_sheet(title)
            for row in rows:
                more.append([_for_sheet(_short(cell)) for cell in row])
            more.close()
        # openpyxl leaves its archive open where a disk is full, and its closing would complain once more
        packed = io.BytesIO()
        book.save(packed)
        stream.write(packed.getbuffer())
    finally:
        with suppress(Exception):  # closed by now, unless something went wrong
            sheet.close()


def _for_sheet(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return harmless(_LOST_IN_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), cell))


def _write_npy(stream: BinaryIO, table: Table, sheets: Sheets) -> None:
    write_array(stream, np.array([-1 if label is None else label for label in table["cluster"]], dtype=np.int64))


def _write_parquet(stream: BinaryIO, table: Table, sheets: Sheets) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(table), stream)


WRITERS: dict[str, Callable[[BinaryIO, Table, Sheets], None]] = {
    ".csv": _write_text,
    ".tsv": partial(_write_text, delimiter="\t"),
    ".xlsx": _write_xlsx,
    ".parquet": _write_parquet,
    ".npy": _write_npy,
}
"""Writer of each suffix."""
