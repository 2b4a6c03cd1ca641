"""C → C with only the largest entries of each column, block by block while the coefficients are produced.

Two rules. ``graph="column"`` is the printed one (eq. 3.11): each column of C keeps its η largest entries.
``graph="symmetric"`` is what the authors' program does (and TRR's before it): |C| with each column divided by its
largest entry, plus its transpose, and of that symmetric matrix each column keeps its η largest entries. Either way
the affinity is afterwards W = |C_η| + |C_η|ᵀ.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.numerics.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.numerics.ties import first_smallest, tie_width
from subspaces.numerics.types import Array, Sparse
from subspaces.representation.coefficients import Coefficients, Draft

RANKINGS = ("magnitude", "value")

_SPARE = 4
"""Entries of a column taken from a draft beyond those asked for: single precision may swap near equals."""


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
        No explicit zeros. Of entries that tie with the η-th largest (:mod:`subspaces.numerics.ties`) those with the
        smallest row index stay.
    """
    n, whole = coefficients.n_points, coefficients.matrix
    if whole is not None and graph == "column" and (n_nonzero is None or np.diff(whole.indptr).max() <= n_nonzero):
        return whole  # nothing to cut
    n_nonzero = n if n_nonzero is None else min(n_nonzero, n - 1)
    if whole is not None and (graph == "symmetric" or by == "magnitude"):
        return largest_per_column(symmetrised(whole) if graph == "symmetric" else whole, n_nonzero)
    if graph == "symmetric" and coefficients.draft is not None and n_nonzero + _SPARE < n:
        return _symmetric_by_draft(coefficients, coefficients.draft, n_nonzero)
    peaks = column_peaks(coefficients) if graph == "symmetric" else None

    def one_block(start: int, stop: int) -> tuple[Array, Array, Array]:
        if peaks is not None:
            columns = keys = symmetrised_columns(coefficients, peaks, start, stop)
        else:
            columns = coefficients.columns(start, stop)
            # a zero (the diagonal, or any of a sparse column) is no entry: it must not shut out negative ones
            keys = np.abs(columns) if by == "magnitude" else np.where(columns != 0, columns, -np.inf)
        return largest_per_row(columns, keys, n_nonzero)

    return _from_blocks(map_blocks(one_block, _blocks_of(coefficients, coefficients.dtype)), n)


def _symmetric_by_draft(coefficients: Coefficients, draft: Draft, n_nonzero: int) -> Sparse:
    """The symmetric rule where all n² products are made in single precision and the few that matter in double."""
    n, peaks = coefficients.n_points, column_peaks(coefficients)
    inverse = 1 / np.where(peaks > 0, peaks, 1)
    weights = (inverse / inverse.max()).astype(np.float32)
    step = max(1, BLOCK_BYTES // (4 * n * weights.itemsize))

    def one_block(start: int, stop: int) -> tuple[Array, Array, Array]:
        block = draft.core(start, stop)
        for first in range(0, stop - start, step):  # small pieces: no large array is made and freed
            part = block[first : first + step]
            np.abs(part, out=part)
            part *= weights[start + first : min(start + first + step, stop), None] + weights
        columns = top_columns(block, n_nonzero + _SPARE)
        rows = np.arange(start, stop)[:, None]
        values = np.abs(draft.pairs(rows[:, 0], columns))
        values *= inverse[rows] + inverse[columns]
        values[columns == rows] = 0
        return _largest_of_few(columns, values, n_nonzero)

    return _from_blocks(map_blocks(one_block, _blocks_of(coefficients, weights.dtype)), n)


def _largest_of_few(columns: Array, values: Array, k: int) -> tuple[Array, Array, Array]:
    """Counts per row, columns and values of the k largest non-zero values of each row; columns come in order."""
    order = first_smallest(-values, k)
    values, columns = (np.take_along_axis(values, order, axis=1), np.take_along_axis(columns, order, axis=1))
    kept = values != 0
    return kept.sum(axis=1), columns[kept], values[kept]


def _blocks_of(coefficients: Coefficients, dtype: np.dtype[Any]) -> list[tuple[int, int]]:
    n = coefficients.n_points
    return row_blocks(n, n * dtype.itemsize // coefficients.enlarge)


def _from_blocks(parts: list[tuple[Array, Array, Array]], n: int) -> Sparse:
    """CSC array from the counts, row indices and values of its columns."""
    counts, indices, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = np.int32 if indptr[-1] < 2**31 else np.int64
    return sparse.csc_array((values, indices.astype(index_type), indptr.astype(index_type)), shape=(n, n))


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
    top: Array = flat[(first_smallest(few, k) + first[:, None]).ravel()]
    return top


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
    indptr = np.concatenate([[0], np.cumsum(kept)])[C.indptr]
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
    if coefficients.draft is not None:
        return _peaks_by_draft(coefficients, coefficients.draft)
    read = coefficients.core or coefficients.columns

    def peaks_of(start: int, stop: int) -> Array:
        columns = read(start, stop)
        peaks: Array = np.maximum(columns.max(axis=1), -columns.min(axis=1))
        return peaks

    return np.concatenate(map_blocks(peaks_of, _blocks_of(coefficients, coefficients.dtype)))


def _peaks_by_draft(coefficients: Coefficients, draft: Draft) -> Array:
    """The draft says where the largest entry is, its value comes in full precision."""

    def peaks_of(start: int, stop: int) -> Array:
        block = draft.core(start, stop)
        where = np.abs(block, out=block).argmax(axis=1)
        rows = np.arange(start, stop)
        peaks: Array = np.where(where == rows, 0, np.abs(draft.pairs(rows, where[:, None])[:, 0]))
        return peaks

    return np.concatenate(map_blocks(peaks_of, _blocks_of(coefficients, np.dtype(np.float32))))


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
