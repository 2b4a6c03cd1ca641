"""How long the edges of a graph are in the space of its points, and which points lie far from their neighbours."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.numerics.blocks import row_blocks
from subspaces.numerics.types import Array, Data, Sparse


def edge_lengths(W: Sparse, X: Data) -> Sparse:
    """The distance between the two points of each edge, where W has its weight."""
    edges = sparse.coo_array(W)
    length = np.empty(edges.nnz, dtype=X.dtype)
    for start, stop in row_blocks(edges.nnz, 3 * X.shape[1] * X.dtype.itemsize):
        difference = X[edges.row[start:stop]] - X[edges.col[start:stop]]
        square = difference * difference
        length[start:stop] = np.sqrt(np.asarray(square.sum(axis=1)).ravel())
    return sparse.coo_array((length, (edges.row, edges.col)), shape=W.shape)


def edge_distances(W: Sparse, X: Data) -> Array:
    """Mean distance of each point to the points it is tied to, weighted by the ties; NaN without ties."""
    edges, lengths, n = sparse.coo_array(W), edge_lengths(W, X), W.shape[0]
    with np.errstate(invalid="ignore"):
        return np.bincount(edges.row, edges.data * lengths.data, minlength=n) / np.bincount(edges.row, edges.data, n)


def far_points(distance: Array) -> Array:
    """Points beyond Tukey's fence on a log scale: more than 1.5 times the range of the quartiles above the third."""
    known = distance > 0  # also leaves out NaN; copies of a point have no distance to judge by
    if not known.any():
        return known
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.log(distance)
    low, high = np.quantile(size[known], [0.25, 0.75])
    return np.asarray(known & (size > high + 1.5 * (high - low)))
