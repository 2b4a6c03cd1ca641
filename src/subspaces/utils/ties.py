"""Treat values that differ by less than their own error as equal, so that rounding decides nothing.

The last bits of a sum depend on the processor, the number of threads and the order of the terms. Wherever computed
numbers choose something (the largest coefficients, the best start, the next merge, the winner of a search), those
within the tolerance below of the best tie, and the first of them is taken: the samples stand in a canonical order
(:mod:`subspaces.utils.ordering`), settings in their order of preference. The second half finds the largest entries
of rows in this sense, in one pass at memory speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subspaces.utils.types import Array

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
