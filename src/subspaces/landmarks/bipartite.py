"""Cut graphs between samples and a few landmarks: codes, transfer cut, and the methods LSC and U-SPEC.

Each sample is tied to its nearest landmarks only, so the graph is bipartite and sparse. Its eigenvectors come from a
graph among the p landmarks alone (``transfer_cut``) and are carried back to the samples by one sparse product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from subspaces.graphs.affinity import components, join_components
from subspaces.kernels import InverseSquare
from subspaces.representation.coefficients import from_dense
from subspaces.spectral.embedding import FULL_GRAPH_SIZE, spectral_embedding, unit_rows
from subspaces.utils.centroids import centroids, cluster_rows, nearest, sample_rows
from subspaces.utils.distances import resolve_bandwidth
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels, Sparse

SQUARES = 5
"""p × p arrays in float64 that a fit holds at its peak. Measured (``benchmarks/memory.py``)."""
CANDIDATES = 10
"""Samples drawn per representative, and neighbours of a representative searched per neighbour wanted (paper: both)."""
_VANISHING = 1e-6  # singular values below are rounding: their vectors have no part on the samples


def work_bytes(n: int, n_neighbors: int) -> int:
    """Return the memory of the codes of n samples."""
    return 3 * n * n_neighbors * (8 + 4)


def landmark_codes(
    neighbours: Array, squared_distances: Array, bandwidth: float, n_landmarks: int
) -> tuple[Sparse, Array]:
    """Return codes T = D⁻¹B, a CSR of shape (n, n_landmarks) whose rows sum to 1, and masses d_i = Σ_j b_ij.

    b_ij = exp(−d²/σ²) for the k nearest landmarks of a sample, given by arrays of shape (n, k); σ = 0 weighs them
    alike. A sample so far out that all its b_ij vanish keeps its code: weights are taken relative to the nearest
    landmark, only the mass becomes 0.
    """
    exponents = squared_distances / np.array(bandwidth**2 if bandwidth > 0 else np.inf, squared_distances.dtype)
    smallest = exponents.min(axis=1, keepdims=True)
    weights = np.exp(smallest - exponents)
    total = weights.sum(axis=1, keepdims=True)
    weights /= total
    n, k = neighbours.shape
    codes = sparse.csr_array((weights.ravel(), neighbours.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n_landmarks))
    return codes, (total * np.exp(-smallest)).ravel()


@dataclass(frozen=True)
class TransferCut:
    """Hold eigenvectors of a bipartite graph, from the side of its landmarks.

    `directions` V has the shape (p, k); the samples' part of the eigenvectors is ``codes @ V / singular_values``, the
    singular values σ descending from 1. `n_components` counts the connected components of the graph.
    """

    directions: Array
    singular_values: Array
    n_components: int


def transfer_cut(codes: Sparse, masses: Array, landmarks: Array, n_clusters: int, n_vectors: int) -> TransferCut:
    """Compute normalised-cut eigenvectors of the graph between n samples and p landmarks by a p × p problem.

    The graph has the weights B = diag(masses) codes and the generalised eigenvectors (h, v) of its Laplacian, h on the
    samples and v on the landmarks. v solves W v = σ² D v for the graph W = Bᵀ D⁻¹ B = Tᵀ diag(masses) T among the
    landmarks, T = codes, D the degrees of W; h = T v / σ (Li, Wu, Chang: Segmentation using superpixels, CVPR 2012).

    A graph of more pieces than `n_clusters` says nothing about which pieces belong together: the smallest are first
    tied to their nearest neighbours by :func:`~subspaces.graphs.affinity.join_components`. `n_vectors` counts zero
    eigenvalues too; there is one vector per piece if there are more pieces.
    """
    roots = np.sqrt(masses.astype(np.float64))
    weighted = sparse.csr_array(
        (codes.data * np.repeat(roots, np.diff(codes.indptr)), codes.indices, codes.indptr), shape=codes.shape
    )
    W = sparse.csr_array(weighted.T @ weighted)
    if components(W)[0] > n_clusters:
        # a kernel that falls slowly: it must not vanish between the farthest pieces
        closeness = InverseSquare().fit(landmarks).gram(landmarks.astype(np.float64))
        W = join_components(W, from_dense(closeness), n_clusters)
    degrees = np.asarray(W.sum(axis=1)).ravel()[:, None]
    found = spectral_embedding(_stored_in_full(W), n_vectors)
    directions = np.divide(found.vectors, np.sqrt(degrees), out=np.zeros_like(found.vectors), where=degrees > 0)
    return TransferCut(directions, np.sqrt(np.clip(1 - found.eigenvalues, 0, None)), found.n_components)


def _stored_in_full(W: Sparse) -> Sparse:
    """Store the zeros of W, which sends it to LAPACK: 0.2 s for p = 1000 where Lanczos took 8 s on Covtype."""
    p = W.shape[0]
    if p > FULL_GRAPH_SIZE:
        return W
    columns = np.tile(np.arange(p, dtype=np.int32), p)
    return sparse.csr_array((W.toarray().ravel(), columns, np.arange(0, p * p + 1, p)), shape=(p, p))


@dataclass(frozen=True)
class CoarseIndex:
    """Search p representatives by √p groups of them (U-SPEC).

    `centres` are the group centres, `members` the representatives of each group; `around`, shape (p, K′ + 1), holds the
    nearest representatives of each one, itself included.
    """

    points: Array
    centres: Array
    members: list[Array]
    around: Array

    @classmethod
    def of(cls, points: Array, n_neighbors: int, seed: int) -> CoarseIndex:
        """Build the index for the search of `n_neighbors` nearest representatives."""
        p = len(points)
        centres = centroids(points, max(1, int(np.sqrt(p))), seed)
        group = nearest(points, centres)[0][:, 0]
        used = np.unique(group)  # a group without members could not answer
        members = [np.flatnonzero(group == g) for g in used]
        return cls(points, centres[used], members, nearest(points, points, min(p, CANDIDATES * n_neighbors + 1))[0])

    def search(self, X: Array, k: int) -> tuple[Array, Array]:
        """Return indices and squared distances of k near representatives of each row of X, nearest first.

        The nearest group centre, in that group the nearest representative, and among those around it the k nearest:
        about 2√p + 10k distances a sample instead of p.
        """
        group = nearest(X, self.centres)[0][:, 0]
        closest, _ = _search_by_group(X, group, self.members, self.points, 1)
        return _search_by_group(X, closest[:, 0], self.around, self.points, k)


def _search_by_group(
    X: Array, group: Array, candidates: list[Array] | Array, points: Array, k: int
) -> tuple[Array, Array]:
    """Find the k nearest of ``candidates[g]`` for each row of group g: one small search per group, not per row."""
    indices = np.empty((len(X), k), dtype=np.int32)
    distances = np.empty((len(X), k), dtype=X.dtype)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(candidates) + 1))
    for g in np.unique(group):
        rows = order[bounds[g] : bounds[g + 1]]
        found, distances[rows] = nearest(X[rows], points[candidates[g]], k)
        indices[rows] = candidates[g][found]
    return indices, distances


@dataclass(frozen=True)
class Landmarks:
    """Search the `n_neighbors` nearest landmarks of a sample, through `index` or among all."""

    points: Array
    n_neighbors: int
    index: CoarseIndex | None = None

    def search(self, X: Array) -> tuple[Array, Array]:
        """Return indices and squared distances of each row's landmarks, nearest first."""
        k = min(self.n_neighbors, len(self.points))
        return nearest(X, self.points, k) if self.index is None else self.index.search(X, k)


