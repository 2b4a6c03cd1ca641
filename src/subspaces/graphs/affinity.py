"""C → W = |C| + |C|ᵀ (eq. 3.13), its connected components, and the repair of graphs that fall apart."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from subspaces.graphs.truncation import column_peaks, symmetrised, symmetrised_columns
from subspaces.representation.coefficients import Coefficients
from subspaces.utils.blocks import row_blocks
from subspaces.utils.ties import first_largest, levels
from subspaces.utils.types import Array, Labels, Sparse


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
    if (W.data == 0).any():  # a stored zero is no edge
        W = W.copy()
        W.eliminate_zeros()
    _, raw = connected_components(W, directed=False)
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
    truncation) that leaves it, with the weight |c_ij|/max_k |c_kj| + |c_ji|/max_k |c_ki| that the symmetric graph
    gives it. Points without any edge are treated as pieces of their own, unless all their coefficients are zero:
    those do not count and nothing is tied to them. Pieces without any coefficient to the rest stay as they are.
    """
    peaks = column_peaks(coefficients)
    while True:
        n_found, labels = components(W)
        loose = np.flatnonzero((labels < 0) & (peaks > 0))
        n_pieces = n_found + len(loose)
        if n_pieces <= n_clusters:
            return W
        pieces = labels.copy()
        pieces[loose] = n_found + np.arange(len(loose))
        edges = _strongest_edges_out(coefficients, peaks, pieces, n_pieces)
        W, n_joined = _add_edges(W, edges, pieces, n_pieces, n_pieces - n_clusters)
        if n_joined == 0:
            return W


def _strongest_edges_out(
    coefficients: Coefficients, peaks: Array, pieces: Labels, n_pieces: int
) -> tuple[Array, Array, Array]:
    """For each piece: the point inside, the point outside and the weight of its strongest way out."""
    n = coefficients.n_samples
    outside, weight = np.zeros(n, dtype=np.intp), np.zeros(n)
    if coefficients.matrix is not None:
        S = sparse.coo_array(symmetrised(coefficients.matrix))
        out = np.flatnonzero((pieces[S.row] != pieces[S.col]) & (pieces[S.col] >= 0))
        out = out[np.lexsort((-S.col[out], levels(S.data[out])))]  # the last is written: the strongest, first column
        outside[S.row[out]], weight[S.row[out]] = S.col[out], S.data[out]
    else:
        for start, stop in row_blocks(n, n * coefficients.dtype.itemsize):
            block = symmetrised_columns(coefficients, peaks, start, stop)
            block[(pieces[start:stop, None] == pieces) | (pieces < 0)] = 0
            outside[start:stop] = first_largest(block, axis=1)
            weight[start:stop] = block[np.arange(stop - start), outside[start:stop]]
    order = np.lexsort((-levels(weight), pieces))
    order = order[pieces[order] >= 0]
    first = order[np.searchsorted(pieces[order], np.arange(n_pieces))]
    return first, outside[first], weight[first]


def _add_edges(
    W: Sparse, edges: tuple[Array, Array, Array], pieces: Labels, n_pieces: int, n_joins: int
) -> tuple[Sparse, int]:
    """Add at most `n_joins` of the proposed edges, smallest pieces first, skipping those joined meanwhile.

    Only pieces up to twice the smallest size that can be tied take part: what they become is looked at again before
    any larger piece is joined.
    """
    inside, outside, weight = edges
    sizes = np.bincount(pieces[pieces >= 0])
    smallest = sizes[weight > 0].min(initial=len(pieces))
    group = np.arange(n_pieces)
    chosen: list[int] = []
    for piece in np.lexsort((-levels(weight), sizes)):
        other = pieces[outside[piece]]
        if weight[piece] <= 0 or sizes[piece] > 2 * smallest or len(chosen) == n_joins:
            continue
        if group[piece] != group[other]:
            group[group == group[piece]] = group[other]
            chosen.append(piece)
    i, j, w = inside[chosen], outside[chosen], weight[chosen].astype(W.dtype)
    extra = sparse.coo_array((np.r_[w, w], (np.r_[i, j], np.r_[j, i])), shape=W.shape)
    return (W + extra).tocsr(), len(chosen)
