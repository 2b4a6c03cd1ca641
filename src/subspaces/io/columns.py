"""Columns of a table: which are features, which is the label, which the identifier; values that are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.io.dataset import (
    Dataset,
    FileError,
    Request,
    TextColumnsError,
    argument,
    first_not_finite,
    printable,
    quoted,
)
from subspaces.numerics.types import Array
from subspaces.spelling import counted

LABEL_NAMES = ("y", "gnd", "label", "labels", "target", "class", "classes")
"""Names under which the true classes usually travel (compared in lower case)."""

ROW_NAMES = ("", "__index_level_0__")
"""Names of the column of row names that pandas and R write unasked (CSV; Parquet)."""

MISSING_RULES = ("error", "drop", "mean", "median")
"""What can be done about missing values."""

FEW = 3
"""Rows from which on texts that are all different are taken for names of the points."""

_COUNTED = 8  # rows from which numbers that count up are no accident
_SHOWN = 4
"""Rows and columns that an error lists."""


@dataclass(frozen=True)
class Columns:
    """Positions of the columns by their part."""

    features: list[int]
    label: int | None
    id: int | None
    notes: tuple[str, ...]


def choose_columns(path: Path, names: Sequence[str], request: Request) -> Columns:
    """Give every column its part.

    An unnamed first column (``__index_level_0__`` in Parquet) holds row names written by pandas or R; a row
    number is not a feature, so it becomes the identifier.
    """
    label = None if request.label is None else find_column(path, names, request.label, "label")
    id_ = None if request.id is None else find_column(path, names, request.id, "id")
    left_out = {find_column(path, names, name, "ignore") for name in request.ignore}
    notes = []
    row_names = [i for i, name in enumerate(names) if name in ROW_NAMES and i in (0, len(names) - 1)]
    if len(names) > 1 and row_names and row_names[0] not in left_out | {label, id_}:
        left_out.add(row_names[0])
        part = "left out" if id_ is not None else "used as the id"
        id_ = row_names[0] if id_ is None else id_
        notes.append(f"the column of row names is {part}, not clustered")
    features = [i for i in range(len(names)) if i not in left_out | {label, id_}]
    if request.columns is not None:
        features = _picked(path, names, request.columns)
    if not features:
        raise FileError(path, f"no column is left to cluster (the file has {quoted(names)})")
    for i in features:
        if label is None and names[i].lower() in LABEL_NAMES:
            how = f"{argument('label', names[i])} would score against it"
            notes.append(f"column '{printable(names[i])}' is clustered like the others; {how}")
    return Columns(features, label, id_, tuple(notes))


def _picked(path: Path, names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Positions of the columns that were asked for, in that order."""
    absent = [name for name in wanted if name not in names]
    if absent:
        one = counted(len(absent), "column is", "columns are")
        raise FileError(path, f"{one} missing: {quoted(absent)}; the file has {quoted(names)}")
    return [find_column(path, names, name, "columns") for name in wanted]


def find_column(path: Path, names: Sequence[str], wanted: str, part: str) -> int:
    """Position of the column called `wanted`, for the argument `part`."""
    count = list(names).count(wanted)
    if count == 1:
        return list(names).index(wanted)
    if count > 1:
        raise FileError(path, f"{count} columns are called '{printable(wanted)}'; rename them to use {argument(part)}")
    near = get_close_matches(wanted, names, n=1)
    hint = f"; did you mean '{printable(near[0])}'?" if near else ""
    problem = f"{argument(part)} '{printable(wanted)}' is not a column"
    raise FileError(path, f"{problem}; the columns are {quoted(names)}{hint}")


def keep_out(name: str) -> str:
    """The ways to keep a column out of the points, for a message."""
    return f"{argument('label', name)}, {argument('id', name)} or {argument('ignore', [name])}"


def named_by(columns: Columns, position: int, name: str) -> Columns:
    """Make a column the identifier, and say so."""
    reason = "is taken as the names of the points, because all its texts differ"
    note = f"column '{printable(name)}' {reason}; it is not clustered"
    features = [i for i in columns.features if i != position]
    return Columns(features, columns.label, position, (*columns.notes, note))


def text_remedy(found: Mapping[str, Sequence[str]], request: Request) -> dict[str, Any]:
    """Arguments that keep columns of text out: the one with fewest different texts is scored, the others left out."""
    left = list(found)
    remedy: dict[str, Any] = {}
    if request.label is None:
        fewest = min(left, key=lambda name: len(set(found[name])))
        if 2 * len(set(found[fewest])) <= len(found[fewest]) or fewest.lower() in LABEL_NAMES:
            remedy["label"] = fewest
            left.remove(fewest)
    return remedy | ({"ignore": left} if left else {})


def text_trouble(
    path: Path, found: Mapping[str, Sequence[str]], request: Request, first: str, line: int | None = None
) -> TextColumnsError:
    """All columns of text among the points in one error; `first` is the first text of the first of them."""
    remedy = text_remedy(found, request)
    names = list(found)
    if len(names) == 1:
        problem = f"'{printable(first)}' is not a number; use {keep_out(names[0])} to keep the column out of the points"
        return TextColumnsError(path, problem, remedy, line=line, column=names[0])
    given = " and ".join(argument(name, value) for name, value in remedy.items())
    problem = f"{len(names)} columns hold text, not numbers ({quoted(names)}); keep them out of the points with {given}"
    return TextColumnsError(path, problem, remedy, line=line)


