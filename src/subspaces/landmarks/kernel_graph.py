"""Cut kernel graphs through p landmarks: KASP, Nyström spectral clustering and approximate kernel k-means (AKK).

KASP cuts the kernel graph of p centroids. The other two replace the kernel matrix of all n samples by its Nyström
approximation K(X, Z) K(Z, Z)⁺ K(Z, X), Z the landmarks, and read K(X, Z) in blocks of rows: there is no n × p array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from subspaces.kernels import Kernel
from subspaces.spectral.assign import cut_embedding
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.utils.blocks import row_blocks
from subspaces.utils.centroids import centroids, cluster_rows, nearest, sample_rows
from subspaces.utils.decompositions import eigh, largest_eigenpairs
from subspaces.utils.process import one_thread
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels, Sparse

KASP_SQUARES = 6
"""p × p arrays in float64 at the peak of KASP: the full graph, dense and sparse, and its Laplacian likewise."""
NYSTROM_SQUARES = 3.25
"""The same of NystromSC. Measured (``benchmarks/memory.py``)."""
_BLOCK_BYTES = 32 * 2**20
_KEPT_BYTES = 256 * 2**20
_RANK_TOLERANCE = 1e-8  # of the largest eigenvalue of K(Z, Z): what is below belongs to (nearly) repeated landmarks
_DEGREE_FLOOR = 1e-3  # of the median degree: the approximation can make degrees negative, which no graph has
_START_SIZE = 10_000  # samples on which the starts of AKK's k-means compete
_CHANGED = 1e-4  # Lloyd ends when a smaller share of the samples changes its label: below 10,000 samples when none does


# ------------------------------------------------------------------ KASP


@dataclass(frozen=True)
class CentroidModel:
    """Hold what KASP learns: labels of samples and centroids, and the kernel with its bandwidth."""

    labels: Labels
    landmarks: Array
    landmark_labels: Labels
    kernel: Kernel

    def label(self, X: Array) -> Labels:
        """Return the cluster of the nearest centroid."""
        return self.landmark_labels[nearest(X, self.landmarks)[0][:, 0]]


def kasp(
    X: Array, kernel: Kernel, *, n_clusters: int, n_landmarks: int, n_init: int, seed: int, stage: Listener = unwatched
) -> CentroidModel:
    """Cluster centroids by their graph under a kernel, which is fitted to them; samples follow their centroid."""
    with stage("landmarks"):
        points = centroids(X, n_landmarks, seed)
        used, cells = np.unique(nearest(X, points)[0][:, 0], return_inverse=True)
        landmarks = points[used]  # a centroid without samples stands for nothing
    with stage("cut"):
        kernel = kernel.fit(landmarks)
        W = kernel.gram(landmarks.astype(np.float64))
        np.fill_diagonal(W, 0)
        found = spectral_labels(sparse.csr_array(W), n_clusters, n_init, seed)
    return CentroidModel(found[cells], landmarks, found, kernel)


def spectral_labels(W: Sparse, n_clusters: int, n_init: int, seed: int) -> Labels:
    """Label the nodes of a graph by Ng, Jordan and Weiss' steps; nodes without edges join the largest cluster."""
    n = W.shape[0]
    if n_clusters >= n:
        return np.arange(n, dtype=np.intp)
    found = spectral_embedding(W, n_clusters)
    connected = found.components >= 0
    n_found = min(n_clusters, int(connected.sum()))
    labels = cut_embedding(unit_rows(found.vectors[connected]), n_found, n_init=n_init, seed=seed)
    out = np.full(n, np.bincount(labels).argmax(), dtype=np.intp)
    out[connected] = labels
    return out


# ------------------------------------------------------------------ Nyström


def kernel_blocks(X: Array, landmarks: Array, kernel: Kernel) -> Iterator[tuple[slice, Array]]:
    """Yield K(X, Z) as blocks of rows of 32 MB, each with the rows of X it belongs to."""
    for start, stop in row_blocks(len(X), len(landmarks) * X.itemsize, _BLOCK_BYTES):
        yield slice(start, stop), kernel.cross(X[start:stop], landmarks)


