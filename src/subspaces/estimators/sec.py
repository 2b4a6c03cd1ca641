"""SEC: a spectral embedding that is bound to be nearly linear in the points, so that new points have one too."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, solve_triangular
from scipy.sparse.linalg import LinearOperator
from sklearn.utils._param_validation import Interval

from subspaces.embedding.spectral import FULL_GRAPH_SIZE
from subspaces.engine.validation import one_label_per_copy
from subspaces.estimators.base import POSITIVE
from subspaces.estimators.lsc import LandmarkClusterer
from subspaces.new_points import fingerprints
from subspaces.numerics.centroids import cluster_rows, nearest, sample_rows
from subspaces.numerics.decompositions import block_pairs, cholesky, lanczos, largest_eigenpairs
from subspaces.numerics.neighbors import nearest_neighbors
from subspaces.numerics.types import Array, Labels, Sparse

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


def spectral_embedded(X: Array, W: Sparse, n_vectors: int, fidelity: float, reg: float) -> LinearEmbedding:
    """Minimise tr(FᵀLF) + μ (‖X W + 1bᵀ − F‖² + γ‖W‖²) over F with FᵀF = I, W and b.

    L = I − S is the normalised Laplacian of the graph, S = D^(−½) W D^(−½). For given F the map is a ridge regression;
    put back, F are the smallest eigenvectors of L + μ (H − B), that is the largest of S + μ (11ᵀ/n + B), with
    B = X_c (X_cᵀX_c + γI)⁻¹ X_cᵀ = Q Qᵀ: sparse plus rank m + 1.

    Parameters
    ----------
    X : array of shape (n, m)
    W : symmetric graph, CSR of shape (n, n)
    n_vectors : columns of F
    fidelity : μ; 0 is the ordinary spectral embedding, ∞ that of the ridge regression alone (principal components)
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
    share = 1 / (1 + fidelity)  # the same eigenvectors for numbers of moderate size
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


@dataclass(eq=False, repr=False, kw_only=True)
class SEC(LandmarkClusterer):
    """Spectral embedded clustering (SEC): a sample is embedded, all other points follow by a linear map.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, points drawn at random whose graph is cut; as many as there are points is the method without sampling.
    n_neighbors : int, default=5
        Neighbours each landmark is joined to.
    fidelity : float, default=1
        μ, how much the linear map counts against the graph.
    reg : float, default=0.01
        Ridge penalty of the map: γ is `reg` times the mean diagonal entry of X_cᵀX_c, so that units do not matter.
    n_init : int, default=10
        Starts of the final k-means.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : indices of the landmarks
    penalty_ : γ
    embedding_map_ : the map and the landmarks' embedding, a :class:`LinearEmbedding`
    cluster_centers_ : centres of the clusters among the mapped landmarks

    Notes
    -----
    ``labels_`` of the landmarks come from their embedding, as published; ``predict`` knows the map only and may
    disagree there.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.sec import SEC
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) + np.repeat([[0, 0], [9, 9]], 250, axis=0)
    >>> labels = SEC(n_clusters=2, n_landmarks=50).fit_predict(X)
    >>> len(set(labels[:250])), len(set(labels[250:]))
    (1, 1)
    """

    n_neighbors: int = 5
    fidelity: float = 1.0
    reg: float = 0.01

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LandmarkClusterer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "fidelity": [POSITIVE],
        "reg": [POSITIVE],
    }
    cost: ClassVar[str] = "O(p³ + p m²) and one product, O(n m n_clusters)"
    reference: ClassVar[str] = (
        "Nie, Zeng, Tsang, Xu, Zhang: Spectral embedded clustering, IEEE Trans. Neural Networks 22 (2011)"
    )

    def _cluster(self, X: Array) -> Labels:
        self._check_landmarks(X)
        rows = sample_rows(len(X), self.n_landmarks, self._seed)
        sample, self.landmarks_ = X[rows], self._order[rows]
        with self._timed("embedding"):
            W = self_tuned_graph(sample, self.n_neighbors)
            self.penalty_ = self.reg * len(sample) * float(sample.var(axis=0, dtype=np.float64).mean())
            self.embedding_map_ = spectral_embedded(sample, W, self.n_clusters, self.fidelity, self.penalty_)
        with self._timed("partition"):
            found, _ = cluster_rows(self.embedding_map_.vectors, self.n_clusters, self.n_init, self._seed)
            found = one_label_per_copy(found, fingerprints(sample))
            # of the mapped landmarks, not of F: the ridge draws all images towards the mean
            images = self.embedding_map_(sample)
            self.cluster_centers_ = np.array([images[found == label].mean(axis=0) for label in range(found.max() + 1)])
        with self._timed("extension"):
            labels = self._label_new(X)
            labels[rows] = found
        return labels

    def _label_new(self, X: Array) -> Labels:
        return nearest(self.embedding_map_(X), self.cluster_centers_)[0][:, 0].astype(np.intp)
