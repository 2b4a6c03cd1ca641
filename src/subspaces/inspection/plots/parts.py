"""What the displays read off a fitted estimator, a pipeline or a search, and what they say when it is not there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from subspaces.utils.types import Data, Labels

MANY_POINTS = 20_000
"""Points up to which eigenvectors that the fit did not need are computed for a picture."""


class Part(NamedTuple):
    """A matrix with a row for each point, the points' labels, and whose points they are (empty: all)."""

    matrix: Any
    labels: Labels
    of_whom: str


def clusterer_of(estimator: Any) -> Any:
    """The fitted clusterer inside a pipeline or a search; any other estimator itself."""
    while True:
        inner = getattr(estimator, "best_estimator_", None)
        if inner is None and hasattr(estimator, "steps"):
            inner = estimator.steps[-1][1]
        if inner is None:
            check_is_fitted(estimator, "labels_")
            return estimator
        estimator = inner


def find_part(clusterer: Any, name: str) -> Part | None:
    """An attribute of a clusterer; of one that samples, that of its landmarks; None if neither has it."""
    matrix = getattr(clusterer, name, None)
    if matrix is not None:
        return Part(matrix, clusterer.labels_, "")
    inner = getattr(clusterer, "clusterer_", None)
    matrix = getattr(inner, name, None)
    if inner is None or matrix is None:
        return None
    return Part(matrix, inner.labels_, f"the {len(inner.labels_):,} landmarks of {type(clusterer).__name__}")


def part_of(estimator: Any, name: str) -> Part:
    """The same of an estimator, pipeline or search that must have it."""
    clusterer = clusterer_of(estimator)
    found = find_part(clusterer, name)
    if found is None:
        raise ValueError(f"{type(clusterer).__name__} {_MISSING[name]}")
    return found


_WHO = "KTRR, TRR, LSR1, LSR2, SSC, LRR1 and their relatives; EKTRR, SSSC, SLSR and SLRR for their landmarks"
_MISSING = {
    "coefficients_": f"has no coefficients_: it represents no point by others. Methods that do: {_WHO}.",
    "affinity_matrix_": f"has no affinity_matrix_: it makes no graph between the points. Methods that do: {_WHO}.",
    "tree_": f"has no tree_: it makes no graph between the points. Methods that do: {_WHO}.",
    "embedding_": "keeps no embedding of the points: draw one of your own with "
    "EmbeddingDisplay.from_predictions(embedding, labels).",
}


def kept_points(clusterer: Any) -> Data | None:
    """The points a clusterer was fitted on, if it keeps them for new ones."""
    points: Data | None = getattr(getattr(clusterer, "_predictor", None), "X", None)
    return points


def points_of(estimator: Any, X: Any) -> Data:
    """The points as the user gave them, or the ones the estimator kept."""
    points = kept_points(clusterer_of(estimator)) if X is None else X
    if points is None:
        problem = "does not keep the points it was fitted on: give them as the argument X."
        raise ValueError(f"{type(estimator).__name__} {problem}")
    return points


def checked_labels(labels: ArrayLike, n: int | None = None) -> tuple[Labels, list[str]]:
    """Labels as codes 0, 1, ... in the order of their values, and the values as names."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"labels must be one-dimensional and not empty; got shape {given.shape}.")
    if n is not None and len(given) != n:
        raise ValueError(f"labels must have one entry for each of the {n} points; got {len(given)}.")
    values, codes = np.unique(given, return_inverse=True)
    return codes.astype(np.intp), [str(value) for value in values.tolist()]
