"""Rows of X → an order that does not depend on the one they came in.

Every fit draws (starts of k-means, landmarks, Leiden's visits) and breaks ties by position. So that a shuffled table
gives the same clusters, the points are first put into an order that is their own: by a symmetric function of their
values, rows that tie there by a linear one. Copies are interchangeable. Neither the unit nor the memory layout nor
sparse storage changes it, nor, but for rows that tie, the order of the features.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.numerics.blocks import map_blocks, row_blocks
from subspaces.numerics.ties import levels
from subspaces.numerics.types import Array, Data, Labels, Sparse

_TIE = 1e-12
"""Share of the largest key below which two keys are equal: sums of features in another order differ by less."""


def canonical_order(X: Data, prints: Array, *, pairwise: bool = False) -> Labels:
    """Row numbers of X in canonical order.

    Parameters
    ----------
    X : array of shape (n, m), dense or sparse
    prints : :func:`~subspaces.numerics.copies.fingerprints` of its rows
    pairwise : whether X is a matrix between the points, whose columns come in the order of its rows

    Examples
    --------
    >>> from subspaces.numerics.copies import fingerprints
    >>> X = np.array([[3.0, 1.0], [0.0, 0.5], [2.0, 2.0]])
    >>> order = canonical_order(X, fingerprints(X))
    >>> shuffled = X[[2, 0, 1]]
    >>> bool((X[order] == shuffled[canonical_order(shuffled, fingerprints(shuffled))]).all())
    True
    """
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0))) or 1.0
    keys = row_keys(X, largest)
    if pairwise and X.shape[0] == X.shape[1]:
        keys[:, 1] = (X / largest) @ (keys[:, 0] / np.abs(keys[:, 0]).max())
    return order_of_keys(keys, prints)


def row_keys(X: Data, largest: float) -> Array:
    """Two numbers per row, with t = x_ij / `largest` and fixed weights w_j: Σ_j t + t² + t³, and Σ_j w_j t.

    Rows of one sum, or of one length, still differ in the first, which does not know the order of the features; rows
    with the same values in other places (of zeros and ones, say) in the second.
    """
    weights = np.random.default_rng(0).random(X.shape[1])
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        rows, t = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data.astype(np.float64, copy=False) / largest
        keys = ((t + 1) * t + 1) * t, weights[X.indices] * t
        return np.column_stack([np.bincount(rows, key, minlength=X.shape[0]) for key in keys])
    out = np.empty((X.shape[0], 2))

    def one_block(start: int, stop: int) -> None:
        t = np.ascontiguousarray(X[start:stop], dtype=np.float64) / largest
        out[start:stop, 0], out[start:stop, 1] = (((t + 1) * t + 1) * t).sum(axis=1), t @ weights

    map_blocks(one_block, row_blocks(X.shape[0], 8 * max(1, X.shape[1])))
    return out


def order_of_keys(keys: Array, prints: Array) -> Labels:
    """Ascending first keys; of those that are equal but for rounding ascending second keys, then fingerprints."""
    return np.lexsort((prints, levels(keys[:, 1], _TIE), levels(keys[:, 0], _TIE)))


def inverse_of(order: Labels) -> Labels:
    """Where each row went: ``x[order][inverse_of(order)]`` is x."""
    inverse: Labels = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def rows_of(X: Data, order: Labels, *, pairwise: bool = False) -> Data:
    """Points (some, or all in another order), C-contiguous or with sorted indices; X itself where nothing changes.

    With `pairwise` X is a matrix between the points, whose columns are taken as well.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X)[order]
        X = X[:, order] if pairwise else X
        X.sort_indices()
        return X
    if len(order) == len(X) and (order == np.arange(len(order))).all():
        return np.ascontiguousarray(X)
    return np.take(X, order, axis=0) if not pairwise else X[order[:, None], order]


def reordered(S: Sparse, order: Labels) -> Sparse:
    """A square sparse matrix with rows and columns in another order, in its own format."""
    place = inverse_of(order)
    S = S if S.format in ("csr", "csc") else S.tocsr()
    major = np.diff(S.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(major)])
    source = np.repeat(S.indptr[order] - indptr[:-1], major) + np.arange(indptr[-1])
    indices, indptr = place[S.indices[source]].astype(S.indices.dtype), indptr.astype(S.indptr.dtype)
    out = type(S)((S.data[source], indices, indptr), shape=S.shape)
    out.sort_indices()
    return out
