"""U-SPEC: representatives chosen from a sample, found through a coarse index, and the transfer cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from subspaces.estimators.lsc import BipartiteClusterer, transfer_cut
from subspaces.numerics.centroids import centroids, nearest, sample_rows
from subspaces.numerics.types import Array, Sparse

_CANDIDATES = 10
"""Points drawn per representative, and neighbours of a representative looked at per neighbour wanted (paper: both)."""


@dataclass(frozen=True)
class CoarseIndex:
    """Two levels over p representatives: √p groups of them, and for each representative those around it.

    Attributes
    ----------
    points : array of shape (p, m)
    centres : centre of each group
    members : the representatives of each group
    around : array of shape (p, K′ + 1), the nearest representatives of each one, itself included
    """

    points: Array
    centres: Array
    members: list[Array]
    around: Array


def coarse_index(points: Array, n_neighbors: int, seed: int) -> CoarseIndex:
    """Index for the search of `n_neighbors` nearest representatives."""
    p = len(points)
    centres = centroids(points, max(1, int(np.sqrt(p))), seed)
    group = nearest(points, centres)[0][:, 0]
    used = np.unique(group)  # a group without members could not answer
    members = [np.flatnonzero(group == g) for g in used]
    around, _ = nearest(points, points, min(p, _CANDIDATES * n_neighbors + 1))
    return CoarseIndex(points, centres[used], members, around)


def approximate_nearest(X: Array, index: CoarseIndex, k: int) -> tuple[Array, Array]:
    """Indices and squared distances of k near representatives of each row of X, nearest first.

    The nearest group centre, in that group the nearest representative, and among those around it the k nearest:
    about 2√p + 10k distances a point instead of p.
    """
    group = nearest(X, index.centres)[0][:, 0]
    closest, _ = _search_by_group(X, group, index.members, index.points, 1)
    return _search_by_group(X, closest[:, 0], index.around, index.points, k)


def _search_by_group(
    X: Array, group: Array, candidates: list[Array] | Array, points: Array, k: int
) -> tuple[Array, Array]:
    """The k nearest of ``candidates[g]`` for each row of group g: one small search per group, not per row."""
    indices = np.empty((len(X), k), dtype=np.int32)
    distances = np.empty((len(X), k), dtype=X.dtype)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(candidates) + 1))
    for g in np.unique(group):
        rows = order[bounds[g] : bounds[g + 1]]
        found, distances[rows] = nearest(X[rows], points[candidates[g]], k)
        indices[rows] = candidates[g][found]
    return indices, distances


@dataclass(eq=False, repr=False, kw_only=True)
class USPEC(BipartiteClusterer):
    """Ultra-scalable spectral clustering (U-SPEC): near representatives found without looking at all of them.

    10p points are drawn and k-means makes p representatives of them; each point is tied to `n_neighbors` near ones,
    found through √p groups; the bipartite graph is cut by a p × p eigenproblem.

    Parameters
    ----------
    n_clusters : int, default=8
    n_landmarks : int, default=1000
        p, number of representatives; with more than there are points every point is one.
    n_neighbors : int, default=5
        Representatives each point is tied to.
    bandwidth : float or None
        σ of the weights exp(−d²/σ²); None takes √2 times the mean distance between points and their representatives,
        as the paper.
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
    >>> from subspaces.estimators.uspec import USPEC
    >>> angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> ring = np.c_[np.cos(angle), np.sin(angle)]
    >>> labels = USPEC(n_clusters=2, n_landmarks=100).fit_predict(np.vstack([ring, 3 * ring]))
    >>> len(set(labels[:300])), len(set(labels[300:]))
    (1, 1)
    """

    _state: ClassVar[tuple[str, ...]] = (*BipartiteClusterer._state, "_index")
    cost: ClassVar[str] = "O(n √p m), no n × p array"
    reference: ClassVar[str] = (
        "Huang, Wang, Wu, Lai, Kwoh: Ultra-scalable spectral clustering and ensemble clustering, IEEE TKDE 32 (2020)"
    )

    def _choose(self, X: Array) -> Array:
        candidates = X[sample_rows(len(X), _CANDIDATES * self.n_landmarks, self._seed)]
        points = centroids(candidates, self.n_landmarks, self._seed, n_iter=10)
        self._index = coarse_index(points, min(self.n_neighbors, len(points)), self._seed)
        return points

    def _search(self, X: Array) -> tuple[Array, Array]:
        return approximate_nearest(X, self._index, min(self.n_neighbors, len(self.landmarks_)))

    def _cut(self, codes: Sparse, masses: Array) -> Array:
        return transfer_cut(codes, masses, self.landmarks_, self.n_clusters, self.n_clusters).directions
