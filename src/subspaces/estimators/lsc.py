"""Graphs between points and a few landmarks: what LSC and U-SPEC share, and LSC itself.

Each point is tied to its nearest landmarks only, so the graph is bipartite and sparse. Its eigenvectors come from a
graph among the p landmarks alone (:func:`transfer_cut`) and are carried back to the points by one sparse product.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

from subspaces.embedding.spectral import FULL_GRAPH_SIZE, spectral_embedding, unit_rows
from subspaces.estimators.base import POSITIVE
from subspaces.estimators.large import LargeClusterer
from subspaces.graphs.affinity import components, join_components
from subspaces.kernels import InverseSquare
from subspaces.numerics import memory
from subspaces.numerics.centroids import centroids, cluster_rows, nearest, sample_rows
from subspaces.numerics.distances import resolve_bandwidth
from subspaces.numerics.types import Array, Labels, Sparse
from subspaces.representation.coefficients import from_dense

_COUNT = Interval(Integral, 1, None, closed="left")
_VANISHING = 1e-6  # singular values below are rounding: their vectors have no part on the points


@dataclass(eq=False, repr=False, kw_only=True)
class LandmarkClusterer(LargeClusterer):
    """Base of the methods that look at all points through `n_landmarks` representatives."""

    n_landmarks: int = 1000
    n_init: int = 10

    _squares: ClassVar[float] = 2
    """p × p arrays in float64 that a fit holds at its peak. Measured (``benchmarks/memory.py``)."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LargeClusterer._parameter_constraints,
        "n_landmarks": [_COUNT],
        "n_init": [_COUNT],
    }

    def _check_landmarks(self, X: Array) -> None:
        if self.n_landmarks < self.n_clusters:
            raise ValueError(
                f"n_landmarks={self.n_landmarks} must not be less than n_clusters={self.n_clusters}: "
                "every cluster needs a landmark. Take more landmarks."
            )
        p = min(int(self.n_landmarks), len(X))
        memory.require(
            int(self._squares * 8 * p**2) + self._work_bytes(len(X), p, X.itemsize),
            f"the {p} × {p} matrix of {type(self).__name__}",
            "Take fewer landmarks (n_landmarks).",
        )

    def _work_bytes(self, n: int, p: int, itemsize: int) -> int:
        """Bytes that a fit takes besides, whatever grows with n included."""
        return 4 * n * int(self.n_clusters) * itemsize

    def _length(self, value: float) -> float:
        """A length the user gave, in the units of the scaled points."""
        return float(np.ldexp(value, -self._scaling.exponent))


def landmark_codes(
    neighbours: Array, squared_distances: Array, bandwidth: float, n_landmarks: int
) -> tuple[Sparse, Array]:
    """Gaussian weights of each point's nearest landmarks, as rows that sum to 1, and what they summed to before.

    With b_ij = exp(−d²/σ²) the codes are T = D⁻¹B and the masses d_i = Σ_j b_ij. A point so far out that all its b_ij
    vanish keeps its code: weights are taken relative to the nearest landmark, only the mass becomes 0.

    Parameters
    ----------
    neighbours, squared_distances : arrays of shape (n, k)
    bandwidth : σ; 0 weighs all neighbours alike

    Returns
    -------
    codes : CSR of shape (n, n_landmarks)
    masses : array of shape (n,)
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
    """Eigenvectors of a bipartite graph, from the side of its landmarks.

    Attributes
    ----------
    directions : array V of shape (p, k); the points' part of the eigenvectors is ``codes @ V / singular_values``
    singular_values : σ of each, descending from 1
    n_components : connected components of the graph
    """

    directions: Array
    singular_values: Array
    n_components: int


def transfer_cut(codes: Sparse, masses: Array, landmarks: Array, n_clusters: int, n_vectors: int) -> TransferCut:
    """Normalised-cut eigenvectors of the graph between n points and p landmarks by a p × p problem.

    The graph has the weights B = diag(masses) codes and the generalised eigenvectors (h, v) of its Laplacian, h on the
    points and v on the landmarks. v solves W v = σ² D v for the graph W = Bᵀ D⁻¹ B = Tᵀ diag(masses) T among the
    landmarks, T = codes, D the degrees of W; h = T v / σ (Li, Wu, Chang: Segmentation using superpixels, CVPR 2012).

    A graph of more pieces than clusters says nothing about which pieces belong together: the smallest are first tied
    to their nearest neighbours by :func:`~subspaces.graphs.affinity.join_components`.

    Parameters
    ----------
    codes, masses : as :func:`landmark_codes` returns them
    landmarks : array of shape (p, m)
    n_clusters : pieces the graph may have
    n_vectors : number k of eigenvectors, zero eigenvalues included; one per piece if there are more pieces
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
    """W with its zeros stored, which sends it to LAPACK: 0.2 s for p = 1000 where Lanczos took 8 s on Covtype."""
    p = W.shape[0]
    if p > FULL_GRAPH_SIZE:
        return W
    columns = np.tile(np.arange(p, dtype=np.int32), p)
    return sparse.csr_array((W.toarray().ravel(), columns, np.arange(0, p * p + 1, p)), shape=(p, p))


