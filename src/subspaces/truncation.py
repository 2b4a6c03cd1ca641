"""C → C with only the largest entries of each column, block by block while the coefficients are produced.

Two rules. ``graph="column"`` is the printed one (eq. 3.11): each column of C keeps its η largest entries.
``graph="symmetric"`` is what the authors' program does (and TRR's before it): |C| with each column divided by its
largest entry, plus its transpose, and of that symmetric matrix each column keeps its η largest entries. Either way
the affinity is afterwards W = |C_η| + |C_η|ᵀ.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import sparse

from subspaces._blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces._typing import Array, Sparse
from subspaces.representation._result import Coefficients

RANKINGS = ("magnitude", "value")


def truncate(
    coefficients: Coefficients,
    n_nonzero: int | None,
    *,
    graph: str = "column",
    by: str = "magnitude",
) -> Sparse:
    """Keep the η = `n_nonzero` largest entries of each column (eq. 3.11 and 3.12).

    Parameters
    ----------
    coefficients : Coefficients of any representation
    n_nonzero : η; n − 1 or more keeps everything off the diagonal, None the diagonal as well
    graph : ``"column"`` or ``"symmetric"``, see the module
    by : ``"magnitude"`` ranks by |c|; ``"value"`` by c itself, so that negative entries go first

    Returns
    -------
    csc_array of shape (n, n)
        No explicit zeros. Of entries equal to the η-th largest those with the smallest row index stay.
    """
    n, whole = coefficients.n_points, coefficients.matrix
    if whole is not None and graph == "column" and (n_nonzero is None or np.diff(whole.indptr).max() <= n_nonzero):
        return whole  # nothing to cut
    n_nonzero = n if n_nonzero is None else min(n_nonzero, n - 1)
    if whole is not None and (graph == "symmetric" or by == "magnitude"):
        return largest_per_column(symmetrised(whole) if graph == "symmetric" else whole, n_nonzero)
    peaks = column_peaks(coefficients) if graph == "symmetric" else None

    def one_block(start: int, stop: int) -> tuple[Array, Array, Array]:
        if peaks is not None:
            columns = keys = symmetrised_columns(coefficients, peaks, start, stop)
        else:
            columns = coefficients.columns(start, stop)
            keys = np.abs(columns) if by == "magnitude" else columns.copy()
            if by == "value":  # the zero on the diagonal is no entry: it must not shut out negative ones
                keys[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        return largest_per_row(columns, keys, n_nonzero)

    blocks = row_blocks(n, n * coefficients.dtype.itemsize)
    parts = map_blocks(one_block, blocks)
    counts, indices, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = np.int32 if indptr[-1] < 2**31 else np.int64
    return sparse.csc_array((values, indices.astype(index_type), indptr.astype(index_type)), shape=(n, n))


def largest_per_row(values: Array, keys: Array, k: int) -> tuple[Array, Array, Array]:
    """The entries of each row whose keys are the k largest: counts per row, column indices, values.

    Instead of a partial sort of every row: fold the row into g groups and take each group's maximum (one pass at
    memory speed). The k-th largest of these g maxima is at most the k-th largest key, so only the few entries not
    below it can be among the k largest; those alone are sorted. Zeros are never kept; of equal keys the smaller
    column index wins. Columns come out in increasing order.
    """
    n_rows, n = keys.shape
    if k >= n:
        row, column = np.nonzero(values)
        return np.bincount(row, minlength=n_rows), column, values[row, column]
    kept = _top_flat(keys, k)
    kept = kept[values.ravel()[kept] != 0]
    row, column = np.divmod(kept, n)
    return np.bincount(row, minlength=n_rows), column, values.ravel()[kept]


def top_columns(keys: Array, k: int) -> Array:
    """Columns of the k largest keys of each row, in increasing order, shape (n_rows, k); k at most the row's length."""
    n_rows, n = keys.shape
    if k >= n:
        return np.tile(np.arange(n), (n_rows, 1))
    return (_top_flat(keys, k) % n).reshape(n_rows, k)