class KernelRows:
    """Read K(X, Z) in blocks of rows, as often as wanted: ``for part, block in KernelRows(X, Z, kernel)``.

    All blocks are kept if together they take at most 256 MB; otherwise each pass computes them anew, which costs less
    than what is done with them (Covtype with 1000 landmarks would be 4.6 GB).
    """

    def __init__(self, X: Array, landmarks: Array, kernel: Kernel) -> None:
        self.X, self.landmarks, self.kernel = X, landmarks, kernel
        is_small = len(X) * len(landmarks) * X.itemsize <= _KEPT_BYTES
        self._kept = list(kernel_blocks(X, landmarks, kernel)) if is_small else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        return iter(self._kept) if self._kept is not None else kernel_blocks(self.X, self.landmarks, self.kernel)


def nystrom_bytes(n: int, p: int) -> int:
    """Return the memory of :class:`KernelRows` and of a pass over it."""
    kept, block = 8 * n * p, min(8 * n * p, _BLOCK_BYTES)
    return (kept if kept <= _KEPT_BYTES else block) + 2 * block


def whitening(landmarks: Array, kernel: Kernel) -> Array:
    """Return E (p × r, float64) with E Eᵀ = K(Z, Z)⁺: products of the features K(X, Z) E are the Nyström kernel.

    Eigenvalues below 1e-8 of the largest, or below the precision of the landmarks, are left out.
    """
    tolerance = max(_RANK_TOLERANCE, float(np.finfo(landmarks.dtype).eps))
    values, vectors = eigh(kernel.gram(landmarks.astype(np.float64)))
    kept = values > tolerance * values[-1]
    if not kept.any():
        raise ValueError(
            f"the kernel matrix of the n_landmarks={len(landmarks)} landmarks is zero, so it tells nothing about other "
            "samples. Take more landmarks or another kernel."
        )
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def nystrom_directions(rows: KernelRows, n_vectors: int) -> tuple[Array, Array, Array]:
    """Compute leading eigenvectors of D^(−½) W D^(−½), W = C E Eᵀ Cᵀ and C = K(X, Z), in two passes over the rows of C.

    The first pass gives the degrees d = C E Eᵀ (Cᵀ 1), the second one C̃ᵀ C̃ with C̃ = D^(−½) C. The eigenvectors are
    orthonormal: C̃ M with M = E U Λ^(−½) and EᵀC̃ᵀC̃E = U Λ Uᵀ.

    Returns
    -------
    directions : array M of shape (p, n_vectors), float64
    to_degree : array of shape (p,), float64; the degrees are C @ to_degree
    eigenvalues : largest first
    """
    E = whitening(rows.landmarks, rows.kernel)
    to_degree = E @ (E.T @ sum(block.sum(axis=0, dtype=np.float64) for _, block in rows))
    landmark_degrees = rows.kernel.cross(rows.landmarks, rows.landmarks) @ to_degree
    floor = _DEGREE_FLOOR * float(np.median(np.abs(landmark_degrees)))
    p, r = E.shape
    products = np.zeros((p, p))
    for _, block in rows:
        # in float64: E divides by eigenvalues down to 1e-8, which sums in float32 do not survive
        scaled = block.astype(np.float64)
        scaled /= np.sqrt(np.maximum(scaled @ to_degree, floor))[:, None]
        products += scaled.T @ scaled
    small = E.T @ products @ E
    small = (small + small.T) / 2  # E magnifies rounding by up to 1e8
    values, vectors = largest_eigenpairs(small, min(n_vectors, r))
    positive = np.sqrt(np.maximum(values, np.finfo(np.float64).tiny))
    return E @ (vectors / positive), to_degree, values


@dataclass(frozen=True)
class NystromModel:
    """Hold what NystromSC learns: `directions` are M of :func:`nystrom_directions`, `landmarks` are Z."""

    labels: Labels
    landmarks: Array
    kernel: Kernel
    directions: Array
    eigenvalues: Array
    cluster_centers: Array

    def label(self, X: Array) -> Labels:
        """Return the nearest centre in the embedding."""
        Y = _embedded(kernel_blocks(X, self.landmarks, self.kernel), len(X), self.directions)
        return nearest(Y, self.cluster_centers)[0][:, 0].astype(np.intp)


def nystrom_sc(
    X: Array, kernel: Kernel, *, n_clusters: int, n_landmarks: int, n_init: int, seed: int, stage: Listener = unwatched
) -> NystromModel:
    """Cut the full kernel graph, known by its columns at random samples, to which `kernel` is fitted."""
    landmarks = X[sample_rows(len(X), n_landmarks, seed)]
    kernel = kernel.fit(landmarks)
    rows = KernelRows(X, landmarks, kernel)
    with stage("eigenvectors"):
        found, _, eigenvalues = nystrom_directions(rows, n_clusters)
        directions = found.astype(X.dtype)
    with stage("embedding"):
        Y = _embedded(rows, len(X), directions)
    with stage("assign_labels"):
        labels, centers = cluster_rows(Y, n_clusters, n_init, seed)
    return NystromModel(labels, landmarks, kernel, directions, eigenvalues, centers)


