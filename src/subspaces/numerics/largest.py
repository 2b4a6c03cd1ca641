"""The largest entries of each row: one pass at memory speed, and ties that rounding does not decide."""

from __future__ import annotations

import numpy as np

from subspaces.numerics.ties import first_smallest, tie_width
from subspaces.numerics.types import Array


def largest_per_row(values: Array, keys: Array, k: int) -> tuple[Array, Array, Array]:
    """The entries of each row whose keys are the k largest: counts per row, column indices, values.

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
    """Columns of the k largest keys of each row, in increasing order, shape (n_rows, k); k at most the row's length."""
    n_rows, n = keys.shape
    if k >= n:
        return np.tile(np.arange(n), (n_rows, 1))
    return (top_places(keys, k) % n).reshape(n_rows, k)


def top_places(keys: Array, k: int) -> Array:
    """Flat indices of the k largest keys of each row, in increasing order; of keys that tie the first columns."""
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
    """Counts per row, columns and values of the k largest non-zero values of each row; columns come in order."""
    order = first_smallest(-values, k)
    values, columns = (np.take_along_axis(values, order, axis=1), np.take_along_axis(columns, order, axis=1))
    kept = values != 0
    return kept.sum(axis=1), columns[kept], values[kept]
