"""AKK: kernel k-means whose centres are combinations of a few landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions

from subspaces.estimators.kasp import KernelLandmarkClusterer
from subspaces.estimators.nystrom import KernelRows, kernel_blocks, row_bytes, whitening
from subspaces.kernels import KERNELS, DistanceKernel, DotKernel, Kernel
from subspaces.numerics.centroids import sample_rows
from subspaces.numerics.process import one_thread
from subspaces.numerics.types import Array, Labels

_START_SAMPLE = 10_000
"""Points on which the starts of k-means compete."""

_CHANGED = 1e-4
"""Lloyd ends when fewer points than this share change their label; with up to 10,000 points: when none does."""


@dataclass(frozen=True)
class KernelCentres:
    """Centres c_l = Σ_j α_lj φ(z_j) of clusters in a kernel space.

    Attributes
    ----------
    weights : α, array of shape (n_clusters, p)
    squared_norms : ‖c_l‖²
    """

    weights: Array
    squared_norms: Array

    def nearest(self, block: Array) -> Labels:
        """Label of each row of K(X, Z): the smallest ‖φ(x) − c_l‖² up to k(x, x), ‖c_l‖² − 2 Σ_j α_lj k(x, z_j)."""
        scores = block @ (2 * self.weights.T).astype(block.dtype)
        scores -= self.squared_norms.astype(block.dtype)
        return scores.argmax(axis=1)


def centres_from_features(means: Array, E: Array) -> KernelCentres:
    """Centres given in the features K(X, Z) E of :func:`~subspaces.estimators.nystrom.whitening`: α = mean Eᵀ."""
    return KernelCentres(means @ E.T, np.einsum("ij,ij->i", means, means))


def kernel_lloyd(
    rows: KernelRows, E: Array, centres: KernelCentres, max_iter: int
) -> tuple[Labels, KernelCentres, int]:
    """Lloyd's steps with α_l = K_ZZ⁺ (mean of the rows of K(X, Z) in cluster l), one pass over the rows each.

    Exactly Lloyd's k-means on the features K(X, Z) K_ZZ^(−½), but the n × p features are never made: a pass costs
    O(n p (m + n_clusters)). A cluster that loses all points keeps its centre.
    """
    n, n_clusters = len(rows.X), len(centres.weights)
    labels = np.full(n, -1, dtype=np.intp)
    n_iter = 0
    while True:
        sums = np.zeros((n_clusters, E.shape[0]))
        n_changed = 0
        for part, block in rows:
            found = centres.nearest(block)
            n_changed += int((found != labels[part]).sum())
            labels[part] = found
            members = np.zeros((n_clusters, len(block)), dtype=block.dtype)
            members[found, np.arange(len(block))] = 1
            sums += members @ block
        if n_iter == max_iter or n_changed <= _CHANGED * n:
            return labels, centres, max(1, n_iter)
        counts = np.bincount(labels, minlength=n_clusters)[:, None]
        moved = centres_from_features((sums / np.maximum(counts, 1)) @ E, E)
        centres = KernelCentres(
            np.where(counts > 0, moved.weights, centres.weights),
            np.where(counts[:, 0] > 0, moved.squared_norms, centres.squared_norms),
        )
        n_iter += 1


@dataclass(eq=False, repr=False, kw_only=True)
class AKK(KernelLandmarkClusterer):
    """Approximate kernel k-means (AKK): k-means in a kernel space, centres spanned by p landmarks.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, random points that span the centres. With all points this is kernel k-means.
    kernel : {"rbf", "exponential", "inverse_square", "inverse_distance", "linear", "cosine", "quadratic", "cubic", \
"polynomial"}, callable or Kernel
    bandwidth : {"rms", "mean", "median"} or float
        σ of the kernel, taken from the landmarks; see :class:`~subspaces.kernels.DistanceKernel`.
    n_init : int, default=10
        Starts by k-means++ on 10,000 points; the best goes on with all points.
    max_iter : int, default=50
        Passes over all points.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : array of shape (p, m), as scaled
    kernel_ : the kernel with its bandwidth
    centres_ : weights of the landmarks in the centres
    n_iter_ : passes over all points

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.akk import AKK
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + np.repeat([[0, 0], [9, 9]], 250, axis=0)
    >>> labels = AKK(n_clusters=2, n_landmarks=50).fit_predict(X)
    >>> len(set(labels[:250])), len(set(labels[250:]))
    (1, 1)
    """

    max_iter: int = 50

    _kernels: ClassVar[tuple[str, ...]] = tuple(
        name for name, kind in KERNELS.items() if issubclass(kind, DistanceKernel | DotKernel)
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelLandmarkClusterer._parameter_constraints,
        "kernel": [StrOptions(set(_kernels)), callable, Kernel],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    cost: ClassVar[str] = "O(n p (m + n_clusters)) per pass, no n × p array"
    reference: ClassVar[str] = "Chitta, Jin, Havens, Jain: Approximate kernel k-means, KDD 2011"

    def _cluster(self, X: Array) -> Labels:
        self._check_landmarks(X)
        self.landmarks_ = X[sample_rows(len(X), self.n_landmarks, self._seed)]
        self.kernel_ = self._settled_kernel(self.landmarks_)
        E = whitening(self.landmarks_, self.kernel_)
        with self._timed("start"), one_thread("blas"):
            sample = X[sample_rows(len(X), _START_SAMPLE, self._seed)]
            features = self.kernel_.cross(sample, self.landmarks_) @ E.astype(X.dtype)
            start = KMeans(self.n_clusters, n_init=self.n_init, random_state=self._seed).fit(features)
        with self._timed("passes"):
            centres = centres_from_features(start.cluster_centers_.astype(np.float64), E)
            rows = KernelRows(X, self.landmarks_, self.kernel_)
            labels, self.centres_, self.n_iter_ = kernel_lloyd(rows, E, centres, self.max_iter)
        return labels

    def _work_bytes(self, n: int, p: int, itemsize: int) -> int:
        start = 3 * min(n, _START_SAMPLE) * p * itemsize  # kernel values, features, k-means' copy
        return super()._work_bytes(n, p, itemsize) + max(start, row_bytes(n, p, itemsize))

    def _label_new(self, X: Array) -> Labels:
        blocks = kernel_blocks(X, self.landmarks_, self.kernel_)
        return np.concatenate([self.centres_.nearest(block) for _, block in blocks])