def _embedded(rows: Iterable[tuple[slice, Array]], n: int, directions: Array) -> Array:
    """Return unit rows of the eigenvectors; degrees only scale rows and are not needed for that."""
    Y = np.empty((n, directions.shape[1]), dtype=directions.dtype)
    for part, block in rows:
        np.matmul(block, directions, out=Y[part])
    return unit_rows(Y)


# ------------------------------------------------------------------ AKK


@dataclass(frozen=True)
class KernelCentres:
    """Describe centres c_l = Σ_j α_lj φ(z_j) in a kernel space: `weights` α, shape (n_clusters, p), and ‖c_l‖²."""

    weights: Array
    squared_norms: Array

    @classmethod
    def from_features(cls, means: Array, E: Array) -> KernelCentres:
        """Convert centres in the features K(X, Z) E of :func:`whitening`: α = mean Eᵀ."""
        return cls(means @ E.T, np.einsum("ij,ij->i", means, means))

    def nearest(self, block: Array) -> Labels:
        """Label each row of K(X, Z) by the smallest ‖φ(x) − c_l‖² − k(x, x) = ‖c_l‖² − 2 Σ_j α_lj k(x, z_j)."""
        scores = block @ (2 * self.weights.T).astype(block.dtype)
        scores -= self.squared_norms.astype(block.dtype)
        return scores.argmax(axis=1)


def kernel_lloyd(
    rows: KernelRows, E: Array, centres: KernelCentres, max_iter: int
) -> tuple[Labels, KernelCentres, int]:
    """Run Lloyd's steps with α_l = K_ZZ⁺ (mean of the rows of K(X, Z) in cluster l), one pass over the rows each.

    This is Lloyd's k-means on the features K(X, Z) K_ZZ^(−½), but the n × p features are never made: a pass costs
    O(n p (m + n_clusters)). A cluster that loses all samples keeps its centre.
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
        moved = KernelCentres.from_features((sums / np.maximum(counts, 1)) @ E, E)
        centres = KernelCentres(
            np.where(counts > 0, moved.weights, centres.weights),
            np.where(counts[:, 0] > 0, moved.squared_norms, centres.squared_norms),
        )
        n_iter += 1


@dataclass(frozen=True)
class KernelKMeansModel:
    """Hold what AKK learns: the centres, the landmarks that span them and the kernel, after `n_iter` passes."""

    labels: Labels
    landmarks: Array
    kernel: Kernel
    centres: KernelCentres
    n_iter: int

    def label(self, X: Array) -> Labels:
        """Return the nearest centre in the kernel space."""
        blocks = kernel_blocks(X, self.landmarks, self.kernel)
        return np.concatenate([self.centres.nearest(block) for _, block in blocks])


def akk(
    X: Array,
    kernel: Kernel,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_init: int,
    max_iter: int,
    seed: int,
    stage: Listener = unwatched,
) -> KernelKMeansModel:
    """Run k-means in the space of a kernel, which is fitted to random landmarks; starts compete on 10,000 samples."""
    landmarks = X[sample_rows(len(X), n_landmarks, seed)]
    kernel = kernel.fit(landmarks)
    E = whitening(landmarks, kernel)
    with stage("start"), one_thread("blas"):
        subset = X[sample_rows(len(X), _START_SIZE, seed)]
        features = kernel.cross(subset, landmarks) @ E.astype(X.dtype)
        start = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(features)
    with stage("passes"):
        centres = KernelCentres.from_features(start.cluster_centers_.astype(np.float64), E)
        labels, centres, n_iter = kernel_lloyd(KernelRows(X, landmarks, kernel), E, centres, max_iter)
    return KernelKMeansModel(labels, landmarks, kernel, centres, n_iter)


def akk_bytes(n: int, p: int) -> int:
    """Return the memory besides p × p matrices: kernel values, features and k-means' copy of the start, or a pass."""
    return max(3 * 8 * min(n, _START_SIZE) * p, nystrom_bytes(n, p))
