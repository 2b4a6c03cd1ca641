"""What the displays read off a fitted estimator, a pipeline or a search, and what they say when it is not there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from subspaces.numerics.types import Array, Data, Labels, Sparse

MANY_POINTS = 20_000
"""Points up to which eigenvectors that the fit did not need are computed for a picture."""


class Graph(NamedTuple):
    """A matrix between points, their labels, and whose points they are (empty: all)."""

    matrix: Sparse
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


def graph_of(estimator: Any, name: str) -> Graph:
    """``coefficients_`` or ``affinity_matrix_`` of a clusterer; of one that samples, those of its landmarks."""
    estimator = clusterer_of(estimator)
    matrix = getattr(estimator, name, None)
    if matrix is not None:
        return Graph(matrix, estimator.labels_, "")
    inner = getattr(estimator, "clusterer_", None)
    matrix = getattr(inner, name, None)
    if inner is not None and matrix is not None:
        return Graph(matrix, inner.labels_, f"the {len(inner.labels_):,} landmarks of {type(estimator).__name__}")
    why = "represents no point by others" if name == "coefficients_" else "makes no graph between the points"
    raise ValueError(
        f"{type(estimator).__name__} has no {name}: it {why}. Methods that do: KTRR, TRR, LSR1, LSR2, SSC, LRR1 and "
        "their relatives; EKTRR, SSSC, SLSR and SLRR for their landmarks."
    )


def embedding_of(estimator: Any) -> tuple[Array, Labels, str]:
    """Spectral embedding, labels and whose points they are."""
    estimator = clusterer_of(estimator)
    for inner, of_whom in ((estimator, ""), (getattr(estimator, "clusterer_", None), "landmarks")):
        if inner is not None and hasattr(inner, "embedding_"):
            n = len(inner.labels_)
            return inner.embedding_, inner.labels_, of_whom and f"the {n:,} landmarks of {type(estimator).__name__}"
    raise ValueError(
        f"{type(estimator).__name__} keeps no embedding of the points: draw one of your own with "
        "EmbeddingDisplay.from_predictions(embedding, labels)."
    )


def kept_points(clusterer: Any) -> Data | None:
    """The points a clusterer was fitted on, if it keeps them for new ones."""
    points: Data | None = getattr(getattr(clusterer, "_predictor", None), "X", None)
    return points


def points_of(estimator: Any, X: Any) -> Data:
    """The points as the user gave them, or the ones the estimator kept."""
    points = kept_points(clusterer_of(estimator)) if X is None else X
    if points is None:
        raise ValueError(
            f"{type(estimator).__name__} does not keep the points it was fitted on: give them as the argument X."
        )
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
