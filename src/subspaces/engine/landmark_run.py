"""Run a method that looks at all samples through landmarks, in memory or on workers."""

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
    """Hold what a run found, in the order in which the samples were given."""

    labels: Labels  #: −1 for noise
    model: Any  #: a :class:`~subspaces.engine.predict.Model`; None where there was nothing to learn
    predictor: ByModel
    order: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.intp))  #: rows as the method saw them
    timings: Mapping[str, float] = field(default_factory=dict)  #: seconds of each stage

    @property
    def n_clusters(self) -> int:
        """Count the clusters; noise is none."""
        return int(np.count_nonzero(np.bincount(self.labels + 1)[1:]))


def run_landmarks(
    X: Array,
    solve: Callable[[Points, Listener], Any],
    *,
    n_clusters: int | None,
    scaling: str | None = None,
    units: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> Outcome:
    """Cluster samples in memory.

    `solve` makes a frozen :class:`~subspaces.engine.predict.Model` of the samples, which are scaled by the rule
    `scaling`; `units` says whether a common factor of all samples matters to it. `block_bytes` of samples are scaled
    and labelled at a time.
    """
    if n_clusters == 1 or all_equal(X):
        return one_cluster(len(X), X.dtype, n_clusters)
    warn_of_bad_numbers(X, scaling)
    row_hashes = hash_rows(X)
    fitted = fit_scaling(X, scaling, units=units)
    points = Points(X, fitted, canonical_order(X, row_hashes), block_bytes)
    return run_points(points, solve, float(max(-X.min(), X.max())), row_hashes)


def run_points(
    points: Points,
    solve: Callable[[Points, Listener], Any],
    largest: float,
    row_hashes: Array | None = None,
) -> Outcome:
    """Cluster samples, wherever they are; with the hashes of all rows copies get one label."""
    timer = Timer()
    model = solve(points, timer.stage)
    found = np.asarray(model.labels, dtype=np.intp)
    labels = found if row_hashes is None else label_of_most_copies(found, row_hashes)
    model = replace(model, labels=labels)
    # clusters that consisted of other clusters' copies alone are empty: predict follows most of their samples
    moved = {int(k): int(np.bincount(labels[found == k] + 1).argmax()) - 1 for k in np.setdiff1d(found, labels)}
    predictor = ByModel(
        dtype=points.dtype.type,
        largest=largest,
        scaling=points.scaling,
        model=model,
        moved=moved,
        only=int(labels.max()),
        block_bytes=points.block_bytes,
    )
    outcome = Outcome(labels, model, predictor, points.order, timer.seconds)
    return outcome if outcome.n_clusters > 1 else replace(outcome, predictor=replace(predictor, model=None))


def one_cluster(n: int, dtype: Any, n_clusters: int | None) -> Outcome:
    """Put all samples into one cluster: one was wanted, or all samples are equal."""
    if n_clusters not in (1, None):
        text = f"all {n} points are equal: 1 cluster found instead of n_clusters={n_clusters}."
        warn_caller(text, ConvergenceWarning)
    predictor = ByModel(dtype=np.dtype(dtype).type, largest=0.0, scaling=Scaling(), model=None, moved={})
    return Outcome(np.zeros(n, dtype=np.intp), None, predictor)


def check_landmarks(n_clusters: int, n_landmarks: int) -> None:
    """Refuse fewer landmarks than clusters."""
    if n_landmarks < n_clusters:
        raise ValueError(
            f"n_landmarks={n_landmarks} must not be less than n_clusters={n_clusters}: every cluster needs a "
            "landmark, better some dozens of them. Take more landmarks."
        )
