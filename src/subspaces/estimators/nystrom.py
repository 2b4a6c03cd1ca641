"""Nyström spectral clustering: the whole kernel graph through a few of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.model_fit import AFFINITIES, WITH_AFFINITY, Given, fit_landmarks, kernel_of
from subspaces.kernels import KernelLike
from subspaces.landmarks.nystrom_features import SQUARES, NystromModel, nystrom_sc, row_bytes
from subspaces.numerics.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class NystromSC(SubspaceClusterer):
    """Nyström spectral clustering: eigenvectors of the full kernel graph from its columns at p random points.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, columns of the kernel matrix used. With all of them the eigenvectors are exact.
    kernel : {"rbf", "exponential", "inverse_square", "inverse_distance"}, callable or Kernel
        Affinity of two points; must not be negative.
    bandwidth : {"rms", "mean", "median"} or float
        σ of the kernel, taken from the landmarks; see :class:`~subspaces.kernels.DistanceKernel`.
    n_init : int, default=10
        Starts of the final k-means.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : array of shape (p, m), as scaled
    kernel_ : the kernel with its bandwidth
    eigenvalues_ : of the approximated normalised affinity, largest (about 1) first
    cluster_centers_ : centres of the embedded points

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.nystrom import NystromSC
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + np.repeat([[0, 0], [9, 9]], 250, axis=0)
    >>> labels = NystromSC(n_clusters=2, n_landmarks=50).fit_predict(X)
    >>> len(set(labels[:250])), len(set(labels[250:]))
    (1, 1)
    """

    n_landmarks: int = 1000
    n_init: int = 10
    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"

    _constraints: ClassVar[dict[str, list[Any]]] = WITH_AFFINITY
    cost: ClassVar[str] = "O(n p (m + p)), three passes, no n × p array"
    reference: ClassVar[str] = (
        "Fowlkes, Belongie, Chung, Malik: Spectral grouping using the Nyström method, IEEE TPAMI 26 (2004)"
    )

    def _fit(self, X: Array) -> None:
        kernel = kernel_of(self.kernel, self.bandwidth, AFFINITIES, "NystromSC")

        def solve(X: Array, given: Given) -> NystromModel:
            return nystrom_sc(
                X,
                kernel.scaled(given.exponent),
                n_clusters=given.n_clusters,
                n_landmarks=self.n_landmarks,
                n_init=self.n_init,
                seed=given.seed,
                stage=given.stage,
            )

        keeps = ("landmarks", "kernel", "eigenvalues", "cluster_centers")
        work = row_bytes(len(X), min(self.n_landmarks, len(X)), X.itemsize)
        fit_landmarks(self, X, solve, keeps, n_squares=SQUARES, work_bytes=work, units=kernel.sees_units)
