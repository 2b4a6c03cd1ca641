"""Points → clusters by a method that looks at all of them through landmarks: the one way, in memory and on workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from subspaces.engine.predict import ByModel
from subspaces.engine.validation import all_equal, warn_of_bad_numbers
from subspaces.kernels.scaling import Scaling, fit_scaling
from subspaces.landmarks.points import BLOCK_BYTES, Points
from subspaces.utils.ordering import canonical_order, hash_rows, label_of_most_copies
from subspaces.utils.process import warn_caller
from subspaces.utils.progress import Listener, Timer
from subspaces.utils.types import Array, Labels


@dataclass(frozen=True)
class Outcome:
    """What a run found, in the order in which the points were given.

    Attributes
    ----------
    labels : cluster of each point, −1 for noise
    model : what the method learnt (:class:`~subspaces.engine.predict.Model`); None where there was nothing to learn
    predictor : what labels new points
    order : rows in the order in which the method saw them
    timings : seconds of each stage
    """

    labels: Labels
    model: Any
    predictor: ByModel
    order: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """Number of clusters; noise is none."""
        return _count(self.labels)


def run_landmarks(
    X: Array,
    solve: Callable[[Points, Listener], Any],
    *,
    n_clusters: int | None,
    scaling: str | None = None,
    units: bool = False,
    block_bytes: int = BLOCK_BYTES,
    listen: Listener | None = None,
) -> Outcome:
    """From points in memory to clusters.

    Parameters
    ----------
    X : array of shape (n, m)
    solve : points, and who is told of stages → a frozen :class:`~subspaces.engine.predict.Model`
    n_clusters : wanted; None lets the method find it
    scaling : rule for the points (:mod:`subspaces.kernels.scaling`)
    units : whether a common factor of all points matters to the method
    block_bytes : of points that are scaled and labelled at a time
    listen : called with the name of each stage, gives a context in which it runs
    """
    if n_clusters == 1 or all_equal(X):
        return one_cluster(len(X), X.dtype, n_clusters)
    warn_of_bad_numbers(X, scaling)
    row_hashes = hash_rows(X)
    fitted = fit_scaling(X, scaling, units=units)
    points = Points(X, fitted, canonical_order(X, row_hashes), block_bytes)
    return run_points(points, solve, float(max(-X.min(), X.max())), row_hashes, listen)


def run_points(
    points: Points,
    solve: Callable[[Points, Listener], Any],
    largest: float,
    row_hashes: Array | None = None,
    listen: Listener | None = None,
) -> Outcome:
    """From points, wherever they are, to clusters; with the hashes of all rows copies get one label."""
    timer = Timer(listen)
    model = solve(points, timer.stage)
    found = np.asarray(model.labels, dtype=np.intp)
    labels = found if row_hashes is None else label_of_most_copies(found, row_hashes)
    model = replace(model, labels=labels)
    several = _count(labels) > 1
    predictor = ByModel(
        dtype=points.dtype.type,
        largest=largest,
        scaling=points.scaling,
        model=model if several else None,
        moved=moved(found, labels),
        only=int(labels.max()),
        block_bytes=points.block_bytes,
    )
    return Outcome(labels, model, predictor, points.order, timer.seconds)


def one_cluster(n: int, dtype: Any, n_clusters: int | None) -> Outcome:
    """One cluster was wanted, or all points are equal: saying anything else would be an invention."""
    if n_clusters not in (1, None):
        text = f"all {n} points are equal: 1 cluster found instead of n_clusters={n_clusters}."
        warn_caller(text, ConvergenceWarning)
    predictor = ByModel(dtype=np.dtype(dtype).type, largest=0.0, scaling=Scaling(), model=None, moved={})
    return Outcome(np.zeros(n, dtype=np.intp), None, predictor)


def moved(found: Labels, kept: Labels) -> dict[int, int]:
    """Clusters that consisted of other clusters' copies alone, and where most of these went: ``predict`` follows."""
    empty = np.setdiff1d(found, kept)
    return {int(label): int(np.bincount(kept[found == label] + 1).argmax()) - 1 for label in empty}


def check_landmarks(n_clusters: int, n_landmarks: int) -> None:
    """Refuse fewer landmarks than clusters."""
    if n_landmarks < n_clusters:
        raise ValueError(
            f"n_landmarks={n_landmarks} must not be less than n_clusters={n_clusters}: every cluster needs a "
            "landmark, better some dozens of them. Take more landmarks."
        )


def _count(labels: Labels) -> int:
    return int(np.count_nonzero(np.bincount(labels + 1)[1:]))
