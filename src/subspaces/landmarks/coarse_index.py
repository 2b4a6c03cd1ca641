"""Near representatives of a point without looking at all p of them: about 2√p + 10k distances instead of p.

Representatives fall into √p groups. A point goes to the nearest group, in it to the nearest representative, and looks
among those around that one (U-SPEC's search).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subspaces.numerics.centroids import centroids, nearest
from subspaces.numerics.types import Array

CANDIDATES = 10
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
    around, _ = nearest(points, points, min(p, CANDIDATES * n_neighbors + 1))
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