@dataclass(frozen=True)
class BipartiteModel:
    """Hold what LSC and U-SPEC learn; the embedding is the codes times `directions`, shape (p, k), with unit rows."""

    labels: Labels
    near: Landmarks
    bandwidth: float
    directions: Array
    cluster_centers: Array

    @property
    def landmarks(self) -> Array:
        """Return the landmarks as rows."""
        return self.near.points

    def label(self, X: Array) -> Labels:
        """Return the nearest centre in the embedding."""
        codes, _ = landmark_codes(*self.near.search(X), self.bandwidth, len(self.landmarks))
        return nearest(unit_rows(codes @ self.directions), self.cluster_centers)[0][:, 0].astype(np.intp)


def lsc(
    X: Array,
    *,
    n_clusters: int,
    n_landmarks: int,
    landmarks: str,
    n_neighbors: int,
    bandwidth: float | str,
    n_init: int,
    seed: int,
    stage: Listener = unwatched,
) -> BipartiteModel:
    """Cut the graph Z D⁻¹ Zᵀ, Z the codes over landmarks (:class:`~subspaces.LSC`)."""
    with stage("landmarks"):
        if landmarks == "kmeans":
            points = centroids(X, n_landmarks, seed, n_iter=5)  # steps of the authors' program
        else:
            points = np.asarray(X[sample_rows(len(X), n_landmarks, seed)])

    def directions(codes: Sparse, masses: Array) -> Array:
        cut = transfer_cut(codes, np.ones_like(masses), points, n_clusters, n_clusters + 1)
        # of several pieces no vector is constant: the first ones say which piece a sample is in
        kept = slice(1, None) if cut.n_components == 1 else slice(0, max(n_clusters, cut.n_components))
        vectors, values = cut.directions[:, kept], cut.singular_values[kept]
        return np.divide(vectors, values, out=np.zeros_like(vectors), where=values > _VANISHING)

    return _clustered(X, Landmarks(points, n_neighbors), directions, bandwidth, n_clusters, n_init, seed, stage)


