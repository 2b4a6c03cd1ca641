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
        row, base = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), units.apply(np.zeros(X.shape[1]))
        base, more = ((base + 1) * base + 1) * base, units.apply(X.data, X.indices)
        more = ((more + 1) * more + 1) * more - base[X.indices]
        sums = np.bincount(X.indices, more, minlength=X.shape[1]) + X.shape[0] * base
        return np.bincount(row, more, minlength=X.shape[0]) + base.sum(), sums

    def one_block(start: int, stop: int) -> tuple[Array, Array]:
        t = units.apply(np.ascontiguousarray(X[start:stop]))
        t = ((t + 1) * t + 1) * t
        return t.sum(axis=1), t.sum(axis=0)

    parts = map_blocks(one_block, row_blocks(X.shape[0], 8 * max(1, X.shape[1])))
    first, sums = zip(*parts, strict=True)
    return np.concatenate(first), np.sum(sums, axis=0)


def second_keys(X: Data, units: Units, weights: Array) -> Array:
    """Return Σ_j w_j t for each row: with weights from :func:`first_keys`, which follow the columns wherever they are.

    Rows with the same values in other places (of zeros and ones, say) differ in it.
    """
    if sparse.issparse(X):
        factor = weights / np.maximum(2 * units.half, np.finfo(np.float64).tiny)
        return np.asarray(X @ factor - units.low @ factor)

    def one_block(start: int, stop: int) -> Array:
        return np.asarray(units.apply(np.ascontiguousarray(X[start:stop])) @ weights)

    return np.concatenate(map_blocks(one_block, row_blocks(X.shape[0], 8 * max(1, X.shape[1]))))


def order_of_keys(keys: Array, row_hashes: Array) -> Labels:
    """Sort by first keys, those equal up to rounding by second keys, then by hashes."""
    return np.lexsort((row_hashes, levels(keys[:, 1], _TIE), levels(keys[:, 0], _TIE)))


def inverse_of(order: Labels) -> Labels:
    """Return the place of each row: ``x[order][inverse_of(order)]`` is x."""
    inverse: Labels = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def in_order(labels: Labels) -> Labels:
    """Number clusters by their first samples: Leiden's own numbers change with the last digit of a weight.

    Examples
    --------
    >>> in_order(np.array([2, 2, 0, 1, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    names: Labels = np.argsort(np.argsort(first))[codes]
    return names


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


# ------------------------------------------------------------------ ties

_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Share of the largest magnitude: far above rounding, far below what two different points differ by."""


def tolerance(dtype: Any) -> float:
    """Return the relative difference below which computed values of this type tie."""
    return _TOLERANCE[np.dtype(dtype)]


def first_largest(values: Array, axis: int | None = None) -> Any:
    """Return ``argmax`` where values that tie with the largest count as equal to it: the first of them.

    Examples
    --------
    >>> int(first_largest(np.array([0.5, 3.0, 3.0 + 1e-15])))
    1
    """
    values = np.asarray(values)
    values = values.astype(np.float64) if values.dtype.kind != "f" else values
    best = values.max(axis=axis, keepdims=True)
    size = np.abs(best) * tolerance(values.dtype)
    with np.errstate(invalid="ignore"):  # a row of −inf
        level = np.where(np.isfinite(best), best - size, best)
    return (values >= level).argmax(axis=axis)


def first_smallest(values: Array, k: int) -> Array:
    """Return places of the k smallest values of each row, increasing; of those that tie with the k-th the first.

    Coefficients of copies, or of samples on a grid, are equal but for rounding: which of them are kept must not depend
    on it. What ties is set equal, and the sort is stable.

    Examples
    --------
    >>> first_smallest(np.array([[3.0, 1.0 + 1e-15, 1.0, 0.5]]), 2)
    array([[1, 3]])
    """
    order = np.argsort(values, axis=1, kind="stable")[:, : k + 1]
    if order.shape[1] > k:
        best, kth, after = (np.take_along_axis(values, order[:, i : i + 1], axis=1) for i in (0, k - 1, k))
        tie = tie_width(kth, best)
        with np.errstate(invalid="ignore"):  # ∞ − ∞, where a row has no more entries
            close = np.flatnonzero((after - kth <= tie)[:, 0])
        if len(close):
            some, level = values[close], kth[close]
            with np.errstate(invalid="ignore"):
                some = np.where(np.abs(some - level) <= tie[close], level, some)
            order[close, :k] = np.argsort(some, axis=1, kind="stable")[:, :k]
    order = order[:, :k]
    order.sort(axis=1)
    return order


