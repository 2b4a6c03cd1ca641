"""Choose what a published method does to its coefficients, for any method: C → T with W = |T| + |T|ᵀ.

Two rules keep the largest entries of each column, block by block while the coefficients are produced. :func:`truncate`
is the printed one (eq. 3.11): each column of C keeps its η largest entries. :func:`truncate_symmetric` is what the
authors' program does (and TRR's before it): |C| with each column divided by its largest entry, plus its transpose, and
of that symmetric matrix each column keeps its η largest entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple, get_args

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from subspaces.graphs.postprocessing import dscnet_affinity, keep_column_mass, row_space_affinity, scale_columns_to_max
from subspaces.representation.coefficients import Coefficients, Draft, Factors
from subspaces.utils import memory
from subspaces.utils.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.utils.choices import Ranking
from subspaces.utils.ordering import largest_of_few, largest_per_row, top_columns, top_places
from subspaces.utils.types import Array, Sparse

RANKINGS = get_args(Ranking)

_SPARE = 4  # entries of a column taken from a draft beyond those asked for: single precision may swap near equals

Entries = tuple[Array, Array, Array]
"""Entries of some columns: their number in each column, row indices and values."""

_SMALL = 2**24  # bytes that any machine has
_COPIES = 4.5  # of the entries of a graph and their indices that exist at once while it is built and used, measured
_PARAMS = {
    "symmetric": (),
    "column": (),
    "mass": ("share",),
    "row_space": ("power",),
    "dscnet": ("subspace_dim", "share", "power"),
    "unit": (),
    "larger": ("share",),
}

GRAPHS = tuple(_PARAMS)


@dataclass(frozen=True)
class GraphRule:
    """Describe a treatment of coefficients.

    ================ ========================================================================== =================
    name             treatment                                                                  params
    ================ ========================================================================== =================
    ``"column"``     η largest per column, as printed for KTRR and TRR (LSR: η = None)
    ``"symmetric"``  columns to maximum 1, symmetrised, η largest per column (authors' program)
    ``"mass"``       largest entries until they hold `share` of the column, columns to max. 1   share (1)
                     (SSC)
    ``"row_space"``  cosines between rows of U Σ^½ of C's SVD, to a `power` (LRR)               power (4)
    ``"dscnet"``     mass, rank d·L + 1, row-space cosines to a `power` (DSC-Net)               subspace_dim (12),
                                                                                                share (0.04),
                                                                                                power (8)
    ``"unit"``       columns to length 1 (EnSC, SSC-OMP)
    ``"larger"``     mass, then the larger of c_ij and c_ji (SMCE)                              share (0.95)
    ================ ========================================================================== =================

    `n_nonzero` (η) and `by` matter to the first two only.
    """

    name: str = "symmetric"
    n_nonzero: int | None = None
    by: str = "magnitude"
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse parameters that the treatment does not have, or that make no sense."""
        unknown = set(self.params) - set(_PARAMS[self.name])
        if unknown:
            allowed = list(_PARAMS[self.name]) or "nothing"
            raise ValueError(f"graph_params of graph={self.name!r} may hold {allowed}; got {sorted(unknown)}.")
        for name, value in self.params.items():
            if not isinstance(value, Real):
                raise ValueError(f"{name} in graph_params must be a number; got {value!r}.")
        if self.n_nonzero is not None and (not isinstance(self.n_nonzero, Integral) or self.n_nonzero < 1):
            raise ValueError(f"n_nonzero must be a positive integer or None; got {self.n_nonzero!r}.")
        if self.by not in RANKINGS:
            raise ValueError(f"by must be one of {list(RANKINGS)}; got {self.by!r}.")
        share = self.params.get("share", 1)
        if not 0 < share <= 1:
            raise ValueError(f"share must be in (0, 1], got {share}; 1 keeps every entry.")

    def check_number(self, n_clusters: int | None) -> None:
        """Refuse a treatment that needs the number of clusters where it is not known."""
        if self.name == "dscnet" and n_clusters is None:
            raise ValueError('graph="dscnet" needs n_clusters: the rank it keeps follows from it.')

    def require_memory(self, n: int, is_sparse: bool) -> None:
        """Refuse a graph that does not fit: one that joins (nearly) all pairs is larger than the matrix it comes from.

        Sparse coefficients stay sparse under the rules that keep single entries.
        """
        truncates = self.name in ("column", "symmetric")
        kept = min(self.n_nonzero, n) if truncates and self.n_nonzero is not None else n
        needed = int(_COPIES * n * kept * (8 + 4))
        grows = self.name in ("row_space", "dscnet") or (truncates and not is_sparse)
        if grows and needed > _SMALL:
            memory.require(
                needed,
                f"the graph of {n} points with up to {kept} edges each",
                "Keep fewer coefficients per point (n_nonzero), or fit a sample and let predict label the rest.",
            )


class Built(NamedTuple):
    """Hold what a rule made of coefficients: sparse T, whose affinity is |T| + |T|ᵀ, and what was kept of C.

    `coefficients` are the entries of C that were kept, with sign; the factors of C where it is of low rank; or None.
    """

    treated: Sparse
    coefficients: Sparse | Factors | None


def build_graph(
    coefficients: Coefficients, rule: GraphRule, n_clusters: int | None = None, *, keep: bool = True
) -> Built:
    """Treat coefficients the way a published method does; `keep` the truncated coefficients themselves as well.

    Under ``"row_space"`` and ``"dscnet"`` nearly every pair of samples is joined: the result is sparse in form, entries
    that vanish beside the largest are left out.
    """
    rule.check_number(n_clusters)
    params = dict(rule.params)
    if rule.name == "column":
        C = truncate(coefficients, rule.n_nonzero, by=rule.by)
        return Built(C, C)
    if rule.name == "symmetric":
        return Built(*truncate_symmetric(coefficients, rule.n_nonzero, keep=keep))
    if rule.name == "mass":
        C = keep_column_mass(coefficients, params.get("share", 1.0))
        return Built(scale_columns_to_max(C), C)
    if rule.name == "unit":
        C = coefficients.sparse()
        return Built(normalize(C, axis=0).astype(np.result_type(C.dtype, np.float32)), C)
    if rule.name == "larger":
        C = keep_column_mass(coefficients.sparse(), params.get("share", 0.95))
        half = abs(C).maximum(abs(C).T).tocsc(copy=True)
        half.data /= 2  # the affinity adds the transpose
        return Built(half, C)
    kept: Sparse | Factors | None = coefficients.factors
    if kept is None and rule.n_nonzero is not None:
        kept = truncate(coefficients, rule.n_nonzero, by=rule.by)
    if rule.name == "row_space":
        return Built(_half_sparse(row_space_affinity(coefficients, **params)), kept)
    assert n_clusters is not None
    subspace_dim = params.pop("subspace_dim", 12)
    return Built(_half_sparse(dscnet_affinity(coefficients, n_clusters, subspace_dim, **params)), kept)


def _half_sparse(W: Array) -> Sparse:
    """Return W/2 of a symmetric W, without its diagonal and what rounding cannot tell from zero; change W."""
    np.fill_diagonal(W, 0)
    smallest = np.finfo(W.dtype).eps * W.max(initial=0)
    index_type = np.int32 if W.size < 2**31 else np.int64

    def compress(start: int, stop: int) -> tuple[Array, Array, Array]:
        rows = W[start:stop]
        kept = (rows >= smallest) & (rows > 0)
        return rows[kept] / 2, np.nonzero(kept)[1].astype(index_type), np.count_nonzero(kept, axis=1)

    # by rows, which are the columns: SciPy's own conversion sorts all entries
    parts = map_blocks(compress, row_blocks(len(W), W[:1].nbytes))
    data, indices, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sparse.csc_array((data, indices, np.append(0, np.cumsum(counts)).astype(index_type)), shape=W.shape)


# ------------------------------------------------------------------ the largest entries


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
        No explicit zeros. Of entries that tie with the η-th largest (:mod:`subspaces.utils.ordering`) those with the
        smallest row index stay.
    """
    n, whole = coefficients.n_samples, coefficients.matrix
    if whole is not None and (n_nonzero is None or np.diff(whole.indptr).max() <= n_nonzero):
        return whole  # nothing to cut
    n_nonzero = n if n_nonzero is None else min(n_nonzero, n - 1)
    if whole is not None and by == "magnitude":
        return largest_per_column(whole, n_nonzero)

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
    peaks, C = _peaks_and_largest(coefficients, n_nonzero) if keep else (None, None)
    if peaks is None or coefficients.draft is not None:
        peaks = column_peaks(coefficients)

    def one_block(start: int, stop: int) -> Entries:
        columns = symmetrised_columns(coefficients, peaks, start, stop)
        return largest_per_row(columns, columns, n_nonzero)

    return Truncated(_from_blocks(map_blocks(one_block, coefficients.blocks()), n), C)


def _peaks_and_largest(coefficients: Coefficients, n_nonzero: int) -> tuple[Array, Sparse]:
    """Return what :func:`column_peaks` does, and the `n_nonzero` largest entries of each column of C."""
    n, of_core = coefficients.n_samples, coefficients.of_core
    read = coefficients.core or coefficients.columns

    def one_block(start: int, stop: int) -> tuple[Array, Entries]:
        block = read(start, stop)
        counts, places, values = largest_per_row(block, np.abs(block), n_nonzero)
        owner = np.repeat(np.arange(start, stop), counts)
        peaks = np.zeros(stop - start, dtype=coefficients.dtype)
        np.maximum.at(peaks, owner - start, np.abs(values))
        if of_core is not None:
            values = of_core(values, owner)
        return peaks, (counts, places, values)

    peaks, entries = zip(*map_blocks(one_block, coefficients.blocks()), strict=True)
    return np.concatenate(peaks), _from_blocks(entries, n)


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


def _from_blocks(parts: Sequence[Entries], n: int) -> Sparse:
    """Build a CSC array from the entries of its columns."""
    counts, indices, values = map(np.concatenate, zip(*parts, strict=True))
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
    peaks, entries = zip(*parts, strict=True)
    return np.concatenate(peaks), _from_blocks(entries, n)


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
