"""Labels to files, so that a file is there whole or not at all."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from subspaces.app.files.safe_cells import MAX_SHEET_ROWS, one_by_one, write_sheet
from subspaces.app.files.safe_cells import write_rows as write_rows
from subspaces.utils.atomic import remove_leftovers, temporary_name, write_array, write_atomically
from subspaces.utils.files import FileError, argument, printable
from subspaces.utils.types import Array, Labels

Ids = Sequence[Any] | None
Table = dict[str, list[Any]]
"""Columns by name; the first holds the identifiers or row numbers."""


def check_output(
    path: str | PathLike[str],
    *,
    force: bool = False,
    source: str | PathLike[str] | None = None,
    suffixes: Sequence[str] = (".csv", ".tsv", ".xlsx", ".parquet", ".json", ".npy"),
    what: str = "labels",
) -> None:
    """Refuse an output that could not be written, before hours are spent computing it.

    Parameters
    ----------
    path : the file to write; its suffix gives the format
    force : whether an existing file may be replaced
    source : the input file, which is never replaced
    suffixes : what the name may end in
    what : what is written, for the error
    """
    file = Path(path)
    if file.suffix.lower() not in suffixes:
        found = f"the suffix '{printable(file.suffix)}'" if file.suffix else "a name without a suffix"
        raise FileError(file, f"{what} cannot be written to {found}; choose one of {', '.join(suffixes)}")
    if file.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise FileError(file, 'writing Parquet needs pyarrow: pip install "subspaces[app]" (or choose .csv)')
    if file.suffix.lower() == ".xlsx" and find_spec("openpyxl") is None:
        raise FileError(file, 'writing workbooks needs openpyxl: pip install "subspaces[app]" (or choose .csv)')
    if file.is_dir():
        raise FileError(file, "this is a folder; name a file in it")
    folder = file.resolve().parent
    if not folder.is_dir():
        raise FileError(file, "its folder does not exist; create it or choose another")
    if not os.access(folder, os.W_OK):
        raise FileError(file, "its folder may not be written to; choose another or change its permissions")
    try_to_write(file)
    if source is not None and file.exists() and Path(source).exists() and file.samefile(source):
        raise FileError(file, f"this is the input file; choose another name for the {what}")
    if file.exists() and not force:
        allow = f"allow it to be replaced with {argument('force', True)}"
        raise FileError(file, f"the file exists; choose another name or {allow}")


def try_to_write(file: Path) -> None:
    """What permissions do not tell: a disk that refuses even its owner, a name that is too long.

    What killed processes left in the folder is removed first: it may be what fills the disk.
    """
    probe = file.resolve().with_name(temporary_name(file.name))
    remove_leftovers(probe.parent)
    try:
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
    ids: Ids = None,
    columns: Mapping[str, Array] | None = None,
    lines: Labels | None = None,
    rows: Labels | None = None,
    n_rows: int | None = None,
    extra: Mapping[str, Any] | None = None,
    force: bool = False,
) -> None:
    """Write one label per point to a ``.csv``, ``.tsv``, ``.xlsx``, ``.parquet``, ``.json`` or ``.npy`` file.

    Tables have the columns ``id`` (or ``line``, where the points have lines but no identifiers, or ``row``, counted
    from 0, where they have neither), ``cluster`` and those of `columns`. A ``.npy`` file holds the labels only.
    In CSV, TSV and workbooks a text identifier that a spreadsheet would take for a formula (it starts with ``=``,
    ``+``, ``-``, ``@``, a tabulator or a new line and is no number) gets an apostrophe in front; in CSV and TSV also
    inside of an identifier, behind a comma, semicolon, tabulator or new line.

    Parameters
    ----------
    path : the file to write
    labels : array of shape (n_samples,)
    ids : an identifier for each point (each row, with `n_rows`)
    columns : what else is known of each point, such as its confidence: names, and arrays of shape (n_samples,)
    lines : line of each point (each row, with `n_rows`) in the file it was read from
    rows : row of each point in a table of `n_rows` rows; the others get an empty label (−1 in ``.npy``)
    n_rows : rows of the table, the same as points by default
    extra : what else a JSON file shall say; other formats leave it out
    force : whether an existing file may be replaced
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
        table[name] = _spread(values, rows, n)
    with write_atomically(file) as stream:
        WRITERS[file.suffix.lower()](stream, table, extra or {})


def check_n_rows(path: Path, n_rows: int) -> None:
    """Refuse more rows than a file of this kind can hold."""
    if path.suffix.lower() == ".xlsx" and n_rows >= MAX_SHEET_ROWS:
        raise FileError(path, f"a sheet holds {MAX_SHEET_ROWS - 1} labels at most, not {n_rows}; choose .csv")


def _spread(values: Array, rows: Labels | None, n: int) -> list[Any]:
    """Values of the points as a column of all rows, None where a row has no point."""
    plain = np.asarray(values).tolist()
    if rows is None:
        return plain
    column = [None] * n
    for row, value in zip(rows.tolist(), plain, strict=True):
        column[row] = value
    return column


def _write_text(stream: BinaryIO, table: Table, extra: Mapping[str, Any], delimiter: str = ",") -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    write_rows(text, [list(table)], delimiter)
    write_rows(text, one_by_one(table.values()), delimiter)
    text.detach()  # flushes, and leaves the file open for the caller


def _write_xlsx(stream: BinaryIO, table: Table, extra: Mapping[str, Any]) -> None:
    n_rows = len(next(iter(table.values())))
    write_sheet(stream, list(table), one_by_one(table.values()), n_rows, tinted="cluster")


def _write_json(stream: BinaryIO, table: Table, extra: Mapping[str, Any]) -> None:
    columns = {name: values for name, values in table.items() if name != "row"}
    stream.write(json.dumps({**extra, **columns}, allow_nan=False, default=str).encode() + b"\n")


def _write_npy(stream: BinaryIO, table: Table, extra: Mapping[str, Any]) -> None:
    write_array(stream, np.array([-1 if label is None else label for label in table["cluster"]], dtype=np.int64))


def _write_parquet(stream: BinaryIO, table: Table, extra: Mapping[str, Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(table), stream)


WRITERS: dict[str, Callable[[BinaryIO, Table, Mapping[str, Any]], None]] = {
    ".csv": _write_text,
    ".tsv": partial(_write_text, delimiter="\t"),
    ".xlsx": _write_xlsx,
    ".parquet": _write_parquet,
    ".json": _write_json,
    ".npy": _write_npy,
}
"""Writer of each suffix."""