@dataclass(eq=False, repr=False, kw_only=True)
class BipartiteClusterer(LandmarkClusterer):
    """Base of LSC and U-SPEC: landmarks, codes over the nearest of them, transfer cut, k-means."""

    n_neighbors: int = 5
    bandwidth: float | None = None

    _squares: ClassVar[float] = 5
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LandmarkClusterer._parameter_constraints,
        "n_neighbors": [_COUNT],
        "bandwidth": [POSITIVE, None],
    }
    _state: ClassVar[tuple[str, ...]] = ("_directions",)

    def _cluster(self, X: Array) -> Labels:
        self._check_landmarks(X)
        with self._timed("landmarks"):
            self.landmarks_ = self._choose(X)
        with self._timed("codes"):
            neighbours, distances = self._search(X)
            self.bandwidth_ = self._settled_bandwidth(distances)
            codes, masses = landmark_codes(neighbours, distances, self.bandwidth_, len(self.landmarks_))
        with self._timed("cut"):
            self._directions = self._cut(codes, masses).astype(X.dtype)
        with self._timed("partition"):
            labels, self.cluster_centers_ = cluster_rows(
                unit_rows(codes @ self._directions), self.n_clusters, self.n_init, self._seed
            )
        return labels

    def _work_bytes(self, n: int, p: int, itemsize: int) -> int:
        return super()._work_bytes(n, p, itemsize) + 3 * n * int(self.n_neighbors) * (itemsize + 4)

    def _label_new(self, X: Array) -> Labels:
        codes, _ = landmark_codes(*self._search(X), self.bandwidth_, len(self.landmarks_))
        return nearest(unit_rows(codes @ self._directions), self.cluster_centers_)[0][:, 0].astype(np.intp)

    def _choose(self, X: Array) -> Array:
        raise NotImplementedError

    def _search(self, X: Array) -> tuple[Array, Array]:
        return nearest(X, self.landmarks_, min(self.n_neighbors, len(self.landmarks_)))

    def _cut(self, codes: Sparse, masses: Array) -> Array:
        raise NotImplementedError

    def _settled_bandwidth(self, squared_distances: Array) -> float:
        if self.bandwidth is not None:
            return resolve_bandwidth(squared_distances, self._length(self.bandwidth))
        return float(np.sqrt(2) * np.sqrt(squared_distances).mean(dtype=np.float64))


@dataclass(eq=False, repr=False, kw_only=True)
class LSC(BipartiteClusterer):
    """Landmark-based spectral clustering (LSC): points coded over their few nearest landmarks.

    With Z the codes (rows sum to 1) the graph is Z D⁻¹ Zᵀ; its eigenvectors are the left singular vectors of Z D^(−½),
    which come from p × p. The first one is constant and left out, as in the authors' program.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p; with more than there are points every point is one.
    landmarks : {"kmeans", "random"}
        Centroids of k-means (LSC-K) or points drawn at random (LSC-R).
    n_neighbors : int, default=5
        Landmarks each point is coded over.
    bandwidth : float or None
        σ of the weights exp(−d²/σ²); None takes √2 times the mean distance between points and their neighbours.
    n_init : int, default=10
        Starts of the final k-means.
    scaling, random_state
        As in :class:`~subspaces.KTRR`.

    Attributes
    ----------
    labels_, n_clusters_, timings_
    landmarks_ : array of shape (at most p, m), as scaled
    bandwidth_ : σ
    cluster_centers_ : centres of the embedded points

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.estimators.lsc import LSC
    >>> angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = LSC(n_clusters=2, n_landmarks=100).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:300])), len(set(labels[300:]))
    (1, 1)
    """

    landmarks: str = "kmeans"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BipartiteClusterer._parameter_constraints,
        "landmarks": [StrOptions({"kmeans", "random"})],
    }
    cost: ClassVar[str] = "O(n p m), no n × p array"
    reference: ClassVar[str] = (
        "Chen, Cai: Large scale spectral clustering with landmark-based representation, AAAI 2011"
    )

    def _choose(self, X: Array) -> Array:
        if self.landmarks == "kmeans":
            return centroids(X, self.n_landmarks, self._seed, n_iter=5)  # steps of the authors' program
        return np.asarray(X[sample_rows(len(X), self.n_landmarks, self._seed)])

    def _cut(self, codes: Sparse, masses: Array) -> Array:
        cut = transfer_cut(codes, np.ones_like(masses), self.landmarks_, self.n_clusters, self.n_clusters + 1)
        # of several pieces no vector is constant: the first ones say which piece a point is in
        kept = slice(1, None) if cut.n_components == 1 else slice(0, max(self.n_clusters, cut.n_components))
        singular_values = cut.singular_values[kept]
        return np.divide(
            cut.directions[:, kept],
            singular_values,
            out=np.zeros_like(cut.directions[:, kept]),
            where=singular_values > _VANISHING,
        )
