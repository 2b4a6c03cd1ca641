"""Keep the largest entries of each column of C, block by block while the coefficients are produced.

Two rules. :func:`truncate` is the printed one (eq. 3.11): each column of C keeps its η largest entries.
:func:`truncate_symmetric` is what the authors' program does (and TRR's before it): |C| with each column divided by its
largest entry, plus its transpose, and of that symmetric matrix each column keeps its η largest entries. Either way
the affinity is afterwards W = |C_η| + |C_η|ᵀ.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from subspaces.representation.coefficients import Coefficients, Draft
from subspaces.utils.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.utils.ties import largest_of_few, largest_per_row, tie_width, top_columns, top_places
from subspaces.utils.types import Array, Sparse

RANKINGS = ("magnitude", "value")

_SPARE = 4  # entries of a column taken from a draft beyond those asked for: single precision may swap near equals
_SEARCH_BYTES = 2**27  # of a block that is searched on another device: a GPU wants large ones

Entries = tuple[Array, Array, Array]
"""Entries of some columns: their number in each column, row indices and values."""


def truncate(coefficients: Coefficients, n_nonzero: int | None, *, by: str = "magnitude") -> Sparse:
    """Keep the η = `n_nonzero` largest entries of each column (eq. 3.11 and 3.12), with their signs.

    Parameters
    ----------
    coefficients : Coefficients of any representation
    n_nonzero : η; n − 1 or more keeps everything off the diagonal, None the diagonal as well
    by : ``"magnitude"`` ranks by |c|; ``"value"`` by c itself, so that negative entries go first

    Returns
    -------
    csc_array of shape (n, n)
        No explicit zeros. Of entries that tie with the η-th largest (:mod:`subspaces.utils.ties`) those with the
        smallest row index stay.
    """
    n, whole = coefficients.n_samples, coefficients.matrix
    if whole is not None and (n_nonzero is None or np.diff(whole.indptr).max() <= n_nonzero):
        return whole  # nothing to cut
    n_nonzero = n if n_nonzero is None else min(n_nonzero, n - 1)
    if whole is not None and by == "magnitude":
        return largest_per_column(whole, n_nonzero)
    if coefficients.largest is not None and by == "magnitude" and n_nonzero + _SPARE < n:
        return _peaks_and_largest(coefficients, n_nonzero, by_search=True)[1]

    def one_block(start: int, stop: int) -> Entries:
        columns = coefficients.columns(start, stop)
        # a zero (the diagonal, or any of a sparse column) is not an entry: it must not shut out negative ones
        keys = np.abs(columns) if by == "magnitude" else np.where(columns != 0, columns, -np.inf)
        return largest_per_row(columns, keys, n_nonzero)

    return _from_blocks(map_blocks(one_block, coefficients.blocks()), n)


class Truncated(NamedTuple):
    """Hold both truncations of the same coefficients, η entries per column each."""

    symmetric: Sparse
    """Magnitudes, scaled and symmetrised."""
    coefficients: Sparse | None
    """C itself; None where it is not kept."""


def truncate_symmetric(coefficients: Coefficients, n_nonzero: int | None, *, keep: bool = True) -> Truncated:
    """Apply the rule of the authors' program and, with `keep`, truncate the coefficients themselves as well.

    With `keep` the first pass over the coefficients finds the η largest of each column, hence also the largest one, by
    which the second pass divides.
    """
    n, whole, asked = coefficients.n_samples, coefficients.matrix, n_nonzero
    n_nonzero = n if asked is None else min(asked, n - 1)
    if whole is not None:
        C = truncate(coefficients, asked) if keep else None
        return Truncated(largest_per_column(symmetrised(whole), n_nonzero), C)
    if coefficients.draft is not None and n_nonzero + _SPARE < n:
        return _symmetric_by_draft(coefficients, coefficients.draft, n_nonzero, keep)
    if coefficients.largest is not None and n_nonzero + _SPARE < n:
        return _symmetric_by_search(coefficients, n_nonzero, keep)
    peaks, C = _peaks_and_largest(coefficients, n_nonzero) if keep else (None, None)
    if peaks is None or coefficients.draft is not None:
        peaks = column_peaks(coefficients)

    def one_block(start: int, stop: int) -> Entries:
        columns = symmetrised_columns(coefficients, peaks, start, stop)
        return largest_per_row(columns, columns, n_nonzero)

    return Truncated(_from_blocks(map_blocks(one_block, coefficients.blocks()), n), C)


def _peaks_and_largest(coefficients: Coefficients, n_nonzero: int, by_search: bool = False) -> tuple[Array, Sparse]:
    """Return what :func:`column_peaks` does, and the `n_nonzero` largest entries of each column of C."""
    n, of_core = coefficients.n_samples, coefficients.of_core
    read = coefficients.core or coefficients.columns

    def one_block(start: int, stop: int) -> tuple[Array, Entries]:
        if by_search:
            counts, places, values = _searched(coefficients, start, stop, n_nonzero)
        else:
            block = read(start, stop)
            counts, places, values = largest_per_row(block, np.abs(block), n_nonzero)
        owner = np.repeat(np.arange(start, stop), counts)
        peaks = np.zeros(stop - start, dtype=coefficients.dtype)
        np.maximum.at(peaks, owner - start, np.abs(values))
        if of_core is not None:
            values = of_core(values, owner)
        return peaks, (counts, places, values)

    if by_search:  # one block after the other: the device has threads of its own
        parts = [one_block(*block) for block in _search_blocks(coefficients)]
    else:
        parts = map_blocks(one_block, coefficients.blocks())
    return np.concatenate([peaks for peaks, _ in parts]), _from_blocks([entries for _, entries in parts], n)


def _symmetric_by_draft(coefficients: Coefficients, draft: Draft, n_nonzero: int, keep: bool) -> Truncated:
    """Apply the symmetric rule where n² products are made in single precision and the few that matter in double."""
    n = coefficients.n_samples
    peaks, C = _peaks_by_draft(coefficients, draft, n_nonzero if keep else 1)
    inverse = 1 / np.where(peaks > 0, peaks, 1)
    weights = (inverse / inverse.max()).astype(np.float32)
    step = max(1, BLOCK_BYTES // (4 * n * weights.itemsize))

    def one_block(start: int, stop: int) -> Entries:
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
        return largest_of_few(columns, values, n_nonzero)

    blocks = coefficients.blocks(weights.itemsize)
    return Truncated(_from_blocks(map_blocks(one_block, blocks), n), C if keep else None)


def _symmetric_by_search(coefficients: Coefficients, n_nonzero: int, keep: bool) -> Truncated:
    """Apply the symmetric rule where another device finds the largest entries and only these are fetched."""
    n = coefficients.n_samples
    peaks, C = _peaks_and_largest(coefficients, n_nonzero if keep else 1, by_search=True)
    divisors = np.where(peaks > 0, peaks, 1)
    with np.errstate(over="ignore"):
        weights = 1 / divisors
    if not np.isfinite(weights).all():  # the plain way divides instead
        return truncate_symmetric(replace(coefficients, largest=None), n_nonzero, keep=keep)
    parts = [_searched(coefficients, *block, n_nonzero, weights) for block in _search_blocks(coefficients)]
    return Truncated(_from_blocks(parts, n), C if keep else None)


def _searched(coefficients: Coefficients, start: int, stop: int, k: int, weights: Array | None = None) -> Entries:
    """Find the k largest of rows of the core, each entry times both weights; read rows with many ties as a whole."""
    assert coefficients.largest is not None
    assert coefficients.core is not None
    columns, values = coefficients.largest(start, stop, k + _SPARE, weights)
    ordered = np.sort(np.abs(values), axis=1)
    least, kth, best = ordered[:, :1], ordered[:, _SPARE : _SPARE + 1], ordered[:, -1:]
    for i in np.flatnonzero((least > 0) & (kth - least <= 2 * tie_width(kth, best))).tolist():
        row = coefficients.core(start + i, start + i + 1)
        if weights is not None:
            row = np.abs(row) * (weights[start + i] + weights)
        _, chosen, found = largest_per_row(row, np.abs(row), k)
        values[i] = 0  # is not an entry
        columns[i, : len(chosen)], values[i, : len(chosen)] = chosen, found
    return largest_of_few(columns, values, k)


def _search_blocks(coefficients: Coefficients) -> list[tuple[int, int]]:
    return row_blocks(coefficients.n_samples, coefficients.n_samples * coefficients.dtype.itemsize, _SEARCH_BYTES)


def _from_blocks(parts: list[Entries], n: int) -> Sparse:
    """Build a CSC array from the entries of its columns."""
    counts, indices, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = np.int32 if indptr[-1] < 2**31 else np.int64
    return sparse.csc_array((values, indices.astype(index_type), indptr.astype(index_type)), shape=(n, n))


def largest_per_column(C: Sparse, k: int) -> Sparse:
    """Keep the k entries of largest magnitude of each column of a CSC array; of equal ones the first rows.

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
            kept[place.ravel()[top_places(keys, k)]] = True
    kept &= C.data != 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[C.indptr]
    return sparse.csc_array((C.data[kept], C.indices[kept], indptr.astype(C.indptr.dtype)), shape=C.shape)