def uspec(
    X: Array,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_neighbors: int,
    bandwidth: float | str,
    n_init: int,
    seed: int,
    stage: Listener = unwatched,
) -> BipartiteModel:
    """Find representatives in a subset, tie samples to near ones by a coarse index, and apply the transfer cut."""
    with stage("landmarks"):
        candidates = X[sample_rows(len(X), CANDIDATES * n_landmarks, seed)]
        points = centroids(candidates, n_landmarks, seed, n_iter=10)
        near = Landmarks(points, n_neighbors, CoarseIndex.of(points, min(n_neighbors, len(points)), seed))

    def directions(codes: Sparse, masses: Array) -> Array:
        return transfer_cut(codes, masses, points, n_clusters, n_clusters).directions

    return _clustered(X, near, directions, bandwidth, n_clusters, n_init, seed, stage)


def _clustered(
    X: Array,
    near: Landmarks,
    cut: Callable[[Sparse, Array], Array],
    bandwidth: float | str,
    n_clusters: int,
    n_init: int,
    seed: int,
    stage: Listener,
) -> BipartiteModel:
    """Compute the codes over the landmarks and the directions of the cut, then run k-means.

    The bandwidth "neighbors" is √2 times the mean distance between samples and their nearest landmarks (U-SPEC).
    """
    with stage("codes"):
        neighbours, squares = near.search(X)
        if bandwidth == "neighbors":
            sigma = float(np.sqrt(2) * np.sqrt(squares).mean(dtype=np.float64))
        else:
            sigma = resolve_bandwidth(squares, bandwidth)
        codes, masses = landmark_codes(neighbours, squares, sigma, len(near.points))
    with stage("cut"):
        directions = cut(codes, masses).astype(X.dtype)
    with stage("assign_labels"):
        labels, centers = cluster_rows(unit_rows(codes @ directions), n_clusters, n_init, seed)
    return BipartiteModel(labels, near, sigma, directions, centers)
