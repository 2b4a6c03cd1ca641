"""Labels that a person knows: ``--label`` of a column with gaps, or ``--known FILE``; and what they changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subspaces.app.cli._common import refuse
from subspaces.utils.spelling import counted

if TYPE_CHECKING:
    from subspaces.app.files import Dataset


def known_labels(data: Dataset, file: Path | None, label: str | None) -> tuple[Dataset, list[str] | None]:
    """Return the label of every sample, "" where it is unknown, and the data with a note; None where nothing is told.

    A column that is labels in part is no column to score by.
    """
    has_gaps = data.y is not None and bool((data.y < 0).any())
    if file is None and not has_gaps:
        return data, None
    if file is not None and has_gaps:
        raise refuse("--known", f"the column {label} has known labels already; leave out one of the two")
    if file is not None:
        title, y = file.name, _from_file(data, file)
    else:
        assert data.y is not None
        assert data.classes is not None
        title, y = str(label), [data.classes[code] if code >= 0 else "" for code in data.y.tolist()]
        data = replace(data, y=None, classes=None)
    n, rows = sum(map(bool, y)), counted(data.n_samples, "row is", "rows are")
    note = f"{title}: {n} of {rows} labelled: used as known labels; the rest is found"
    return replace(data, notes=(note, *data.notes)), y


def _from_file(data: Dataset, file: Path) -> list[str]:
    """Return the labels of a file, by the ids of the samples."""
    from subspaces.app.files import FileError
    from subspaces.app.files.label_files import read_labels

    found = read_labels(file)
    if found.ids is None:
        raise FileError(file, "no column is called 'id'; it needs two columns, id and label")
    own = data.places.get(found.named_by or "id", range(data.n_samples) if found.named_by == "row" else None)
    if own is None:
        problem = f"it names points by '{found.named_by}', and {data.source.name} has none; name their column with --id"
        raise FileError(file, problem)
    place: dict[str, int] = {}
    for i, name in enumerate(map(str, own)):
        if place.setdefault(name, i) != i and name in found.ids:
            raise FileError(file, f"two samples are called '{name}'; only ids that differ can be given labels")
    y = [""] * data.n_samples
    dropped = set(map(str, data.row_ids or ()))  # rows with a gap that --missing drop left out
    unknown = [name for name in found.ids if name not in place and name not in dropped]
    if unknown:
        first = next(iter(place), "")
        are = counted(len(unknown), "id is", "ids are")
        problem = f"{are} not among the samples, the first '{unknown[0]}'"
        raise FileError(file, f"{problem}; those of {data.source.name} are like '{first}' (--id names their column)")
    for name, label in zip(found.ids, found.labels, strict=True):
        if name not in place:
            continue
        if y[place[name]] not in ("", label):
            raise FileError(file, f"'{name}' has two labels, '{y[place[name]]}' and '{label}'; leave one")
        y[place[name]] = label
    return y


def changed_by(estimator: Any, y: list[str]) -> dict[str, Any]:
    """Return what known labels changed: groups without and with them, and how many samples moved."""
    from subspaces.selection.hints import n_moved

    found: dict[str, Any] = {"n_known": int(estimator.known_.sum()), "n_classes": len(set(y) - {""})}
    selection = estimator.selection_
    if selection is not None and found["n_known"]:
        rows, before = selection.searched, selection.labels
        found |= {"without": int(before.max()) + 1, "with": int(estimator.n_clusters_), "n_compared": len(rows)}
        found["n_moved"] = n_moved(before, estimator.labels_[rows])
    return found | {"names": {str(cluster): str(name) for cluster, name in estimator.class_names_.items()}}