def with_note_of_counters(data: Dataset) -> Dataset:
    """The data with a note where a column numbers its rows 1, 2, 3, ...: a name mostly, and clustered all the same."""
    X, names = data.X, data.feature_names
    if names is None or len(X) < _COUNTED or len(names) < 2:
        return data
    ends = np.isin(X[0], (0, 1)) & (X[-1] == X[0] + len(X) - 1)
    counter = next((names[j] for j in np.flatnonzero(ends) if (X[1:, j] == X[:-1, j] + 1).all()), None)
    if counter is None:
        return data
    how = argument("ignore", [counter]) + " leaves it out"
    if data.ids is None:
        how = argument("id", counter) + " names the rows by it"
    note = f"column '{printable(counter)}' only counts the rows and is clustered like the others; {how}"
    return replace(data, notes=(*data.notes, note))


def settle_missing(
    data: Dataset, how: str, row_name: Callable[[int], str], names: Sequence[str], cell: str = ""
) -> Dataset:
    """Return the data without missing values (NaN), or say in one error where they are.

    `how` is one of `MISSING_RULES`, or ``"keep"``, which leaves them where they are. For the error, `row_name` names a
    row for people (``"line 7"``), `names` are those of the columns, and `cell` is what stands in the file for the first
    missing value.
    """
    if first_not_finite(data.X) is None:
        return data
    missing = np.isnan(data.X)
    infinite = ~np.isfinite(data.X) & ~missing
    if infinite.any():
        i, j = (int(index) for index in np.unravel_index(int(np.argmax(infinite)), infinite.shape))
        problem = f"{row_name(i)}, column '{printable(names[j])}': {data.X[i, j]} is not finite"
        raise FileError(data.source, f"{problem}; correct it or leave out the row or column ({argument('ignore')})")
    if how == "keep":
        return data
    rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
    if how == "error":
        raise FileError(data.source, _report(missing, rows, columns, row_name, names, cell))
    counts = ", ".join(f"'{printable(names[j])}' {int(missing[:, j].sum())}" for j in columns[:_SHOWN])
    more = f" and {counted(len(columns) - _SHOWN, 'more column')}" if len(columns) > _SHOWN else ""
    where = f"{counted(int(missing.sum()), 'value was', 'values were')} missing ({counts}{more})"
    if how == "drop":
        return _drop(data, rows, f"{where}: {counted(len(rows), 'row')} with a gap left out, without a label")
    X = _fill_in(data.source, data.X, missing, columns, how, names)
    return replace(data, X=X, notes=(*data.notes, f"{where}: the {how} of the column was put in"))


def _report(
    missing: Array, rows: Array, columns: Array, row_name: Callable[[int], str], names: Sequence[str], cell: str
) -> str:
    """Where values are missing, and what to do about it."""
    total, i = int(missing.sum()), int(rows[0])
    what = f"{row_name(i)}, column '{printable(names[int(np.argmax(missing[i]))])}': missing value{cell and ' ' + cell}"
    if total > 1:
        named = [(row, [names[int(j)] for j in np.flatnonzero(missing[row])]) for row in rows[:_SHOWN].tolist()]
        listed = "; ".join(f"{row_name(row)}: {quoted(absent, _SHOWN)}" for row, absent in named)
        more = f"; and {counted(len(rows) - _SHOWN, 'more row')}" if len(rows) > _SHOWN else ""
        where = f"{counted(len(rows), 'row')} and {counted(len(columns), 'column')}"
        what += f", the first of {total} in {where} ({listed}{more})"
    left = f", which keeps {missing.shape[0] - len(rows)} of {missing.shape[0]} rows,"
    drop, mean, median = (argument("missing", rule) for rule in ("drop", "mean", "median"))
    return f"{what}; fill it in, use {drop}{left} {mean} or {median}, or leave out the column ({argument('ignore')})"


def _drop(data: Dataset, rows: Array, note: str) -> Dataset:
    n = len(data.X)
    kept = np.setdiff1d(np.arange(n), rows)
    if len(kept) < 2:
        problem = f"{argument('missing', 'drop')} leaves {len(kept)} of {n} rows"
        remedy = f"use {argument('missing', 'mean')}, or {argument('ignore')} the columns with the missing values"
        raise FileError(data.source, f"{problem}; {remedy}")
    y = None if data.y is None else data.y[kept]
    ids = None if data.ids is None else [data.ids[i] for i in kept]
    notes = (*data.notes, note)
    return replace(data, X=data.X[kept], y=y, ids=ids, rows=kept, row_ids=data.ids, n_rows=n, notes=notes)


def _fill_in(path: Path, X: Array, missing: Array, columns: Array, how: str, names: Sequence[str]) -> Array:
    X = X.copy()
    for j in columns:
        known = X[~missing[:, j], j]
        if len(known) == 0:
            remedy = f"leave the column out with {argument('ignore', [names[j]])}"
            raise FileError(path, f"every value is missing; {remedy}", column=names[j])
        X[missing[:, j], j] = _middle(known, how)
    return X


def _middle(known: Array, how: str) -> Any:
    """Mean or median; of numbers near the largest there is, the sum behind it would be infinite, so they are scaled."""
    largest = np.abs(known).max()
    scale = known.dtype.type(largest if largest > np.finfo(known.dtype).max / (2 * len(known)) else 1)
    return (np.mean if how == "mean" else np.median)(known / scale) * scale
