"""KASP: k-means to a few centroids, spectral clustering of those, labels copied back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from subspaces.estimators.base import SubspaceClusterer
from subspaces.estimators.model_fit import AFFINITIES, WITH_AFFINITY, Given, fit_landmarks, kernel_of
from subspaces.kernels import KernelLike
from subspaces.landmarks import centroid_graph
from subspaces.landmarks.centroid_graph import CentroidModel
from subspaces.numerics.types import Array


@dataclass(eq=False, repr=False, kw_only=True)
class KASP(SubspaceClusterer):
    """K-means-based approximate spectral clustering (KASP): cluster the centroids, copy their labels to the points.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, number of centroids. With as many as there are points the labels are those of :class:`~subspaces.SC`.
    kernel : {"rbf", "exponential", "inverse_square", "inverse_distance"}, callable or Kernel
        Affinity of two centroids.
    bandwidth : {"rms", "mean", "median"} or float
        σ of the kernel, taken from the centroids; see :class:`~subspaces.kernels.DistanceKernel`.
    n_init : int, default=10
        Starts of the final k-means.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : array of shape (at most p, m), the centroids, as scaled
    landmark_labels_ : their labels
    kernel_ : the kernel with its bandwidth

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.kasp import KASP
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + np.repeat([[0, 0], [9, 9]], 250, axis=0)
    >>> labels = KASP(n_clusters=2, n_landmarks=20).fit_predict(X)
    >>> len(set(labels[:250])), len(set(labels[250:]))
    (1, 1)
    """

    n_landmarks: int = 1000
    n_init: int = 10
    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"

    _constraints: ClassVar[dict[str, list[Any]]] = WITH_AFFINITY
    cost: ClassVar[str] = "k-means with p centroids, O(n p m), and O(p³)"
    reference: ClassVar[str] = "Yan, Huang, Jordan: Fast approximate spectral clustering, KDD 2009"

    def _fit(self, X: Array) -> None:
        kernel = kernel_of(self.kernel, self.bandwidth, AFFINITIES, "KASP")

        def solve(X: Array, given: Given) -> CentroidModel:
            return centroid_graph.kasp(
                X,
                kernel.scaled(given.exponent),
                n_clusters=given.n_clusters,
                n_landmarks=self.n_landmarks,
                n_init=self.n_init,
                seed=given.seed,
                stage=given.stage,
            )

        keeps = ("landmarks", "landmark_labels", "kernel")
        fit_landmarks(self, X, solve, keeps, n_squares=centroid_graph.SQUARES, units=kernel.sees_units)