def tie_width(level: Array, largest: Array) -> Array:
    """Return the difference from a level below which a value ties; small values beside a large one are less exact."""
    size: Array = tolerance(level.dtype) * np.maximum(np.abs(level), 1e-3 * np.abs(largest))
    return np.where(np.isfinite(size), size, 0).astype(level.dtype, copy=False)


def levels(values: Array, share: float | None = None) -> Array:
    """Rank values; those that tie, that is differ by less than a `share` of the largest, have the same rank."""
    order = np.argsort(values, kind="stable")
    share = tolerance(values.dtype) if share is None else share
    steps = np.diff(values[order]) > share * np.abs(values).max(initial=0)
    ranks: Array = np.empty(len(values), dtype=np.intp)
    ranks[order] = np.concatenate([[0], np.cumsum(steps)])[: len(values)]
    return ranks


def largest_per_row(values: Array, keys: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the entries of each row whose keys are the k largest: counts per row, column indices, values.

    Instead of a partial sort of every row: fold the row into g groups and take each group's maximum (one pass at
    memory speed). The k-th largest of these g maxima is at most the k-th largest key, so only the few entries not
    below it can be among the k largest; those alone are sorted. Zeros are never kept; of keys that tie with the k-th
    largest the smaller column index wins. Columns come out in increasing order.
    """
    n_rows, n = keys.shape
    if k >= n:
        row, column = np.nonzero(values)
        return np.bincount(row, minlength=n_rows), column, values[row, column]
    kept = top_places(keys, k)
    kept = kept[values.ravel()[kept] != 0]
    row, column = np.divmod(kept, n)
    return np.bincount(row, minlength=n_rows), column, values.ravel()[kept]


def top_columns(keys: Array, k: int) -> Array:
    """Return columns of the k largest keys of each row, increasing, shape (n_rows, k); k at most the row length."""
    n_rows, n = keys.shape
    if k >= n:
        return np.tile(np.arange(n), (n_rows, 1))
    return (top_places(keys, k) % n).reshape(n_rows, k)


def top_places(keys: Array, k: int) -> Array:
    """Return flat indices of the k largest keys of each row, increasing; of keys that tie the first columns."""
    n_rows, n = keys.shape
    n_groups = min(n, max(256, 16 * k))
    size = n // n_groups
    peaks = keys[:, : n_groups * size].reshape(n_rows, size, n_groups).max(axis=1)
    kth = min(k, n_groups)
    peaks.partition(n_groups - kth, axis=1)
    least = peaks[:, n_groups - kth, None]
    flat = np.flatnonzero(keys >= least - 2 * tie_width(least, peaks.max(axis=1, keepdims=True)))
    row = flat // n
    counts = np.bincount(row, minlength=n_rows)
    first = np.cumsum(counts) - counts
    # the few that are left side by side, each row sorted by itself
    few = np.full((n_rows, counts.max()), np.inf, dtype=keys.dtype)
    few[row, np.arange(len(flat)) - first[row]] = -keys.ravel()[flat]
    return flat[(first_smallest(few, k) + first[:, None]).ravel()]


def largest_of_few(columns: Array, values: Array, k: int) -> tuple[Array, Array, Array]:
    """Return counts per row, columns and values of the k largest non-zero magnitudes of each row, in order."""
    order = first_smallest(-np.abs(values), k)
    values, columns = (np.take_along_axis(values, order, axis=1), np.take_along_axis(columns, order, axis=1))
    kept = values != 0
    return kept.sum(axis=1), columns[kept], values[kept]
