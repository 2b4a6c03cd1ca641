"""The whole kernel matrix as K(X, Z) K(Z, Z)⁻¹ K(Z, X), Z a few landmarks, read in blocks of rows; cut by NystromSC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from subspaces.kernels import Kernel
from subspaces.spectral.embedding import unit_rows
from subspaces.utils.blocks import row_blocks
from subspaces.utils.centroids import cluster_rows, nearest, sample_rows
from subspaces.utils.decompositions import eigh, largest_eigenpairs
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels

SQUARES = 3.25
"""p × p arrays in float64 that NystromSC holds at its peak. Measured (``benchmarks/memory.py``)."""
_BLOCK_BYTES = 32 * 2**20
_KEPT_BYTES = 256 * 2**20
_RANK_TOLERANCE = 1e-8  # of the largest eigenvalue of K(Z, Z): what is below belongs to (nearly) repeated landmarks
_DEGREE_FLOOR = 1e-3  # of the median degree: the approximation can make degrees negative, which no graph has


def kernel_blocks(X: Array, landmarks: Array, kernel: Kernel) -> Iterator[tuple[slice, Array]]:
    """K(X, Z) as blocks of rows of 32 MB, each with the rows of X it belongs to."""
    for start, stop in row_blocks(len(X), len(landmarks) * X.itemsize, _BLOCK_BYTES):
        yield slice(start, stop), kernel.cross(X[start:stop], landmarks)


def row_bytes(n: int, p: int) -> int:
    """Memory of :class:`KernelRows` and of a pass over it."""
    kept, block = 8 * n * p, min(8 * n * p, _BLOCK_BYTES)
    return (kept if kept <= _KEPT_BYTES else block) + 2 * block


class KernelRows:
    """K(X, Z) as blocks of rows, as often as wanted: ``for part, block in KernelRows(X, Z, kernel)``.

    All blocks are kept if together they take at most 256 MB; otherwise each pass computes them anew, which costs less
    than what is done with them (Covtype with 1000 landmarks would be 4.6 GB).
    """

    def __init__(self, X: Array, landmarks: Array, kernel: Kernel) -> None:
        self.X, self.landmarks, self.kernel = X, landmarks, kernel
        self._kept: list[tuple[slice, Array]] | None = None
        if len(X) * len(landmarks) * X.itemsize <= _KEPT_BYTES:
            self._kept = list(kernel_blocks(X, landmarks, kernel))

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        return iter(self._kept) if self._kept is not None else kernel_blocks(self.X, self.landmarks, self.kernel)


def whitening(landmarks: Array, kernel: Kernel) -> Array:
    """E (p × r, float64) with E Eᵀ = K(Z, Z)⁺, so that the features K(X, Z) E have the Nyström kernel as products.

    Eigenvalues below 1e-8 of the largest, or below the precision of the landmarks, are left out.
    """
    tolerance = max(_RANK_TOLERANCE, float(np.finfo(landmarks.dtype).eps))
    values, vectors = eigh(kernel.gram(landmarks.astype(np.float64)))
    kept = values > tolerance * values[-1]
    if not kept.any():
        raise ValueError(
            f"the kernel matrix of the n_landmarks={len(landmarks)} landmarks is zero: nothing can be said of other "
            "points. Take more landmarks or another kernel."
        )
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def nystrom_directions(rows: KernelRows, n_vectors: int) -> tuple[Array, Array, Array]:
    """Leading eigenvectors of D^(−½) W D^(−½), W = C E Eᵀ Cᵀ with C = K(X, Z), from two passes over the rows of C.

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
    n_vectors = min(n_vectors, r)
    small = E.T @ products @ E
    small = (small + small.T) / 2  # E magnifies rounding by up to 1e8
    values, vectors = largest_eigenpairs(small, n_vectors)
    positive = np.sqrt(np.maximum(values, np.finfo(np.float64).tiny))
    return E @ (vectors / positive), to_degree, values


@dataclass(frozen=True)
class NystromModel:
    """What Nyström spectral clustering learns: `directions` are M of :func:`nystrom_directions`, landmarks Z."""

    labels: Labels
    landmarks: Array
    kernel: Kernel
    directions: Array
    eigenvalues: Array
    cluster_centers: Array

    def label(self, X: Array) -> Labels:
        """The nearest centre in the embedding."""
        Y = _embedded(kernel_blocks(X, self.landmarks, self.kernel), len(X), self.directions)
        return nearest(Y, self.cluster_centers)[0][:, 0].astype(np.intp)


def nystrom_sc(
    X: Array,
    kernel: Kernel,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_init: int = 10,
    seed: int = 0,
    stage: Listener = unwatched,
) -> NystromModel:
    """Spectral clustering of the full kernel graph, from its columns at random points; `kernel` is fitted to these."""
    landmarks = X[sample_rows(len(X), n_landmarks, seed)]
    kernel = kernel.fit(landmarks)
    rows = KernelRows(X, landmarks, kernel)
    with stage("eigenvectors"):
        found, _, eigenvalues = nystrom_directions(rows, n_clusters)
        directions = found.astype(X.dtype)
    with stage("embedding"):
        Y = _embedded(rows, len(X), directions)
    with stage("partition"):
        labels, centers = cluster_rows(Y, n_clusters, n_init, seed)
    return NystromModel(labels, landmarks, kernel, directions, eigenvalues, centers)


def _embedded(rows: Iterable[tuple[slice, Array]], n: int, directions: Array) -> Array:
    """Unit rows of the eigenvectors; the degrees only scale rows and are not needed for that."""
    Y = np.empty((n, directions.shape[1]), dtype=directions.dtype)
    for part, block in rows:
        np.matmul(block, directions, out=Y[part])
    return unit_rows(Y)
