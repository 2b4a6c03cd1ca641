"""Columns of a table: which are features, which is the label, which the identifier; values that are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.dataset import Dataset, Request, first_not_finite
from subspaces.app.files.identifiers import FEW, is_id_name, kind_of_texts
from subspaces.utils.column_names import LABEL_NAMES
from subspaces.utils.files import FileError, argument, printable, quoted
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

CLASS_NAMES = ("species", "kind", "type", "group", "category", "variety", "diagnosis")
"""More names of texts that are probably the classes."""

ROW_NAMES = ("", "__index_level_0__")
"""Names of the column of row names that pandas and R write unasked (CSV; Parquet)."""

MISSING_RULES = ("error", "drop", "mean", "median")
"""What can be done about missing values."""

_SHOWN = 4
"""Rows and columns that an error lists."""


@dataclass(frozen=True)
class Columns:
    """Positions of the columns by their part.

    Attributes
    ----------
    texts : features that hold text, with their first cells: somebody has to settle them
    left_out : names of columns that were left out unasked, each with what it holds
    must_differ : whether the id was taken because its first texts differ
    """

    features: list[int]
    label: int | None
    id: int | None
    notes: tuple[str, ...]
    texts: dict[int, Sequence[str]]
    left_out: tuple[tuple[str, str], ...]
    must_differ: bool


def choose_columns(path: Path, names: Sequence[str], request: Request, texts: Mapping[int, Sequence[str]]) -> Columns:
    """Give every column its part; `texts` are the first cells of those that hold text.

    Left out unasked are dates, texts that are all different or called ids, and the row names that pandas and R write
    (an unnamed column, ``__index_level_0__`` in Parquet). The first of the latter two whose cells differ is the id.
    """
    label = None if request.label is None else find_column(path, names, request.label, "label")
    id_ = None if request.id is None else find_column(path, names, request.id, "id")
    given = {find_column(path, names, name, "ignore") for name in request.ignore} | {label, id_}
    free = [j for j in range(len(names)) if j not in given and names[j] not in (request.keep or ())]
    row_names = [j for j in free if names[j] in ROW_NAMES and j in (0, len(names) - 1)][: len(names) > 1]
    found = dict.fromkeys(row_names, "row names")
    found |= {j: kind for j in free if j in texts and (kind := kind_of_texts(names[j], texts[j])) and j not in found}
    features, notes = [j for j in range(len(names)) if j not in given], []
    if request.columns is not None:
        features = _picked(path, names, request.columns, features)
        found = {j: "id" for j in free if j not in texts and is_id_name(names[j])} | found
        found = {j: kind for j, kind in found.items() if j not in features}
        if unused := [names[j] for j in free if j not in features and j not in found]:
            notes.append(f"not used: {quoted(unused)}")
    elif set(found) >= set(features):
        found = {}
    features = [j for j in features if j not in found]
    if not features:
        raise FileError(path, f"no column is left to cluster (the file has {quoted(names)})")
    ids = [j for j, kind in found.items() if kind == "id"]
    differing = [j for j in ids if j in texts and FEW <= len(texts[j]) == len(set(texts[j]))]
    must_differ = id_ is None and not row_names and bool(differing)
    if id_ is None:
        id_ = next(iter([*row_names, *differing, *(j for j in ids if j not in texts)]), None)
    for i in features:
        if label is None and names[i].lower() in LABEL_NAMES:
            how = f"{argument('label', names[i])} would score against it"
            notes.append(f"column '{printable(names[i])}' is clustered like the others; {how}")
    rest = {j: texts[j] for j in features if j in texts}
    left_out = tuple((names[j], found[j]) for j in sorted(found, key=lambda j: (j != id_, j)))
    return Columns(features, label, id_, tuple(notes), rest, left_out, must_differ)


def _picked(path: Path, names: Sequence[str], wanted: Sequence[str], free: Sequence[int]) -> list[int]:
    """Positions of the columns that were asked for, in that order."""
    absent = [name for name in wanted if name not in names]
    if absent:
        unknown = [names[j] for j in free if names[j] not in wanted]
        also = f", and {quoted(unknown)} {'is' if len(unknown) == 1 else 'are'} not known" if unknown else ""
        one = counted(len(absent), "column is", "columns are")
        raise FileError(path, f"{one} missing: {quoted(absent)}{also}; rename or add what is missing")
    same = [j for j in free if names[j] in wanted]
    if [names[j] for j in same] == list(wanted):  # where a name stands twice, only the order tells
        return same
    return [find_column(path, names, name, "columns") for name in wanted]


def find_column(path: Path, names: Sequence[str], wanted: str, part: str) -> int:
    """Position of the column called `wanted`, for the argument `part`."""
    count = list(names).count(wanted)
    if count == 1:
        return list(names).index(wanted)
    if count > 1:
        raise FileError(path, f"{count} columns are called '{printable(wanted)}'; give each its own name")
    near = get_close_matches(wanted, names, n=1)
    hint = f"; did you mean '{printable(near[0])}'?" if near else ""
    problem = f"{argument(part)} '{printable(wanted)}' is not a column"
    raise FileError(path, f"{problem}; the columns are {quoted(names)}{hint}")


def keep_out(name: str) -> str:
    """The ways to keep a column out of the points, for a message."""
    return f"{argument('label', name)}, {argument('id', name)} or {argument('ignore', [name])}"


def settle_ids(
    path: Path, name: str, ids: list[Any], columns: Columns, request: Request, line: int | None = None
) -> list[Any] | None:
    """Return the ids of all rows; of ids that nobody named, None or an error where they do not differ to the end."""
    if not columns.must_differ or len(set(ids)) == len(ids):
        return ids
    texts = [str(cell) for cell in ids]
    if kind_of_texts(name, texts):
        return None
    raise text_trouble(path, {name: texts}, request, texts[0], line)


def text_remedy(found: Mapping[str, Sequence[str]], request: Request) -> dict[str, Any]:
    """Return arguments that keep columns of text out: the one that looks most like classes is scored by.

    That is one that is called so, else the one with fewest different texts.
    """
    left = list(found)
    remedy: dict[str, Any] = {}
    if request.label is None:
        named = [name for name in left if name.lower() in (*LABEL_NAMES, *CLASS_NAMES)]
        fewest = min(named or left, key=lambda name: len(set(found[name])))
        if 2 * len(set(found[fewest])) <= len(found[fewest]) or fewest in named:
            remedy["label"] = fewest
            left.remove(fewest)
    return remedy | ({"ignore": left} if left else {})


def text_trouble(
    path: Path, found: Mapping[str, Sequence[str]], request: Request, first: str, line: int | None = None
) -> FileError:
    """All columns of text among the points in one error; `first` is the first text of the first of them."""
    remedy = {} if request.columns is not None else text_remedy(found, request)
    names = list(found)
    if len(names) == 1:
        how = f"use {keep_out(names[0])} to keep the column out of the points" if remedy else "correct the column"
        problem = f"'{printable(first)}' is not a number; {how}"
        return FileError(path, problem, line=line, column=names[0], remedy=remedy)
    given = " and ".join(argument(name, value) for name, value in remedy.items())
    how = f"keep them out of the points with {given}" if remedy else "correct them"
    problem = f"{len(names)} columns hold text, not numbers ({quoted(names)}); {how}"
    return FileError(path, problem, line=line, remedy=remedy)


def settle_missing(
    data: Dataset,
    how: str,
    row_name: Callable[[int], str],
    names: Sequence[str],
    cell: str = "",
    can_ignore: bool = True,
) -> Dataset:
    """Return the data without missing values (NaN), or say in one error where they are.

    `how` is one of `MISSING_RULES`, or ``"keep"``, which leaves them where they are. For the error, `row_name` names a
    row for people (``"line 7"``), `names` are those of the columns, `cell` is what stands in the file for the first
    missing value, and `can_ignore` says whether columns may be left out.
    """
    if first_not_finite(data.X) is None:
        return data
    missing = np.isnan(data.X)
    infinite = ~np.isfinite(data.X) & ~missing
    if infinite.any():
        i, j = (int(index) for index in np.unravel_index(int(np.argmax(infinite)), infinite.shape))
        problem = f"{row_name(i)}, column '{printable(names[j])}': {data.X[i, j]} is not finite"
        how = f"leave out the row or column ({argument('ignore')})" if can_ignore else "leave out the row"
        raise FileError(data.source, f"{problem}; correct it or {how}")
    if how == "keep":
        return data
    rows, columns = np.flatnonzero(missing.any(axis=1)), np.flatnonzero(missing.any(axis=0))
    if how == "error":
        or_else = f", or leave out the column ({argument('ignore')})" if can_ignore else ""
        raise FileError(data.source, _report(missing, rows, columns, row_name, names, cell) + or_else)
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
    return f"{what}; fill it in, use {drop}{left} {mean} or {median}"


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
