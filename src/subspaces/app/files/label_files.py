"""Labels read back from tables and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from subspaces.app.files.arrays import read_vector
from subspaces.app.files.cells import kind_of
from subspaces.app.files.dataset import Request, told_in_one_line
from subspaces.app.files.excel import open_sheet
from subspaces.app.files.parquet import read_columns
from subspaces.app.files.text import SEPARATORS, Layout, Row, open_text
from subspaces.utils.files import FileError, check_size, printable, quoted
from subspaces.utils.memory import available_bytes

NAMES, IDS = ("cluster", "label", "labels"), ("id", "ids", "line", "row")
"""Columns that hold labels, and names of the samples; the first that is there."""

Columns = dict[str, list[str]]

_ENTRY = 60
"""Bytes that a text takes beside its characters."""


@dataclass(frozen=True)
class LabelFile:
    """Labels as texts, with the names of the samples (None: their order identifies them) and the known classes."""

    source: Path
    labels: list[str]
    ids: list[str] | None = None
    named_by: str | None = None  # id, line or row
    truth: list[str] | None = None
    is_truth: bool = False  # it has the classes and no labels


def read_labels(path: str | PathLike[str], truth: str | None = None, max_bytes: int | None = None) -> LabelFile:
    """Read labels that `write_labels` or another program wrote; samples without a label are left out.

    Parameters
    ----------
    path : a table with the columns ``cluster`` and, if samples have names, ``id``; or a ``.npy`` file
    truth : column with the known classes; files that do not have it give none
    max_bytes : the most memory the values may take; by default the memory that is free now
    """
    file = Path(path)
    if not file.is_file():
        raise FileError(file, "no such file; check the name and the folder")
    with told_in_one_line(file, "of another format"):
        columns = _columns(file, truth, available_bytes() if max_bytes is None else max_bytes)
    labels = next((columns[name] for name in NAMES if name in columns), None)
    classes = columns.get(truth or "")
    is_truth = labels is None and bool(classes)
    labels = classes if is_truth else labels
    if labels is None:
        raise FileError(file, f"no column is called {quoted(NAMES)}; the columns are {quoted(list(columns))}")
    known = [i for i, label in enumerate(labels) if label]
    if not known:
        raise FileError(file, "it holds no labels")
    named_by = next((name for name in IDS if name in columns), None)
    ids, classes = (found and [found[i] for i in known] for found in (columns.get(named_by or ""), classes))
    return LabelFile(file, [labels[i] for i in known], ids, named_by and named_by.removesuffix("s"), classes, is_truth)


def _columns(path: Path, truth: str | None, max_bytes: int) -> Columns:
    name = path.name.lower().removesuffix(".gz")
    suffix, wanted = Path(name).suffix, [*NAMES, *IDS, *([] if truth is None else [truth])]
    if suffix in SEPARATORS:
        return _from_rows(path, open_text(path, max_bytes), wanted, max_bytes)
    if suffix in (".xlsx", ".xlsm"):
        return _from_rows(path, open_sheet(path, Request(max_bytes=max_bytes)), wanted, max_bytes)
    if suffix == ".parquet":
        return {name: list(map(_text, column)) for name, column in read_columns(path, wanted, max_bytes).items()}
    if suffix == ".npy":
        labels = read_vector(path, max_bytes).tolist()
        return {"cluster": ["" if label == -1 else _text(label) for label in labels]}
    known = ", ".join([*SEPARATORS, ".xlsx", ".parquet", ".npy"])
    raise FileError(path, f"labels are not read from '{printable(suffix)}'; choose one of {known}")


def _from_rows(
    path: Path, opened: AbstractContextManager[tuple[Iterator[Row], Layout]], wanted: Sequence[str], max_bytes: int
) -> Columns:
    with opened as (rows, layout):
        first = next(rows, None)
        if first is None:
            raise FileError(path, "it holds no labels")
        names = [cell.strip() for cell in first[1]]
        columns: Columns = {name: [] for name in names if name in wanted}
        if len(names) == 1 and not columns and kind_of(names[0]) == "number":  # labels and nothing else
            columns, names = {"cluster": names}, ["cluster"]
        if not any(name in columns for name in wanted if name not in IDS):
            return {name: [] for name in names}
        needed = 0
        for line, row in rows:
            cells = row + [""] * (len(names) - len(row)) if layout.is_sheet else row
            if len(cells) != len(names):
                raise FileError(path, f"{len(cells)} cells where the first line has {len(names)}; repair it", line=line)
            for name in columns:
                columns[name].append(cells[names.index(name)].strip())
                needed += _ENTRY + len(columns[name][-1])
            check_size(path, needed, max_bytes, "its texts need more than")
    return columns


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():  # a column with gaps comes as floats
        value = int(value)
    return "" if value is None else str(value).strip()
