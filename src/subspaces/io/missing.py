"""Values that are missing: reported by row and column, or dropped or filled in as asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.io.dataset import Dataset, FileError, argument, first_not_finite, printable, quoted
from subspaces.numerics.types import Array

MISSING_RULES = ("error", "drop", "mean", "median")
"""What can be done about missing values."""

_SHOWN = 4
"""Rows and columns that an error lists."""


def settle_missing(
    data: Dataset, how: str, row_name: Callable[[int], str], names: Sequence[str], cell: str = ""
) -> Dataset:
    """Return the data without missing values (NaN), or say in one error where they are.

    Parameters
    ----------
    data : Dataset
    how : {"error", "drop", "mean", "median"}
        Drop the rows, or fill in the mean or median of the column.
    row_name : callable
        Name of a row for people, such as ``"line 7"``.
    names : sequence of str
        Names of the columns.
    cell : str, default=""
        What stands in the file for the first missing value.
    """
    if first_not_finite(data.X) is None:
        return data
    missing = np.isnan(data.X)
    _refuse_infinite(data, missing, row_name, names)
    rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
    if how == "error":
        raise _report(data.source, missing, rows, columns, row_name, names, cell)
    counts = ", ".join(f"'{printable(names[j])}' {int(missing[:, j].sum())}" for j in columns[:_SHOWN])
    more = f" and {len(columns) - _SHOWN} more columns" if len(columns) > _SHOWN else ""
    where = f"{int(missing.sum())} values were missing ({counts}{more})"
    if how == "drop":
        return _drop(data, rows, f"{where}: {_rows(len(rows))} with them left out, without a label")
    return replace(
        data,
        X=_fill_in(data.source, data.X, missing, columns, how, names),
        notes=(*data.notes, f"{where}: the {how} of the column was put in"),
    )


def _refuse_infinite(data: Dataset, missing: Array, row_name: Callable[[int], str], names: Sequence[str]) -> None:
    infinite = ~np.isfinite(data.X) & ~missing
    if infinite.any():
        i, j = (int(index) for index in np.unravel_index(int(np.argmax(infinite)), infinite.shape))
        problem = f"{row_name(i)}, column '{printable(names[j])}': {data.X[i, j]} is not finite"
        raise FileError(data.source, f"{problem}; correct it or leave out the row or column ({argument('ignore')})")


def _report(
    path: Path,
    missing: Array,
    rows: Array,
    columns: Array,
    row_name: Callable[[int], str],
    names: Sequence[str],
    cell: str,
) -> FileError:
    total, i = int(missing.sum()), int(rows[0])
    first = int(np.argmax(missing[i]))
    what = f"{row_name(i)}, column '{printable(names[first])}': missing value{cell and ' ' + cell}"
    if total > 1:
        listed = []
        for row in rows[:_SHOWN]:
            listed.append(
                f"{row_name(int(row))}: {quoted([names[int(j)] for j in np.flatnonzero(missing[row])], _SHOWN)}"
            )
        more = f"; and {len(rows) - _SHOWN} more rows" if len(rows) > _SHOWN else ""
        what += f", the first of {total} in {_rows(len(rows))} and {_columns(len(columns))} ({'; '.join(listed)}{more})"
    left = f", which keeps {missing.shape[0] - len(rows)} of {missing.shape[0]} rows,"
    drop, mean, median = (argument("missing", rule) for rule in ("drop", "mean", "median"))
    remedy = f"{drop}{left} {mean} or {median}, or leave out the column ({argument('ignore')})"
    return FileError(path, f"{what}; fill it in, use {remedy}")


def _rows(n: int) -> str:
    return f"{n} row" + "s" * (n > 1)


def _columns(n: int) -> str:
    return f"{n} column" + "s" * (n > 1)


def _drop(data: Dataset, rows: Array, note: str) -> Dataset:
    n = len(data.X)
    kept = np.setdiff1d(np.arange(n), rows)
    if len(kept) < 2:
        problem = f"{argument('missing', 'drop')} leaves {len(kept)} of {n} rows"
        remedy = f"use {argument('missing', 'mean')}, or {argument('ignore')} the columns with the missing values"
        raise FileError(data.source, f"{problem}; {remedy}")
    return replace(
        data,
        X=data.X[kept],
        y=None if data.y is None else data.y[kept],
        ids=None if data.ids is None else [data.ids[i] for i in kept],
        rows=kept,
        row_ids=data.ids,
        n_rows=n,
        notes=(*data.notes, note),
    )


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
