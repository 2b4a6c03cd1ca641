"""Columns that are no measurements: identifiers and dates, told by their names and values, and left out unasked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from subspaces.app.files.dataset import Dataset, Request
from subspaces.app.files.dialect import MISSING
from subspaces.utils.column_names import IDS, is_id, last_word
from subspaces.utils.files import argument, printable, quoted
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

FEW = 3
"""Rows from which on texts that are all different are taken for names of the samples."""


NUMBERINGS = {"#", "nr", "no", "num", "number", "nummer", "key", "code", "row", "record", "case", "serial", "barcode"}
NUMBERINGS |= {"patient", "subject", "participant", "sample", "specimen", "animal", "ring", "tag", "customer", "order"}
"""Last word of a name that identifiers may have: whole numbers below it are left out if all differ."""

_COUNTED, _MANY = 8, 20  # rows from which equal steps, and different numbers in a narrow range, are no accident
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s?([AaPp][Mm]|Z|[+-]\d{2}:?\d{2})?"
_DAY = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})"
_MONTH = r"\d{1,2}[ .-]+[^\W\d_]{3,9}[ .,-]+(\d{2}|\d{4})|[^\W\d_]{3,9}\.? \d{1,2},? \d{4}"
_DATE = re.compile(rf"({_DAY}|{_MONTH})([T ,]+{_TIME})?|{_TIME}")


def kind_of_texts(name: str, cells: Sequence[str]) -> str:
    """Return what the texts below a name are: "date", "id", or "" where somebody has to say it.

    Examples
    --------
    >>> kind_of_texts("day", ["3.5.2024", "4 May 2024"]), kind_of_texts("plant", ["a", "b", "c"])
    ('date', 'id')
    >>> kind_of_texts("plant ID", ["a", "b", "a"]), kind_of_texts("kind", ["a", "b", "a"])
    ('id', '')
    """
    known = [cell for cell in cells if cell.lower() not in MISSING]
    if known and all(map(_DATE.fullmatch, known)):
        return "date"
    return "id" if FEW <= len(cells) == len(set(cells)) or is_id(name) else ""


def is_id_name(name: str) -> bool:
    """Return whether a column of different whole numbers with this name holds identifiers."""
    return last_word(name) in IDS | NUMBERINGS or name.strip().lower() == "index"


def without_ids(data: Dataset, names: Sequence[str], request: Request) -> Dataset:
    """Return the data without the columns of numbers that are identifiers, with notes of all that was left out.

    `names` are those of the columns of ``data.X``. The first identifier whose values all differ names the samples where
    nothing else does. Columns that were asked for stay, and so do all where a gap means something (tracks).
    """
    kinds: dict[int, str] = {}
    notes = list(data.notes)
    if request.columns is None and request.keep is not None and request.missing != "keep":
        with np.errstate(invalid="ignore", over="ignore"):
            spread = data.X.max(axis=0) - data.X.min(axis=0)
        kinds = _kinds(data.X, names, request.keep, spread)
        if constant := [names[j] for j in np.flatnonzero(spread == 0).tolist() if data.n_samples > 1]:
            one = counted(len(constant), "column has", "columns have")
            notes.append(f"{one} one value only: {quoted(constant, 4)}")
    ids = [j for j, kind in kinds.items() if kind == "id"]
    ids = sorted(ids, key=lambda j: len(np.unique(data.X[:, j])) < data.n_samples) if len(ids) < len(names) else []
    left_out = (*((names[j], "id") for j in ids), *data.left_out)
    left_out = left_out if data.ids is None else left_out[len(ids) :] + left_out[: len(ids)]  # first what names rows
    if left_out:
        shown = ", ".join(f"{printable(name) or 'the unnamed column'} ({kind})" for name, kind in left_out)
        how = f"; {argument('keep', [names[ids[0]]])} uses it all the same" if ids else ""
        notes.append(f"left out: {shown}{how}")
    unsure = [names[j] for j in kinds if j not in ids]
    if unsure and 2 * len(unsure) <= len(names):  # else they are measurements
        is_id = "is an id" if len(unsure) == 1 else "are ids"
        notes.append(f"if {quoted(unsure, 4)} {is_id}, leave out with {argument('ignore', unsure[:4])}")
    data = replace(data, notes=tuple(notes), left_out=left_out)
    if not ids:
        return data
    first = data.X[:, ids[0]]
    if data.ids is None and np.isfinite(first).all() and len(np.unique(first)) == len(first):
        data = replace(data, ids=first.astype(np.int64).tolist())
    kept = np.setdiff1d(np.arange(len(names)), ids)
    return replace(data, X=np.ascontiguousarray(data.X[:, kept]), feature_names=[names[j] for j in kept])


def _kinds(X: Array, names: Sequence[str], keep: Sequence[str], spread: Array) -> dict[int, str]:
    """Return the columns of whole numbers that are identifiers ("id") or may be ("unsure")."""
    named = [is_id(name) for name in names]
    candidates = [j for j, name in enumerate(names) if name not in keep and (spread[j] >= len(X) - 1 or named[j])]
    kinds = {j: kind for j in candidates if (kind := _kind_of_numbers(names[j], X[:, j]))}
    narrow = [j for j, kind in kinds.items() if kind == "narrow"]  # several are ranks
    return {j: kind if kind != "narrow" else "id" if len(narrow) == 1 else "unsure" for j, kind in kinds.items()}


def _kind_of_numbers(name: str, column: Array) -> str:
    """Return "id"; "narrow" of different numbers in any order without large gaps; "unsure" of others that differ."""
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
    if n < _MANY:
        return ""
    return "narrow" if column.max() - column.min() < 2 * n else "unsure"
