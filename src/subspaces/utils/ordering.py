"""Bring the rows of X into an order that does not depend on the one they came in.

Every fit draws (starts of k-means, landmarks, Leiden's visits) and breaks ties by position. So that a shuffled table
gives the same clusters, the samples are first brought into an order of their own: by a symmetric function of their
values in units of the columns' ranges, rows that tie there by a linear one. Neither order, unit nor origin of the
columns changes it, nor memory layout or sparse storage. Hashes find rows that are equal: copies count once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.ties import levels
from subspaces.utils.types import Array, Data, Labels, Sparse

_TIE = 1e-12  # share of the largest key below which two keys are equal: sums in another order differ by less
_ROUNDING = 1e-13  # range of a column over its size, or over the largest range, below which it is constant


def canonical_order(X: Data, row_hashes: Array, *, pairwise: bool = False) -> Labels:
    """Return row numbers of X, dense or sparse, in canonical order; `row_hashes` are the hashes of its rows.

    With `pairwise` X is a matrix between the samples, whose columns come in the order of its rows.

    Examples
    --------
    >>> X = np.array([[3.0, 1.0], [0.0, 0.5], [2.0, 2.0]])
    >>> order = canonical_order(X, hash_rows(X))
    >>> shuffled = X[[2, 0, 1]]
    >>> bool((X[order] == shuffled[canonical_order(shuffled, hash_rows(shuffled))]).all())
    True
    """
    n, low, high = X.shape[0], X.min(axis=0), X.max(axis=0)
    if sparse.issparse(low):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    units = Units.between(low, high)
    first, sums = first_keys(X, units)
    if pairwise and n == X.shape[1]:
        second = X @ (first / (np.abs(first).max() or 1.0)) / (abs(X).max() or 1.0)
    else:
        second = second_keys(X, units, sums / n)
    return order_of_keys(np.column_stack([first, second]), row_hashes)


class Units(NamedTuple):
    """Map each column to [0, 1]: its smallest value, and half of its range (infinite for a constant column)."""

    low: Array
    half: Array

    @classmethod
    def between(cls, low: Array, high: Array) -> Units:
        """Make units of the smallest and the largest value of each column."""
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        half = high / 2 - low / 2  # the whole range may overflow
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), half.max(initial=0))
        return cls(low, np.where(half > _ROUNDING * size, half, np.inf))

    def apply(self, values: Array, columns: Any = slice(None)) -> Array:
        """Return values of some columns in units of these."""
        values = values.astype(np.float64, copy=False)
        return np.asarray((values / 2 - self.low[columns] / 2) / self.half[columns])


def first_keys(X: Data, units: Units) -> tuple[Array, Array]:
    """Return t + t² + t³, with t the values in units of their columns, summed over each row and over each column.

    Rows of one sum, or of one length, still differ in the first. It knows neither units nor order of the columns.
    """
    if sparse.issparse(X):
        X = sparse.csr_array(X)
        row, base = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), _cubic(units.apply(np.zeros(X.shape[1])))
        more = _cubic(units.apply(X.data, X.indices)) - base[X.indices]
        sums = np.bincount(X.indices, more, minlength=X.shape[1]) + X.shape[0] * base
        return np.bincount(row, more, minlength=X.shape[0]) + base.sum(), sums
    first = np.empty(X.shape[0])

    def one_block(start: int, stop: int) -> Array:
        values = _cubic(units.apply(np.ascontiguousarray(X[start:stop])))
        first[start:stop] = values.sum(axis=1)
        return np.asarray(values.sum(axis=0))

    return first, np.sum(map_blocks(one_block, row_blocks(X.shape[0], 8 * max(1, X.shape[1]))), axis=0)


def second_keys(X: Data, units: Units, weights: Array) -> Array:
    """Return Σ_j w_j t for each row: with weights from :func:`first_keys`, which follow the columns wherever they are.

    Rows with the same values in other places (of zeros and ones, say) differ in it.
    """
    if sparse.issparse(X):
        factor = weights / np.maximum(2 * units.half, np.finfo(np.float64).tiny)
        return np.asarray(X @ factor - units.low @ factor)
    second = np.empty(X.shape[0])

    def one_block(start: int, stop: int) -> None:
        second[start:stop] = units.apply(np.ascontiguousarray(X[start:stop])) @ weights

    map_blocks(one_block, row_blocks(X.shape[0], 8 * max(1, X.shape[1])))
    return second


def _cubic(t: Array) -> Array:
    return ((t + 1) * t + 1) * t


def order_of_keys(keys: Array, row_hashes: Array) -> Labels:
    """Sort by first keys, those equal up to rounding by second keys, then by hashes."""
    return np.lexsort((row_hashes, levels(keys[:, 1], _TIE), levels(keys[:, 0], _TIE)))


def inverse_of(order: Labels) -> Labels:
    """Return the place of each row: ``x[order][inverse_of(order)]`` is x."""
    inverse: Labels = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def rows_of(X: Data, order: Labels, *, pairwise: bool = False) -> Data:
    """Take rows (some, or all in another order), C-contiguous or with sorted indices; X itself if nothing changes.

    With `pairwise` X is a matrix between the samples, whose columns are taken as well.
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
    """Reorder rows and columns of a square sparse matrix, in its own format."""
    place = inverse_of(order)
    S = S if S.format in ("csr", "csc") else S.tocsr()
    major = np.diff(S.indptr)[order]
    indptr = np.concatenate([[0], np.cumsum(major)])
    source = np.repeat(S.indptr[order] - indptr[:-1], major) + np.arange(indptr[-1])
    indices, indptr = place[S.indices[source]].astype(S.indices.dtype), indptr.astype(S.indptr.dtype)
    out = type(S)((S.data[source], indices, indptr), shape=S.shape)
    out.sort_indices()
    return out


