"""Rows of X → an order that does not depend on the one they came in.

Every fit draws (starts of k-means, landmarks, Leiden's visits) and breaks ties by position. So that a shuffled table
gives the same clusters, the points are first put into an order that is their own: by a symmetric function of their
values, rows that tie there by a linear one. Copies are interchangeable. Neither the unit nor the memory layout nor
sparse storage changes it, nor, but for rows that tie, the order of the features. Fingerprints find rows that are equal;
all copies of a point get one label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from subspaces.numerics.blocks import map_blocks, row_blocks
from subspaces.numerics.ties import levels
from subspaces.numerics.types import Array, Data, Labels, Sparse

_TIE = 1e-12
"""Share of the largest key below which two keys are equal: sums of features in another order differ by less."""
_MOST_DIFFER = 0.9  # share of the rows: where more of them differ, the copies change too few edges to matter
_FEW_KINDS = 30
_MANY_OF_EACH = 10
_OFTEN = 0.05  # share of the rows from which one that occurs so often may be a group


def canonical_order(X: Data, prints: Array, *, pairwise: bool = False) -> Labels:
    """Row numbers of X, dense or sparse, in canonical order; `prints` are the fingerprints of its rows.

    With `pairwise` X is a matrix between the points, whose columns come in the order of its rows.

    Examples
    --------
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


def fingerprints(X: Data) -> Array:
    """A 64-bit number per row that depends on the values only: sparse and dense rows agree.

    The mixed bits of each value times a fixed odd number per feature, summed modulo 2⁶⁴; exact integer arithmetic, so
    the number does not depend on how the rows are split into blocks. A zero has the bits 0 and adds nothing.
    """
    multipliers: Array = np.random.default_rng(0).integers(0, 2**63, X.shape[1], dtype=np.uint64) * 2 + np.uint64(1)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        terms = _bits(X.data) * multipliers[X.indices]
        sums = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
        return sums[X.indptr[1:]] - sums[X.indptr[:-1]]
    out = np.empty(X.shape[0], dtype=np.uint64)
    step = max(1, 2**20 // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        terms = _bits(X[start : start + step]) * multipliers
        out[start : start + step] = terms.sum(axis=1, dtype=np.uint64)
    return out


def _bits(values: Array) -> Array:
    """Bit patterns as uint64, mixed; 0.0 and −0.0 give 0.

    Small whole numbers differ in their highest bits only, which a multiplication modulo 2⁶⁴ would push out: the mixing
    brings these down first (the finalizer of MurmurHash3).
    """
    bits: Array = (values.astype(np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    return bits


def one_label_per_copy(labels: Labels, prints: Array) -> Labels:
    """Labels without gaps, where points with the same fingerprint all have the one most of them had."""
    return np.unique(label_of_most_copies(labels, prints), return_inverse=True)[1].astype(np.intp)


def label_of_most_copies(labels: Labels, prints: Array) -> Labels:
    """Labels, −1 for noise among them, where points with the same fingerprint all have the one most of them had.

    Of labels with equally many votes the smallest. No name changes, so that what predicts by name stays right.
    """
    groups, group = np.unique(prints, return_inverse=True)
    if len(groups) == len(labels):
        return labels
    least, span = int(labels.min()), int(np.ptp(labels)) + 1
    pairs, votes = np.unique(group * span + (labels - least), return_counts=True)
    order = np.lexsort((-votes, pairs // span))
    first = order[np.searchsorted(pairs // span, np.arange(len(groups)))]
    return (pairs[first] % span + least)[group].astype(np.intp)


class Kept(NamedTuple):
    """Rows that stand for all, in their order, and for every row the place among them of the one it equals."""

    rows: Labels
    place: Labels


def one_of_each(prints: Array, n_clusters: int | None = None) -> Kept:
    """One row of each kind where many rows are copies; all rows where few are, or where copies say something.

    Copies represent each other and nothing else: of rounded or repeated rows a graph shows the kinds, not the groups.
    Two cases stay as they are. Few kinds with many copies of each, or no more kinds than `n_clusters`, are the groups.
    And a row that occurs far more often than the others, such as one of zeros, is one.

    Examples
    --------
    >>> one_of_each(np.array([5, 7, 5, 8], dtype=np.uint64))
    Kept(rows=array([0, 1, 3]), place=array([0, 1, 0, 2]))
    """
    n = len(prints)
    _, first, kind, counts = np.unique(prints, return_index=True, return_inverse=True, return_counts=True)
    are_groups = len(first) < _FEW_KINDS and n >= _MANY_OF_EACH * len(first)
    if n_clusters is not None:
        are_groups = len(first) <= n_clusters
    if are_groups or len(first) > _MOST_DIFFER * n:
        return Kept(np.arange(n), np.arange(n))
    often = counts > max(_MANY_OF_EACH * float(np.median(counts)), _OFTEN * n)
    return Kept(*np.unique(np.where(often[kind], np.arange(n), first[kind]), return_inverse=True))
