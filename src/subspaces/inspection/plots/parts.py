"""Attributes that displays read from a fitted estimator, pipeline or search, with errors if missing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from subspaces.utils.types import Data, Labels

MANY_POINTS = 20_000
"""Samples up to which eigenvectors that the fit did not need are computed for a picture."""

_WHO = "KTRR, TRR, LSR1, LSR2, SSC, LRR1 and their relatives; EKTRR, SSSC, SLSR and SLRR for their landmarks"
_MISSING = {
    "coefficients_": f"has no coefficients_: it represents no sample by others. Methods that do: {_WHO}.",
    "affinity_matrix_": f"has no affinity_matrix_: it makes no graph between the samples. Methods that do: {_WHO}.",
    "tree_": f"has no tree_: it makes no graph between the samples. Methods that do: {_WHO}.",
    "embedding_": "keeps no embedding of the samples: draw one of your own with "
    "EmbeddingDisplay.from_predictions(embedding, labels).",
}


class Part(NamedTuple):
    """A matrix with a row for each sample, the samples' labels, and whose samples they are (empty: all)."""

    matrix: Any
    labels: Labels
    of_whom: str


def clusterer_of(estimator: Any) -> Any:
    """Return the fitted clusterer inside a pipeline or a search; any other estimator itself."""
    while True:
        inner = getattr(estimator, "best_estimator_", None)
        if inner is None and hasattr(estimator, "steps"):
            inner = estimator.steps[-1][1]
        if inner is None:
            check_is_fitted(estimator, "labels_")
            return estimator
        estimator = inner


def find_part(clusterer: Any, name: str) -> Part | None:
    """Return an attribute of a clusterer, or of the clusterer of its landmarks; None if neither has it."""
    matrix = getattr(clusterer, name, None)
    if matrix is not None:
        return Part(matrix, clusterer.labels_, "")
    inner = getattr(clusterer, "clusterer_", None)
    matrix = getattr(inner, name, None)
    if inner is None or matrix is None:
        return None
    return Part(matrix, inner.labels_, f"the {len(inner.labels_):,} landmarks of {type(clusterer).__name__}")


def part_of(estimator: Any, name: str) -> Part:
    """Return the part of an estimator, pipeline or search, or raise ValueError with methods that have it."""
    clusterer = clusterer_of(estimator)
    found = find_part(clusterer, name)
    if found is None:
        raise ValueError(f"{type(clusterer).__name__} {_MISSING[name]}")
    return found


def kept_points(clusterer: Any) -> Data | None:
    """Return the samples a clusterer was fitted on, if it keeps them for prediction."""
    points: Data | None = getattr(getattr(clusterer, "_predictor", None), "X", None)
    return points


def checked_labels(labels: ArrayLike, n: int) -> tuple[Labels, list[str]]:
    """Return labels as codes 0, 1, ... in the order of their values, and the values as names."""
    given = np.asarray(labels)
    if given.ndim != 1 or given.size == 0:
        raise ValueError(f"labels must be one-dimensional and not empty; got shape {given.shape}.")
    if len(given) != n:
        raise ValueError(f"labels must have one entry for each of the {n} samples; got {len(given)}.")
    values, codes = np.unique(given, return_inverse=True)
    return codes.astype(np.intp), [str(value) for value in values.tolist()]