def hash_rows(X: Data) -> Array:
    """Return a 64-bit hash per row that depends on the values only: sparse and dense rows agree.

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
    """Return bit patterns as uint64, mixed; 0.0 and −0.0 give 0.

    Small whole numbers differ in their highest bits only, which a multiplication modulo 2⁶⁴ would push out: the mixing
    brings these down first (the finalizer of MurmurHash3).
    """
    bits: Array = (values.astype(np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(33)
    bits *= np.uint64(0xFF51AFD7ED558CCD)
    bits ^= bits >> np.uint64(33)
    return bits


def label_of_most_copies(labels: Labels, row_hashes: Array) -> Labels:
    """Give samples with the same hash the label most of them had, −1 for noise among them.

    Of labels with equally many votes the smallest. No name changes, so that what predicts by name stays right.
    """
    groups, group = np.unique(row_hashes, return_inverse=True)
    if len(groups) == len(labels):
        return labels
    least, span = int(labels.min()), int(np.ptp(labels)) + 1
    pairs, votes = np.unique(group * span + (labels - least), return_counts=True)
    order = np.lexsort((-votes, pairs // span))
    first = order[np.searchsorted(pairs // span, np.arange(len(groups)))]
    return (pairs[first] % span + least)[group].astype(np.intp)


class Distinct(NamedTuple):
    """Hold one row of each kind, in the order given, and for every row the place among them of the one it equals."""

    rows: Labels
    place: Labels


def distinct_rows(row_hashes: Array) -> Distinct:
    """Find the different rows by their hashes.

    Copies represent each other and nothing else: with them a graph shows which rows are equal, not which are alike.

    Examples
    --------
    >>> distinct_rows(np.array([5, 7, 5, 8], dtype=np.uint64))
    Distinct(rows=array([0, 1, 3]), place=array([0, 1, 0, 2]))
    """
    _, first, kind = np.unique(row_hashes, return_index=True, return_inverse=True)
    rows = np.sort(first)
    return Distinct(rows, np.searchsorted(rows, first[kind]))
