"""Columns of a table: features, label, identifier, and those left out unasked (identifiers, dates, row names)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from subspaces.app.files.cells import MISSING, have_units, is_date, kind_of
from subspaces.app.files.dataset import Dataset, Original, Request, settle_missing, whole_numbers
from subspaces.utils.column_names import IDS, LABEL_NAMES, is_id, last_word
from subspaces.utils.files import FileError, argument, printable, quoted
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

FEW = 3
"""Rows from which on texts that are all different are taken for names of the samples."""

NUMBERINGS = {"#", "nr", "no", "num", "number", "nummer", "key", "code", "row", "record", "case", "serial", "barcode"}
NUMBERINGS |= {"patient", "subject", "participant", "sample", "specimen", "animal", "ring", "tag", "customer", "order"}
"""Last word of a name that identifiers may have: whole numbers below it are left out if all differ."""

_COUNTED, _MANY = 8, 20  # rows from which equal steps, and different numbers in a narrow range, are no accident
CLASS_NAMES = {
    *LABEL_NAMES,
    "species",
    "kind",
    "type",
    "group",
    "category",
    "variety",
    "diagnosis",
    "cultivar",
    "breed",
}
CLASS_NAMES |= {"strain", "genotype", "tissue", "disease", "outcome", "art", "sorte", "gruppe", "klasse", "espèce"}
"""Words in names of columns of text that are probably the classes."""

ROW_NAMES = ("", "__index_level_0__")
"""Names of the column of row names that pandas and R write unasked (CSV; Parquet)."""

RESULT = ("cluster", "confidence", "second_cluster", "doubtful", "margin", "fits_nowhere", "known")
"""Columns that ``-o`` adds: no measurements where the first two are there."""


@dataclass(frozen=True)
class Columns:
    """Positions of the columns by their part.

    Attributes
    ----------
    texts : features that hold text, with their first cells; the user has to decide about them
    left_out : names of columns that were left out unasked, each with its kind
    must_differ : True if the id was taken because its first texts differ
    """

    features: list[int]
    label: int | None
    id: int | None
    notes: tuple[str, ...]
    texts: dict[int, Sequence[str]]
    left_out: tuple[tuple[str, str], ...]
    must_differ: bool


def choose_columns(
    path: Path,
    names: Sequence[str],
    request: Request,
    texts: Mapping[int, Sequence[str]],
    empty: Collection[int] = (),
) -> Columns:
    """Give every column its part; `texts` maps columns that hold text to their first cells, `empty` hold nothing.

    Left out unasked are dates, texts that are all different or called ids, the row names that pandas and R write
    (an unnamed column, ``__index_level_0__`` in Parquet), and what an earlier result says. The first of row names and
    ids whose cells differ is the id.
    """
    label = None if request.label is None else find_column(path, names, request.label, "label")
    id_ = None if request.id is None else find_column(path, names, request.id, "id")
    given = {find_column(path, names, name, "ignore") for name in request.ignore} | {label, id_}
    free = [j for j in range(len(names)) if j not in given and names[j] not in (request.keep or ())]
    ends = [j for j in (0, len(names) - 1) if j in free and j not in empty]
    row_names = [j for j in ends if names[j] in ROW_NAMES][: len(names) > 1]
    found = dict.fromkeys(row_names, "row names") | {j: "empty" for j in free if j in empty}
    if set(names) >= set(RESULT[:2]):
        found |= {j: "earlier result" for j in free if names[j].removesuffix(" (before)") in RESULT}
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
    if same := sorted({names[j] for j in features if names[j] and list(names).count(names[j]) > 1}):
        notes.append(f"several columns are called {quoted(same, 4)}; their order tells them apart")
    for i in features:
        if label is None and names[i].lower() in LABEL_NAMES:
            how = f"{argument('label', names[i])} would score against it"
            notes.append(f"column '{printable(names[i])}' is clustered like the others; {how}")
    rest = {j: texts[j] for j in features if j in texts}
    is_all_text = len(rest) == len(features) and all(kind_of(c) == "text" for cells in rest.values() for c in cells)
    if is_all_text and not any(map(have_units, rest.values())):
        longest = max(texts, key=lambda j: sum(map(len, texts[j])))
        how = f"{argument('text', names[longest])} clusters texts by their words"
        raise FileError(path, f"no column holds numbers; {how}")
    known = [j for j in found if names[j] or found[j] != "empty"]
    left_out = tuple((names[j], found[j]) for j in sorted(known, key=lambda j: (j != id_, j)))
    return Columns(features, label, id_, tuple(notes), rest, left_out, must_differ)


def _picked(path: Path, names: Sequence[str], wanted: Sequence[str], free: Sequence[int]) -> list[int]:
    """Return the positions of the requested columns, in that order."""
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
    """Return the position of the column called `wanted`, for the argument `part`."""
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
    """Name the ways to keep a column out of the features, for a message."""
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
        named = [name for name in left if CLASS_NAMES & set(re.findall(r"[^\W\d_]+", name.lower()))]
        fewest = min(named or left, key=lambda name: len(set(found[name])))
        if 2 * len(set(found[fewest])) <= len(found[fewest]) or fewest in named:
            remedy["label"] = fewest
            left.remove(fewest)
    return remedy | ({"ignore": left} if left else {})


def text_trouble(
    path: Path, found: Mapping[str, Sequence[str]], request: Request, first: str, line: int | None = None
) -> FileError:
    """Name all columns of text among the features in one error.

    `first` is the first text of the first of them.
    """
    remedy = {} if request.columns is not None else text_remedy(found, request)
    names = list(found)
    if measured := [name for name in names if have_units(found[name])]:
        problem = f"'{printable(found[measured[0]][0])}' is a number with its unit; write the unit into the first line"
        raise FileError(path, f"{problem} and numbers alone below it", line=line, column=measured[0])
    if len(names) == 1:
        how = f"use {keep_out(names[0])} to keep the column out of the points" if remedy else "correct the column"
        problem = f"'{printable(first)}' is not a number; {how}"
        return FileError(path, problem, line=line, column=names[0], remedy=remedy)
    given = " and ".join(argument(name, value) for name, value in remedy.items())
    how = f"keep them out of the points with {given}" if remedy else "correct them"
    problem = f"{len(names)} columns hold text, not numbers ({quoted(names)}); {how}"
    return FileError(path, problem, line=line, remedy=remedy)


def kind_of_texts(name: str, cells: Sequence[str]) -> str:
    """Return the kind of a column of text: "date", "id", or "" where the user has to decide.

    Examples
    --------
    >>> kind_of_texts("day", ["3.5.2024", "4 May 2024"]), kind_of_texts("plant", ["a", "b", "c"])
    ('date', 'id')
    >>> kind_of_texts("plant ID", ["a", "b", "a"]), kind_of_texts("kind", ["a", "b", "a"])
    ('id', '')
    """
    known = [cell for cell in cells if cell.lower() not in MISSING]
    if known and all(map(is_date, known)):
        return "date"
    if have_units(known):
        return ""
    return "id" if FEW <= len(cells) == len(set(cells)) or is_id(name) else ""


def is_id_name(name: str) -> bool:
    """Return True if a column of different whole numbers with this name holds identifiers."""
    return last_word(name) in IDS | NUMBERINGS or name.strip().lower() == "index"


def dataset_of_columns(
    data: Dataset, columns: Columns, request: Request, cell: str = "", is_named: bool = True
) -> Dataset:
    """Return the data with their names and ids, without columns that are identifiers and without missing values.

    `cell` is the text of the first missing value; without `is_named` the columns are known by their order only.
    """
    assert data.columns is not None
    names, lines, ids = data.columns.names, data.lines, None
    features = [names[j] for j in columns.features]
    if columns.id is not None:
        first = None if lines is None else int(lines[0])
        ids = settle_ids(
            data.source, names[columns.id], data.columns.cells(names[columns.id], columns.id), columns, request, first
        )
    notes = (*data.notes, *columns.notes)
    data = replace(data, ids=ids, left_out=columns.left_out, notes=notes, feature_names=features if is_named else None)
    data = _without_ids(data, features, request)
    features, can_ignore = data.feature_names or features, request.columns is None
    row_name = (lambda i: f"row {i}") if lines is None else (lambda i: f"line {lines[i]}")
    return settle_missing(data, request.missing, row_name, features, cell, can_ignore)


def _without_ids(data: Dataset, names: Sequence[str], request: Request) -> Dataset:
    """Return the data without the columns of numbers that are identifiers, with notes of all that was left out.

    `names` are those of the columns of ``data.X``. The first identifier whose values all differ names the samples where
    nothing else does. Columns that were asked for stay, and so do all where a gap means something (tracks).
    """
    kinds: dict[int, str] = {}
    notes, X, original = list(data.notes), data.X, data.columns
    if request.columns is None and request.keep is not None and request.missing != "keep":
        with np.errstate(invalid="ignore", over="ignore"):
            spread = X.max(axis=0) - X.min(axis=0)
        kinds = _kinds(X, names, request.keep, spread)
        kinds |= {
            j: "empty"
            for j in np.flatnonzero(np.isnan(spread)).tolist()
            if names[j] not in request.keep and np.isnan(X[:, j]).all()
        }
        if constant := [names[j] for j in np.flatnonzero(spread == 0).tolist() if data.n_samples > 1]:
            one = counted(len(constant), "column has", "columns have")
            notes.append(f"{one} one value only: {quoted(constant, 4)}")
    out = [j for j, kind in kinds.items() if kind in ("id", "empty")]
    out = out if len(out) < len(names) else []
    ids = sorted((j for j in out if kinds[j] == "id"), key=lambda j: len(np.unique(X[:, j])) < data.n_samples)
    left_out = (*((names[j], "id") for j in ids), *data.left_out, *((names[j], "empty") for j in out if j not in ids))
    left_out = left_out if data.ids is None else left_out[len(ids) :] + left_out[: len(ids)]  # first what names rows
    if left_out:
        shown = ", ".join(f"{printable(name) or 'the unnamed column'} ({kind})" for name, kind in left_out)
        how = f"; {argument('keep', [names[ids[0]]])} uses it all the same" if ids else ""
        notes.append(f"left out: {shown}{how}")
    data = replace(data, notes=tuple(notes), left_out=left_out)
    if not out or original is None:
        return data
    if ids and data.ids is None and np.isfinite(X[:, ids[0]]).all() and len(np.unique(X[:, ids[0]])) == len(X):
        data = replace(data, ids=X[:, ids[0]].astype(np.int64).tolist())
    kept = np.setdiff1d(np.arange(len(names)), out)
    places, numbers = original.places, np.ascontiguousarray(X[:, kept])
    others = {**original.others, **{places[j]: whole_numbers(X[:, j]).tolist() for j in out}}
    rest = Original(original.names, numbers, [places[j] for j in kept], others)
    return replace(data, X=numbers, feature_names=[names[j] for j in kept], columns=rest)


def _kinds(X: Array, names: Sequence[str], keep: Sequence[str], spread: Array) -> dict[int, str]:
    """Return the columns of whole numbers that are identifiers, each with the kind "id"."""
    named = [is_id(name) for name in names]
    candidates = [j for j, name in enumerate(names) if name not in keep and (spread[j] >= len(X) - 1 or named[j])]
    kinds = {j: kind for j in candidates if (kind := _kind_of_numbers(names[j], X[:, j]))}
    narrow = [j for j, kind in kinds.items() if kind == "narrow"]  # several are ranks
    return {j: "id" for j in kinds if [j] == narrow or j not in narrow}


def _kind_of_numbers(name: str, column: Array) -> str:
    """Return "id", or "narrow" of different numbers in any order without large gaps; empty of others."""
    known, n = column[~np.isnan(column)], len(column)
    if not len(known) or not ((known >= 0) & (known < 2**53) & (known == np.rint(known))).all():
        return ""
    if is_id(name):
        return "id"
    if n < _COUNTED or len(np.unique(column)) < n or len(known) < n:
        return ""
    steps = np.diff(column)
    if (steps == steps[0]).all() or is_id_name(name):
        return "id"
    return "narrow" if n >= _MANY and column.max() - column.min() < 2 * n else ""
