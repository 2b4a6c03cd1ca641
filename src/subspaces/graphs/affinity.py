"""Build W = |C| + |C|ᵀ (eq. 3.13), find its components, join those of graphs that fall apart, measure its edges."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from subspaces.graphs.rules import column_peaks, symmetrised, symmetrised_columns
from subspaces.representation.coefficients import Coefficients
from subspaces.utils.blocks import row_blocks
from subspaces.utils.ordering import first_largest, levels
from subspaces.utils.types import Array, Data, Labels, Sparse


def affinity(coefficients: Sparse) -> Sparse:
    """Return the symmetric non-negative graph W = |C| + |C|ᵀ (eq. 3.13) as a CSR array.

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
    """Return the number of connected components with at least one edge, and one label per sample.

    Components are numbered by decreasing size (ties: by their first sample). Samples without any edge get −1: a
    component is evidence of a cluster, a sample nothing is known about is not.
    """
    if (W.data == 0).any():  # a stored zero is not an edge
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
    piece a sample is in. Each piece, from the smallest up, is tied to the rest by the strongest coefficient (before
    truncation) that leaves it, with the weight |c_ij|/max_k |c_kj| + |c_ji|/max_k |c_ki| that the symmetric graph
    gives it. Samples without any edge are treated as pieces of their own, unless all their coefficients are zero:
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
    """Return for each piece the sample inside, the sample outside and the weight of its strongest edge out."""
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

    Only pieces up to twice the smallest size that can be tied take part: components are counted anew before any
    larger piece is joined.
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


def edge_lengths(W: Sparse, X: Data, others: Data | None = None) -> Sparse:
    """Return the distance between the two samples of each edge of W; its columns may belong to `others`."""
    edges, others = sparse.coo_array(W), X if others is None else others
    length = np.empty(edges.nnz, dtype=X.dtype)
    for start, stop in row_blocks(edges.nnz, 3 * X.shape[1] * X.dtype.itemsize):
        difference = X[edges.row[start:stop]] - others[edges.col[start:stop]]
        square = difference * difference
        length[start:stop] = np.sqrt(np.asarray(square.sum(axis=1)).ravel())
    return sparse.coo_array((length, (edges.row, edges.col)), shape=W.shape)


def edge_distances(W: Sparse, X: Data, others: Data | None = None) -> Array:
    """Return the mean distance of each sample to its neighbours, weighted by the edges; NaN without edges."""
    edges, lengths, n = sparse.coo_array(W), edge_lengths(W, X, others), W.shape[0]
    with np.errstate(invalid="ignore"):
        return np.bincount(edges.row, edges.data * lengths.data, minlength=n) / np.bincount(edges.row, edges.data, n)


def far_points(distance: Array) -> Array:
    """Mark samples beyond :func:`fence`."""
    return np.asarray(distance > fence(distance))


def fence(distance: Array) -> float:
    """Return Tukey's fence on a log scale, 1.5 interquartile ranges above the third quartile, or infinity.

    Copies have no distance and are left out.
    """
    known = np.log(distance[distance > 0])
    low, high = np.quantile(known, [0.25, 0.75]) if len(known) else (0.0, np.inf)
    return float(np.exp(high + 1.5 * (high - low)))
