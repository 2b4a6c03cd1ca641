"""K-means-based approximate spectral clustering (KASP): k-means to a few centroids, whose kernel graph is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from subspaces.kernels import Kernel
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.spectral.partition import cut_embedding
from subspaces.utils.centroids import centroids, nearest
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels, Sparse

SQUARES = 6
"""p × p arrays in float64 at the peak: the full graph, dense and sparse, and its Laplacian likewise."""


@dataclass(frozen=True)
class CentroidModel:
    """What KASP learns: the clusters of the points, the centroids and theirs, and the kernel with its bandwidth."""

    labels: Labels
    landmarks: Array
    landmark_labels: Labels
    kernel: Kernel

    def label(self, X: Array) -> Labels:
        """The cluster of the nearest centroid."""
        return self.landmark_labels[nearest(X, self.landmarks)[0][:, 0]]


def kasp(
    X: Array,
    kernel: Kernel,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_init: int = 10,
    seed: int = 0,
    stage: Listener = unwatched,
) -> CentroidModel:
    """Cluster the centroids by their graph under a kernel, which is fitted to them; points follow their centroid."""
    with stage("landmarks"):
        points = centroids(X, n_landmarks, seed)
        used, cells = np.unique(nearest(X, points)[0][:, 0], return_inverse=True)
        landmarks = points[used]  # a centroid without points has nothing to say
    with stage("cut"):
        kernel = kernel.fit(landmarks)
        W = kernel.gram(landmarks.astype(np.float64))
        np.fill_diagonal(W, 0)
        found = spectral_labels(sparse.csr_array(W), n_clusters, n_init, seed)
    return CentroidModel(found[cells], landmarks, found, kernel)


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
