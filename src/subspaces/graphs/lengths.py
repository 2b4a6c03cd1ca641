"""How long the edges of a graph are in the space of its points, and which points lie far from their neighbours."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.utils.blocks import row_blocks
from subspaces.utils.types import Array, Data, Sparse


def edge_lengths(W: Sparse, X: Data, others: Data | None = None) -> Sparse:
    """The distance between the two points of each edge, where W has its weight; its columns may be other points."""
    edges, others = sparse.coo_array(W), X if others is None else others
    length = np.empty(edges.nnz, dtype=X.dtype)
    for start, stop in row_blocks(edges.nnz, 3 * X.shape[1] * X.dtype.itemsize):
        difference = X[edges.row[start:stop]] - others[edges.col[start:stop]]
        square = difference * difference
        length[start:stop] = np.sqrt(np.asarray(square.sum(axis=1)).ravel())
    return sparse.coo_array((length, (edges.row, edges.col)), shape=W.shape)


def edge_distances(W: Sparse, X: Data, others: Data | None = None) -> Array:
    """Mean distance of each point to the points it is tied to, weighted by the ties; NaN without ties."""
    edges, lengths, n = sparse.coo_array(W), edge_lengths(W, X, others), W.shape[0]
    with np.errstate(invalid="ignore"):
        return np.bincount(edges.row, edges.data * lengths.data, minlength=n) / np.bincount(edges.row, edges.data, n)


def far_points(distance: Array) -> Array:
    """Points beyond :func:`fence`."""
    return np.asarray(distance > fence(distance))


def fence(distance: Array) -> float:
    """Tukey's fence on a log scale: 1.5 times the range of the quartiles above the third; infinite where none is known.

    Copies of a point have no distance to judge by.
    """
    known = np.log(distance[distance > 0])
    low, high = np.quantile(known, [0.25, 0.75]) if len(known) else (0.0, np.inf)
    return float(np.exp(high + 1.5 * (high - low)))
