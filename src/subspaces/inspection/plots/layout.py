"""Two coordinates for each row of a spectral embedding: a plane through it, or a map with a place for each cluster.

The embedding of k well separated clusters is a simplex: each cluster sits in its own corner, all corners equally far
apart. A plane (``"pca"``) shows three corners faithfully and piles the others up in the middle. The map (``"map"``)
gives each cluster its own place instead: similar clusters are neighbours as far as the plane allows, a cluster's
samples lie in a disc with the most typical ones in the middle, and a sample that is drawn to another cluster more than
its own cluster is, is moved towards it. Both take milliseconds; distances between discs mean little, being between two
discs means doubt.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from subspaces.utils.decompositions import eigh
from subspaces.utils.types import Array, Labels

METHODS = ("auto", "pca", "map")
CORNERS = 3
"""Clusters up to which a plane shows everything, and ``"auto"`` takes it."""

_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
_TINY = np.finfo(np.float64).tiny


def plane(embedding: Array, labels: Labels, method: str = "auto") -> tuple[Array, Array, str]:
    """Return coordinates of the samples (n, 2), of the clusters (k, 2), and the method used."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "map" or (method == "auto" and int(labels.max()) >= CORNERS):
        return *cluster_map(embedding, labels), "map"
    points = principal_plane(embedding)
    return points, cluster_means(points, labels), "pca"


def principal_plane(Y: Array) -> Array:
    """Project on the two directions of largest variance, signs fixed; a missing second one is zero."""
    centred = Y - Y.mean(axis=0)
    values, vectors = eigh(centred.T @ centred)
    axes = vectors[:, np.argsort(-values, kind="stable")[:2]]
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1, 1)
    out = np.zeros((len(Y), 2))
    out[:, : axes.shape[1]] = centred @ axes
    return out


def cluster_means(Y: Array, labels: Labels) -> Array:
    """Return the mean of each cluster's rows, (k, m)."""
    sums = np.stack([np.bincount(labels, weights=column) for column in Y.T], axis=1)
    means: Array = sums / np.maximum(np.bincount(labels), 1)[:, None]
    return means


def typicality(Y: Array, labels: Labels) -> Array:
    """Return the cosine of each row with its cluster's mean row: near 1 for a typical member."""
    means = cluster_means(Y, labels)
    dots = np.einsum("ij,ij->i", Y, means[labels])
    lengths = np.linalg.norm(Y, axis=1) * np.linalg.norm(means, axis=1)[labels]
    return np.divide(dots, lengths, out=np.zeros(len(Y)), where=lengths > 0)


def ranks_within(labels: Labels, score: Array) -> Labels:
    """Return the rank of each sample within its cluster, 0 for the largest score."""
    order = np.lexsort((-score, labels))
    first = np.searchsorted(labels[order], np.arange(int(labels.max()) + 1))
    ranks = np.empty(len(labels), dtype=np.intp)
    ranks[order] = np.arange(len(labels)) - first[labels[order]]
    return ranks


def cluster_map(Y: Array, labels: Labels) -> tuple[Array, Array]:
    """Return coordinates of the samples and of the clusters on the map (see the module)."""
    means = cluster_means(Y, labels)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), _TINY)
    sizes = np.bincount(labels)
    # room for the usual disc; one that is much larger than the others may touch its neighbours
    room = max(2.6 * float(np.sqrt(np.median(sizes))), 1.6 * float(np.sqrt(sizes.max())))
    places = _places(means) * room
    rank = ranks_within(labels, typicality(Y, labels))
    radius, angle = np.sqrt(rank + 0.5), _GOLDEN_ANGLE * rank  # a sunflower: equal room for every sample
    discs = places[labels] + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    # rows and means have unit length and the means are nearly orthogonal, so that the squared cosines are shares
    shares = np.square(np.clip(Y @ means.T, 0, None))
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), _TINY)
    pulled = shares @ places
    # what draws most of a cluster would only carry it away from its place
    usual = np.stack([np.median(pulled[labels == cluster], axis=0) for cluster in range(len(places))])
    return discs + pulled - usual[labels], places


def _places(means: Array) -> Array:
    """Return a place on a honeycomb for each cluster, similar clusters near each other.

    Clusters go where classical scaling of their distances puts them, matched to the nearest free places.
    """
    k = len(means)
    wished = principal_plane(means)
    wished /= max(float(np.sqrt(np.square(wished).sum(axis=1).mean())), _TINY)
    side = int(np.ceil(np.sqrt(k))) + 1
    row, column = np.divmod(np.arange(side * side), side)
    grid = np.stack([column + 0.5 * (row % 2), row * np.sqrt(3) / 2], axis=1)
    grid -= grid.mean(axis=0)
    inner = grid[np.argsort(np.square(grid).sum(axis=1), kind="stable")[:k]]
    inner -= inner.mean(axis=0)
    spread = max(float(np.sqrt(np.square(inner).sum(axis=1).mean())), _TINY)
    cost = np.square(wished[:, None] * spread - inner).sum(axis=2)
    return inner[linear_sum_assignment(cost)[1]]
