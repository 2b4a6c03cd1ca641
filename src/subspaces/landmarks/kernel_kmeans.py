"""Approximate kernel k-means (AKK): centres c_l = Σ_j α_lj φ(z_j) are combinations of a few landmarks z_j."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans

from subspaces.kernels import Kernel
from subspaces.landmarks.nystrom_features import KernelRows, kernel_blocks, row_bytes, whitening
from subspaces.utils.centroids import sample_rows
from subspaces.utils.process import one_thread
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels

_START_SAMPLE = 10_000
"""Points on which the starts of k-means compete."""

_CHANGED = 1e-4
"""Lloyd ends when fewer points than this share change their label; with up to 10,000 points: when none does."""


@dataclass(frozen=True)
class KernelCentres:
    """Centres c_l = Σ_j α_lj φ(z_j) of clusters in a kernel space: `weights` α, shape (n_clusters, p), and ‖c_l‖²."""

    weights: Array
    squared_norms: Array

    def nearest(self, block: Array) -> Labels:
        """Label of each row of K(X, Z): the smallest ‖φ(x) − c_l‖² up to k(x, x), ‖c_l‖² − 2 Σ_j α_lj k(x, z_j)."""
        scores = block @ (2 * self.weights.T).astype(block.dtype)
        scores -= self.squared_norms.astype(block.dtype)
        return scores.argmax(axis=1)


def centres_from_features(means: Array, E: Array) -> KernelCentres:
    """Centres in the features K(X, Z) E (:func:`~subspaces.landmarks.nystrom_features.whitening`): α = mean Eᵀ."""
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


@dataclass(frozen=True)
class KernelKMeansModel:
    """What AKK learns: the centres, the landmarks that span them and the kernel, after `n_iter` passes."""

    labels: Labels
    landmarks: Array
    kernel: Kernel
    centres: KernelCentres
    n_iter: int

    def label(self, X: Array) -> Labels:
        """The nearest centre in the kernel space."""
        blocks = kernel_blocks(X, self.landmarks, self.kernel)
        return np.concatenate([self.centres.nearest(block) for _, block in blocks])


def akk(
    X: Array,
    kernel: Kernel,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_init: int = 10,
    max_iter: int = 50,
    seed: int = 0,
    stage: Listener = unwatched,
) -> KernelKMeansModel:
    """k-means in the space of a kernel, which is fitted to random landmarks; its starts compete on 10,000 points."""
    landmarks = X[sample_rows(len(X), n_landmarks, seed)]
    kernel = kernel.fit(landmarks)
    E = whitening(landmarks, kernel)
    with stage("start"), one_thread("blas"):
        sample = X[sample_rows(len(X), _START_SAMPLE, seed)]
        features = kernel.cross(sample, landmarks) @ E.astype(X.dtype)
        start = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(features)
    with stage("passes"):
        centres = centres_from_features(start.cluster_centers_.astype(np.float64), E)
        labels, centres, n_iter = kernel_lloyd(KernelRows(X, landmarks, kernel), E, centres, max_iter)
    return KernelKMeansModel(labels, landmarks, kernel, centres, n_iter)


def work_bytes(n: int, p: int) -> int:
    """Memory besides p × p matrices: kernel values, features and k-means' copy of the start, or a pass over all."""
    return max(3 * 8 * min(n, _START_SAMPLE) * p, row_bytes(n, p))
