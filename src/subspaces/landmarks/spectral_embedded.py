"""Spectral embedded clustering (SEC): an embedding bound to be nearly linear, so that new points have one too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, solve_triangular
from scipy.sparse.linalg import LinearOperator

from subspaces.spectral.embedding import FULL_GRAPH_SIZE
from subspaces.utils.centroids import cluster_rows, nearest, sample_rows
from subspaces.utils.decompositions import block_pairs, cholesky, lanczos, largest_eigenpairs
from subspaces.utils.distances import nearest_neighbors
from subspaces.utils.ordering import hash_rows, one_label_per_copy
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels, Sparse

_DENSE_SIZE = 2000
"""Up to so many points the eigenvectors come from LAPACK."""


@dataclass(frozen=True)
class LinearEmbedding:
    """Embedding F of the points and the map f(x) = Wᵀ(x − mean) + b that approximates it.

    Attributes
    ----------
    vectors : F, array of shape (n, k) with orthonormal columns
    weights : W, array of shape (m, k)
    mean, offset : mean of the points, b
    """

    vectors: Array
    weights: Array
    mean: Array
    offset: Array

    def __call__(self, X: Array) -> Array:
        """Embed points by the linear map."""
        mapped: Array = X @ self.weights.astype(X.dtype)
        mapped += (self.offset - self.mean @ self.weights).astype(X.dtype)
        return mapped


def self_tuned_graph(X: Array, n_neighbors: int) -> Sparse:
    """W_ij = exp(−d_ij²/(s_i s_j)) if one of the two points is among the `n_neighbors` nearest of the other.

    s_i is the distance of point i to the last of its neighbours (Zelnik-Manor, Perona 2004); the mean of all s where
    point i has so many copies that its own is 0.
    """
    n = len(X)
    n_neighbors = min(n_neighbors, n - 1)
    distances, neighbours = nearest_neighbors(X, n_neighbors)
    scales = distances[:, -1].astype(np.float64)
    scales[scales == 0] = scales.mean() or 1.0
    weights = np.exp(-(distances**2) / (scales[:, None] * scales[neighbours]))
    W = sparse.csr_array(
        (weights.ravel(), neighbours.ravel(), np.arange(0, weights.size + 1, n_neighbors)), shape=(n, n)
    )
    return sparse.csr_array(W.maximum(W.T))


def spectral_embedded(X: Array, W: Sparse, n_vectors: int, error_weight: float, reg: float) -> LinearEmbedding:
    """Minimise tr(FᵀLF) + μ (‖X W + 1bᵀ − F‖² + γ‖W‖²) over F with FᵀF = I, W and b.

    L = I − S is the normalised Laplacian of the graph, S = D^(−½) W D^(−½). For given F the map is a ridge regression;
    put back, F are the smallest eigenvectors of L + μ (H − B), that is the largest of S + μ (11ᵀ/n + B), with
    B = X_c (X_cᵀX_c + γI)⁻¹ X_cᵀ = Q Qᵀ: sparse plus rank m + 1.

    Parameters
    ----------
    X : array of shape (n, m)
    W : symmetric graph, CSR of shape (n, n)
    n_vectors : columns of F
    error_weight : μ; 0 is the ordinary spectral embedding, ∞ that of the ridge regression alone (principal components)
    reg : γ
    """
    n, m = X.shape
    mean = X.mean(axis=0, dtype=np.float64)
    centred = X.astype(np.float64) - mean
    factor, _ = cholesky(centred.T @ centred + reg * np.eye(m))
    Q = solve_triangular(factor, centred.T, lower=True, check_finite=False).T
    degrees = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    roots = np.sqrt(np.divide(1, degrees, out=np.zeros(n), where=degrees > 0))
    S = sparse.diags_array(roots) @ W.astype(np.float64) @ sparse.diags_array(roots)
    share = 1 / (1 + error_weight)  # the same eigenvectors for numbers of moderate size
    F = _leading_vectors(S, Q, share, n_vectors)
    weights = solve_triangular(factor, Q.T @ F, lower=True, trans="T", check_finite=False)
    return LinearEmbedding(F, weights, mean, F.mean(axis=0))


def _leading_vectors(S: Sparse, Q: Array, share: float, k: int) -> Array:
    """Eigenvectors of share S + (1 − share)(QQᵀ + 11ᵀ/n) for its k largest eigenvalues."""
    n = len(Q)

    def product(v: Array) -> Array:
        out: Array = share * (S @ v) + (1 - share) * (Q @ (Q.T @ v) + v.mean(axis=0))
        return out

    operator = LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    if n > max(_DENSE_SIZE, 4 * k):
        try:
            return lanczos(operator, k, which="LA", ncv=min(n, max(3 * k, 60)), tol=1e-9)[1]
        except LinAlgError:
            if n > FULL_GRAPH_SIZE:
                return block_pairs(operator, k, largest=True, maxiter=500)[1]
    M = S.toarray() * share
    M += (1 - share) * (Q @ Q.T + 1 / n)
    return largest_eigenpairs(M, k)[1]


@dataclass(frozen=True)
class SpectralEmbeddedModel:
    """What SEC learns; `rows` are the landmarks, whose labels are those of their embedding, the others' of the map."""

    labels: Labels
    rows: Labels
    penalty: float
    embedding_map: LinearEmbedding
    cluster_centers: Array

    def label(self, X: Array) -> Labels:
        """The nearest centre among the images."""
        return _nearest_image(X, self.embedding_map, self.cluster_centers)


def sec(
    X: Array,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_neighbors: int = 5,
    error_weight: float = 1.0,
    reg: float = 0.01,
    n_init: int = 10,
    seed: int = 0,
    stage: Listener = unwatched,
) -> SpectralEmbeddedModel:
    """Embed random landmarks together with a linear map, whose γ is `reg` times the mean diagonal entry of X_cᵀX_c."""
    rows = sample_rows(len(X), n_landmarks, seed)
    sample = X[rows]
    with stage("embedding"):
        W = self_tuned_graph(sample, n_neighbors)
        penalty = reg * len(sample) * float(sample.var(axis=0, dtype=np.float64).mean())
        embedding = spectral_embedded(sample, W, n_clusters, error_weight, penalty)
    with stage("partition"):
        found, _ = cluster_rows(embedding.vectors, n_clusters, n_init, seed)
        found = one_label_per_copy(found, hash_rows(sample))
        # of the mapped landmarks, not of F: the ridge draws all images towards the mean
        images = embedding(sample)
        centers = np.array([images[found == label].mean(axis=0) for label in range(found.max() + 1)])
    with stage("extension"):
        labels = _nearest_image(X, embedding, centers)
        labels[rows] = found
    return SpectralEmbeddedModel(labels, rows, penalty, embedding, centers)


def _nearest_image(X: Array, embedding: LinearEmbedding, centers: Array) -> Labels:
    return nearest(embedding(X), centers)[0][:, 0].astype(np.intp)
