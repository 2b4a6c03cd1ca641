"""What a fit that ends in a model of landmarks (:mod:`subspaces.engine.landmark_run`) checks, runs and keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from subspaces.engine.landmark_run import Outcome, check_count, check_landmarks, require_landmarks, run_landmarks
from subspaces.estimators.base import COUNT, POSITIVE
from subspaces.estimators.callbacks import announced
from subspaces.kernels import KERNELS, DistanceKernel, DotKernel, Kernel, KernelLike, as_kernel
from subspaces.landmarks.points import InMemory
from subspaces.numerics.listening import Listener
from subspaces.numerics.types import Array

AFFINITIES = tuple(name for name, kind in KERNELS.items() if kind.of_distances)
"""Kernels that are never negative, as a graph needs them."""
SPACES = tuple(name for name, kind in KERNELS.items() if issubclass(kind, DistanceKernel | DotKernel))
"""Kernels of a space in which k-means has centres."""

WANTED = {"n_clusters": [COUNT]}
"""The number of clusters, in a method that cannot find it."""
WITH_AFFINITY = {**WANTED, "kernel": [StrOptions(set(AFFINITIES)), callable, Kernel]}
NEAR = {**WANTED, "bandwidth": [StrOptions({"neighbors"}), POSITIVE]}


class Given(NamedTuple):
    """What a fit knows besides the points and its parameters.

    Attributes
    ----------
    n_clusters : wanted
    exponent : the points were divided by 2 to this power
    seed : of whatever is drawn
    stage : told when a stage begins and ends
    """

    n_clusters: int
    exponent: int
    seed: int
    stage: Listener

    def length(self, value: float | str) -> float | str:
        """A length that the user gave, in the units of the scaled points; a rule stays."""
        return value if isinstance(value, str) else float(np.ldexp(value, -self.exponent))


def fit_landmarks(
    estimator: Any,
    X: Array,
    solve: Callable[[Array, Given], Any],
    keeps: tuple[str, ...],
    *,
    n_squares: float = 2,
    work_bytes: int = 0,
    units: bool = False,
) -> Outcome:
    """Fit an estimator whose method is a function of all points in canonical order.

    Parameters
    ----------
    solve : points → a frozen model
    keeps : names of the model's attributes that become fitted ones, with an underscore
    n_squares : p × p arrays in float64 that a fit holds at its peak. Measured (``benchmarks/memory.py``)
    work_bytes : memory of the method besides those and the embedding
    units : whether a common factor of all points matters
    """
    n, k, p = len(X), int(estimator.n_clusters), min(int(estimator.n_landmarks), len(X))
    check_count(k, n)
    check_landmarks(k, estimator.n_landmarks)
    require_landmarks(p, type(estimator).__name__, n_squares, 4 * n * k * X.itemsize + work_bytes)
    seed = estimator._drawn_seed()

    def in_order(points: InMemory, stage: Listener) -> Any:
        model = solve(points.in_order(), Given(k, points.scaling.exponent, seed, stage))
        return replace(model, labels=points.as_given(model.labels))

    with announced(estimator) as listen:
        found = run_landmarks(X, in_order, n_clusters=k, scaling=estimator.scaling, units=units, listen=listen)
    keep_outcome(estimator, found, keeps)
    if found.model is not None:  # else it has been said
        estimator._warn_if_fewer(found.n_clusters, "too few points differ, or too few landmarks stand for them")
    return found


def keep_outcome(estimator: Any, found: Outcome, keeps: tuple[str, ...]) -> None:
    """Fitted attributes from an outcome."""
    estimator.labels_ = found.labels
    estimator.n_clusters_ = found.n_clusters
    estimator.timings_ = dict(found.timings)
    estimator._predictor = found.predictor
    for name in keeps if found.model is not None else ():
        setattr(estimator, f"{name}_", getattr(found.model, name))


def kernel_of(kernel: KernelLike, bandwidth: float | str, allowed: tuple[str, ...], method: str) -> Kernel:
    """The kernel object, not yet fitted, if it is one for the method."""
    found = as_kernel(kernel, bandwidth)
    if found.name in KERNELS and found.name not in allowed:
        raise ValueError(f"kernel={found!r} is none for {method}, which takes {allowed}.")
    return found