def _top_flat(keys: Array, k: int) -> Array:
    """Flat indices of the k largest keys of each row, in increasing order; of equal keys the first columns."""
    n_rows, n = keys.shape
    n_groups = min(n, max(256, 16 * k))
    size = n // n_groups
    peaks = keys[:, : n_groups * size].reshape(n_rows, size, n_groups).max(axis=1)
    kth = min(k, n_groups)
    threshold = np.partition(peaks, n_groups - kth, axis=1)[:, n_groups - kth, None]
    flat = np.flatnonzero(keys >= threshold)
    row = flat // n
    # rank within the row by decreasing key; the sort is stable, so equal keys keep their column order
    order = np.argsort(-keys.ravel()[flat], kind="stable")
    order = order[np.argsort(row[order], kind="stable")]
    first = np.searchsorted(row[order], np.arange(n_rows))
    rank = np.arange(len(order)) - first[row[order]]
    return flat[np.sort(order[rank < k])]


def largest_per_column(C: Sparse, k: int) -> Sparse:
    """The k entries of largest magnitude of each column of a CSC array; of equal ones the first rows.

    Columns are padded to a common length with others of about their own, so that a few long ones cost nothing.
    """
    C = sparse.csc_array(C)
    C.sort_indices()
    counts = np.diff(C.indptr)
    if counts.max(initial=0) <= k:
        return C
    kept = np.ones(C.nnz, dtype=bool)
    long = np.flatnonzero(counts > k)
    long = long[np.argsort(counts[long], kind="stable")]
    classes = np.searchsorted(counts[long], k * 2.0 ** np.arange(1, 40), side="right")
    for first, last in pairwise([0, *np.unique(classes)]):
        width = int(counts[long[last - 1]])
        for start, stop in row_blocks(last - first, width * C.dtype.itemsize, 8 * BLOCK_BYTES):
            columns = long[first + start : first + stop]
            place = C.indptr[columns, None] + np.arange(width)
            real = np.arange(width) < counts[columns, None]
            keys = np.full(place.shape, -1, dtype=C.dtype)
            keys[real] = np.abs(C.data[place[real]])
            kept[place[real]] = False
            kept[place.ravel()[_top_flat(keys, k)]] = True
    kept &= C.data != 0
    indptr = np.concatenate([[0], np.cumsum(np.add.reduceat(kept, C.indptr[:-1]) * (counts > 0))])
    return sparse.csc_array((C.data[kept], C.indices[kept], indptr.astype(C.indptr.dtype)), shape=C.shape)


def symmetrised(C: Sparse) -> Sparse:
    """Ā + Āᵀ of a sparse C, Ā being |C| with each column divided by its largest entry (see the module)."""
    magnitude = abs(sparse.csc_array(C))
    peaks = magnitude.max(axis=0).toarray().ravel()
    magnitude.data /= np.repeat(np.where(peaks > 0, peaks, 1), np.diff(magnitude.indptr))
    return sparse.csc_array(magnitude + magnitude.T)


def column_peaks(coefficients: Coefficients) -> Array:
    """Largest magnitude of each column of C, or of its symmetric core M: what the symmetric graph divides by."""
    if coefficients.matrix is not None:
        peaks: Array = abs(coefficients.matrix).max(axis=0).toarray().ravel()
        return peaks
    read = coefficients.core or coefficients.columns

    def peaks_of(start: int, stop: int) -> Array:
        columns = read(start, stop)
        peaks: Array = np.maximum(columns.max(axis=1), -columns.min(axis=1))
        return peaks

    n = coefficients.n_points
    return np.concatenate(map_blocks(peaks_of, row_blocks(n, n * coefficients.dtype.itemsize)))


def symmetrised_columns(coefficients: Coefficients, peaks: Array, start: int, stop: int) -> Array:
    """Columns ``start:stop`` of Ā + Āᵀ, where Ā is |C| with each column divided by its largest entry.

    With C = M diag(s) the factors s cancel in Ā: the symmetric core M gives the same graph and is read once.
    """
    divisors = np.where(peaks > 0, peaks, 1)  # a column of zeros stays one
    if coefficients.core is not None:
        across = np.abs(coefficients.core(start, stop))
        if divisors.min() > 1 / np.finfo(divisors.dtype).max:  # reciprocals are faster where they do not overflow
            columns: Array = 1 / divisors[start:stop, None] + 1 / divisors
            columns *= across
            return columns
        columns = across / divisors[start:stop, None]
    else:
        columns = np.abs(coefficients.columns(start, stop))
        columns /= divisors[start:stop, None]
        across = np.abs(coefficients.rows(start, stop))
    across /= divisors
    columns += across
    return columns
