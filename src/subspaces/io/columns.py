"""Which columns of a table are features, which is the label, which the identifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from subspaces.io.dataset import FileError, Request, argument, printable, quoted

LABEL_NAMES = ("y", "gnd", "label", "labels", "target", "class", "classes")
"""Names under which the true classes usually travel (compared in lower case)."""

ROW_NAMES = ("", "__index_level_0__")
"""Names of the column of row names that pandas and R write unasked (CSV; Parquet)."""


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
    if not features:
        raise FileError(path, f"no column is left to cluster (the file has {quoted(names)})")
    for i in features:
        if label is None and names[i].lower() in LABEL_NAMES:
            how = f"{argument('label', names[i])} would score against it"
            notes.append(f"column '{printable(names[i])}' is clustered like the others; {how}")
    return Columns(features, label, id_, tuple(notes))


def find_column(path: Path, names: Sequence[str], wanted: str, part: str) -> int:
    """Position of the column called `wanted`, for the argument `part`."""
    count = list(names).count(wanted)
    if count == 1:
        return list(names).index(wanted)
    if count > 1:
        raise FileError(path, f"{count} columns are called '{printable(wanted)}'; rename them to use {argument(part)}")
    near = get_close_matches(wanted, names, n=1)
    hint = f"; did you mean '{printable(near[0])}'?" if near else ""
    raise FileError(
        path, f"{argument(part)} '{printable(wanted)}' is not a column; the columns are {quoted(names)}{hint}"
    )


def keep_out(name: str) -> str:
    """The ways to keep a column out of the points, for a message."""
    return f"{argument('label', name)}, {argument('id', name)} or {argument('ignore', [name])}"
