"""C → W = |C| + |C|ᵀ (eq. 3.13), its connected components, and the repair of graphs that fall apart."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from subspaces._blocks import row_blocks
from subspaces._typing import Array, Labels, Sparse
from subspaces.representation._result import Coefficients


def affinity(coefficients: Sparse) -> Sparse:
    """Symmetric non-negative graph W = |C| + |C|ᵀ (eq. 3.13) as a CSR array.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> affinity(csc_array([[0.0, -0.5], [0.25, 0.0]])).toarray()
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """
    magnitude = abs(coefficients)
    W = (magnitude + magnitude.T).tocsr()
    W.sum_duplicates()
    return W


def components(W: Sparse) -> tuple[int, Labels]:
    """Connected components that have at least one edge: their number, and one label per point.

    Components are numbered by decreasing size (ties: by their first point). Points without any edge get −1: a
    component is evidence of a cluster, a point nothing is known about is not.
    """
    _, raw = connected_components(W, directed=False)
    # stored zeros do not count as edges
    isolated = np.asarray(W.sum(axis=1)).ravel() == 0
    sizes = np.bincount(raw, weights=~isolated)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    labels = rank[raw]
    labels[isolated] = -1
    return int((sizes > 0).sum()), labels.astype(np.intp)


def join_components(W: Sparse, coefficients: Coefficients, n_clusters: int) -> Sparse:
    """Add edges until W has no more components than clusters, smallest components first.

    A truncated graph often falls into more pieces than there are clusters; its eigenvectors then only say which
    piece a point is in. Each piece, from the smallest up, is tied to the rest by the strongest coefficient (before
    truncation) that leaves it, with the weight |c_ij|/max_i |c_ij| + |c_ji|/max_j |c_ji| that the strongest edges of
    a point have. Points without any edge are treated as pieces of their own. Pieces without any coefficient to the
    rest stay as they are.
    """
    while True:
        n_found, labels = components(W)
        pieces = labels.copy()
        loose = np.flatnonzero(labels < 0)
        pieces[loose] = n_found + np.arange(len(loose))
        n_pieces = n_found + len(loose)
        if n_pieces <= n_clusters:
            return W
        edges = _strongest_edges_out(coefficients, pieces, n_pieces)
        W, joined = _add_edges(W, edges, pieces, n_pieces, n_pieces - n_clusters)
        if joined == 0:
            return W


def _strongest_edges_out(coefficients: Coefficients, pieces: Labels, n_pieces: int) -> tuple[Array, Array, Array]:
    """For each piece: the point inside, the point outside and the weight of its strongest way out."""
    inside = np.zeros(n_pieces, dtype=np.intp)
    outside = np.zeros(n_pieces, dtype=np.intp)
    weight = np.zeros(n_pieces)
    n = coefficients.n_points
    for start, stop in row_blocks(n, n * coefficients.dtype.itemsize):
        columns = np.abs(coefficients.columns(start, stop))
        peaks = columns.max(axis=1)
        columns[pieces[start:stop, None] == pieces] = 0
        best = columns.argmax(axis=1)
        strength = columns[np.arange(stop - start), best] / np.where(peaks > 0, peaks, 1)
        for i in np.flatnonzero(strength > weight[pieces[start:stop]]):
            piece = pieces[start + i]
            if strength[i] > weight[piece]:
                inside[piece], outside[piece], weight[piece] = start + i, best[i], strength[i]
    return inside, outside, weight


def _add_edges(
    W: Sparse, edges: tuple[Array, Array, Array], pieces: Labels, n_pieces: int, n_joins: int
) -> tuple[Sparse, int]:
    """Add at most `n_joins` of the proposed edges, smallest pieces first, skipping those joined meanwhile."""
    inside, outside, weight = edges
    sizes = np.bincount(pieces, minlength=n_pieces)
    group = np.arange(n_pieces)
    chosen = []
    for piece in np.lexsort((-weight, sizes)):
        other = pieces[outside[piece]]
        if weight[piece] > 0 and group[piece] != group[other] and len(chosen) < n_joins:
            group[group == group[piece]] = group[other]
            chosen.append(piece)
    i, j, w = inside[chosen], outside[chosen], weight[chosen].astype(W.dtype)
    extra = sparse.coo_array((np.r_[w, w], (np.r_[i, j], np.r_[j, i])), shape=W.shape)
    return (W + extra).tocsr(), len(chosen)
