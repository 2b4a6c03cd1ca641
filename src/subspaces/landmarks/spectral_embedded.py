"""Spectral embedded clustering (SEC): an embedding bound to be nearly linear, so that new samples have one too."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, solve_triangular
from scipy.sparse.linalg import LinearOperator

from subspaces.graphs.local import self_tuned_graph
from subspaces.spectral.embedding import FULL_GRAPH_SIZE
from subspaces.utils.centroids import cluster_rows, nearest, sample_rows
from subspaces.utils.decompositions import block_pairs, cholesky, lanczos, largest_eigenpairs
from subspaces.utils.ordering import hash_rows, label_of_most_copies
from subspaces.utils.progress import Listener, unwatched
from subspaces.utils.types import Array, Labels, Sparse

_DENSE_SIZE = 2000  # up to so many samples the eigenvectors come from LAPACK


@dataclass(frozen=True)
class LinearEmbedding:
    """Hold the embedding F of the samples and the map f(x) = Wᵀ(x − mean) + b that approximates it.

    `vectors` F has the shape (n, k) and orthonormal columns, `weights` W the shape (m, k); `offset` is b.
    """

    vectors: Array
    weights: Array
    mean: Array
    offset: Array

    def __call__(self, X: Array) -> Array:
        """Embed samples by the linear map."""
        mapped: Array = X @ self.weights.astype(X.dtype)
        mapped += (self.offset - self.mean @ self.weights).astype(X.dtype)
        return mapped


def spectral_embedded(X: Array, W: Sparse, n_vectors: int, error_weight: float, reg: float) -> LinearEmbedding:
    """Minimise tr(FᵀLF) + μ (‖X W + 1bᵀ − F‖² + γ‖W‖²) over F with FᵀF = I, W and b (Nie et al. 2011).

    L = I − S is the normalised Laplacian of the graph, S = D^(−½) W D^(−½). For given F the map is a ridge regression;
    put back, F are the smallest eigenvectors of L + μ (H − B), that is the largest of S + μ (11ᵀ/n + B), with
    B = X_c (X_cᵀX_c + γI)⁻¹ X_cᵀ = Q Qᵀ: sparse plus rank m + 1.

    `error_weight` is μ: 0 gives the ordinary spectral embedding, ∞ that of the ridge regression alone (principal
    components). `reg` is γ. W is a symmetric sparse graph; F has `n_vectors` columns.
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
    """Compute eigenvectors of share S + (1 − share)(QQᵀ + 11ᵀ/n) for its k largest eigenvalues."""
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
                return block_pairs(operator, k)[1]
    M = S.toarray() * share
    M += (1 - share) * (Q @ Q.T + 1 / n)
    return largest_eigenpairs(M, k)[1]


@dataclass(frozen=True)
class SpectralEmbeddedModel:
    """Hold what SEC learns; labels of the landmarks `rows` come from their embedding, those of others from the map."""

    labels: Labels
    rows: Labels
    penalty: float
    embedding_map: LinearEmbedding
    cluster_centers: Array

    def label(self, X: Array) -> Labels:
        """Return the nearest centre among the images."""
        return nearest(self.embedding_map(X), self.cluster_centers)[0][:, 0].astype(np.intp)


def sec(
    X: Array,
    *,
    n_clusters: int,
    n_landmarks: int,
    n_neighbors: int,
    error_weight: float,
    reg: float,
    n_init: int,
    seed: int,
    stage: Listener = unwatched,
) -> SpectralEmbeddedModel:
    """Embed random landmarks together with a linear map, whose γ is `reg` times the mean diagonal entry of X_cᵀX_c."""
    rows = sample_rows(len(X), n_landmarks, seed)
    subset = X[rows]
    with stage("embedding"):
        W = self_tuned_graph(subset, min(n_neighbors, len(subset) - 1), scale_copies=True)
        penalty = reg * len(subset) * float(subset.var(axis=0, dtype=np.float64).mean())
        embedding = spectral_embedded(subset, W, n_clusters, error_weight, penalty)
    with stage("assign_labels"):
        found, _ = cluster_rows(embedding.vectors, n_clusters, n_init, seed)
        found = np.unique(label_of_most_copies(found, hash_rows(subset)), return_inverse=True)[1].astype(np.intp)
        # of the mapped landmarks, not of F: the ridge draws all images towards the mean
        images = embedding(subset)
        centers = np.array([images[found == label].mean(axis=0) for label in range(found.max() + 1)])
    model = SpectralEmbeddedModel(found, rows, penalty, embedding, centers)
    with stage("extension"):
        labels = model.label(X)
        labels[rows] = found
    return replace(model, labels=labels)