def symmetrised(C: Sparse) -> Sparse:
    """Return Ā + Āᵀ of a sparse C, Ā being |C| with each column divided by its largest entry (see the module)."""
    magnitude = abs(sparse.csc_array(C))
    peaks = magnitude.max(axis=0).toarray().ravel()
    magnitude.data /= np.repeat(np.where(peaks > 0, peaks, 1), np.diff(magnitude.indptr))
    return sparse.csc_array(magnitude + magnitude.T)


def column_peaks(coefficients: Coefficients) -> Array:
    """Return the largest magnitude of each column of C, or of its symmetric core M, for the symmetric graph."""
    if coefficients.matrix is not None:
        return abs(coefficients.matrix).max(axis=0).toarray().ravel()
    if coefficients.draft is not None:
        return _peaks_by_draft(coefficients, coefficients.draft)[0]
    read = coefficients.core or coefficients.columns

    def peaks_of(start: int, stop: int) -> Array:
        columns = read(start, stop)
        return np.maximum(columns.max(axis=1), -columns.min(axis=1))

    return np.concatenate(map_blocks(peaks_of, coefficients.blocks()))


def _peaks_by_draft(coefficients: Coefficients, draft: Draft, n_nonzero: int = 1) -> tuple[Array, Sparse]:
    """Return column peaks and the largest entries of C: the draft finds them, their values are in full precision."""
    n, of_core = coefficients.n_samples, coefficients.of_core
    assert of_core is not None

    def one_block(start: int, stop: int) -> tuple[Array, Entries]:
        block = draft.core(start, stop)
        np.abs(block, out=block)
        columns = top_columns(block, min(n_nonzero + _SPARE, n))
        rows = np.arange(start, stop)
        values = draft.pairs(rows, columns)
        values[columns == rows[:, None]] = 0
        where = np.take_along_axis(block, columns, axis=1).argmax(axis=1)[:, None]
        top = np.take_along_axis(columns, where, axis=1)
        peaks: Array = np.where(top == rows[:, None], 0, np.abs(draft.pairs(rows, top)))[:, 0]
        counts, columns, values = largest_of_few(columns, values, min(n_nonzero, n - 1))
        return peaks, (counts, columns, of_core(values, np.repeat(rows, counts)))

    parts = map_blocks(one_block, coefficients.blocks(np.dtype(np.float32).itemsize))
    return np.concatenate([peaks for peaks, _ in parts]), _from_blocks([entries for _, entries in parts], n)


def symmetrised_columns(coefficients: Coefficients, peaks: Array, start: int, stop: int) -> Array:
    """Return columns ``start:stop`` of Ā + Āᵀ, where Ā is |C| with each column divided by its largest entry.

    With C = M diag(s) the factors s cancel in Ā: the symmetric core M gives the same graph and is read once.
    """
    divisors = np.where(peaks > 0, peaks, 1)  # a column of zeros stays zero
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
