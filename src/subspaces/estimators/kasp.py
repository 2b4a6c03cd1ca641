"""KASP: k-means to a few centroids, spectral clustering of those, labels copied back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import StrOptions

from subspaces.embedding.spectral import spectral_embedding, unit_rows
from subspaces.estimators.base import POSITIVE
from subspaces.estimators.lsc import LandmarkClusterer
from subspaces.kernels import BANDWIDTHS, KERNELS, Kernel, KernelLike, as_kernel
from subspaces.numerics.centroids import centroids, nearest
from subspaces.numerics.types import Array, Labels, Sparse
from subspaces.partition import cut_embedding


@dataclass(eq=False, repr=False, kw_only=True)
class KernelLandmarkClusterer(LandmarkClusterer):
    """Base of the methods that compare points and landmarks through a kernel."""

    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"

    _kernels: ClassVar[tuple[str, ...]] = tuple(name for name, kind in KERNELS.items() if kind.of_distances)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LandmarkClusterer._parameter_constraints,
        "kernel": [StrOptions(set(_kernels)), callable, Kernel],
        "bandwidth": [StrOptions(set(BANDWIDTHS)), POSITIVE],
    }

    def _settled_kernel(self, landmarks: Array) -> Kernel:
        """The kernel with its bandwidth taken from the landmarks: the rules for it may cost O(p²), not O(n²)."""
        kernel = as_kernel(self.kernel, self.bandwidth)
        if kernel.name in KERNELS and kernel.name not in self._kernels:
            raise ValueError(f"kernel={kernel!r} is none for {type(self).__name__}, which takes {self._kernels}.")
        return kernel.scaled(self._scaling.exponent).fit(landmarks)


def spectral_labels(W: Sparse, n_clusters: int, n_init: int, seed: int) -> Labels:
    """Labels of the nodes of a graph by Ng, Jordan and Weiss' steps; a node without edges joins the largest cluster."""
    n = W.shape[0]
    if n_clusters >= n:
        return np.arange(n, dtype=np.intp)
    found = spectral_embedding(W, n_clusters)
    connected = found.components >= 0
    labels = cut_embedding(
        unit_rows(found.vectors[connected]), min(n_clusters, int(connected.sum())), n_init=n_init, seed=seed
    )
    out = np.full(n, np.bincount(labels).argmax(), dtype=np.intp)
    out[connected] = labels
    return out


@dataclass(eq=False, repr=False, kw_only=True)
class KASP(KernelLandmarkClusterer):
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

    _squares: ClassVar[float] = 6  # the full graph, dense and sparse, and its Laplacian likewise
    cost: ClassVar[str] = "k-means with p centroids, O(n p m), and O(p³)"
    reference: ClassVar[str] = "Yan, Huang, Jordan: Fast approximate spectral clustering, KDD 2009"

    def _cluster(self, X: Array) -> Labels:
        self._check_landmarks(X)
        with self._timed("landmarks"):
            points = centroids(X, self.n_landmarks, self._seed)
            cells = nearest(X, points)[0][:, 0]
            used, cells = np.unique(cells, return_inverse=True)  # a centroid without points has nothing to say
            self.landmarks_ = points[used]
        with self._timed("cut"):
            self.kernel_ = self._settled_kernel(self.landmarks_)
            W = self.kernel_.gram(self.landmarks_.astype(np.float64))
            np.fill_diagonal(W, 0)
            self.landmark_labels_ = spectral_labels(sparse.csr_array(W), self.n_clusters, self.n_init, self._seed)
        return self.landmark_labels_[cells]

    def _label_new(self, X: Array) -> Labels:
        return self.landmark_labels_[nearest(X, self.landmarks_)[0][:, 0]]
