"""What every representation returns: the coefficients, read block by block, and how they were reached.

A representation is a pure function of points (or of their kernel matrix) and keyword parameters that returns
`Coefficients`: C with X ≈ XC, column i for point i. Some never store C, some end with a dense, a sparse or a factorised
one; who reads blocks need not know which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from subspaces.utils.blocks import row_blocks
from subspaces.utils.types import Array, Labels, Sparse

Blocks = Callable[[int, int], Array]
"""Rows ``start:stop`` of a matrix, made when they are asked for."""


@dataclass(frozen=True)
class Trace:
    """Convergence record of an iterative solver, one entry per iteration (or per check).

    A closed form has no trace. ``primal`` and ``dual`` are relative residuals, the quantities compared
    with the tolerance; ``objective`` is filled when the solver computes it.
    """

    converged: bool
    n_iter: int
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)


class Factors(NamedTuple):
    """Singular value decomposition ``left @ diag(singular_values) @ right.T`` of a matrix of low rank."""

    left: Array
    singular_values: Array
    right: Array

    def dense(self) -> Array:
        """The matrix itself."""
        return np.asarray((self.left * self.singular_values) @ self.right.T)


class PermutedFactors(NamedTuple):
    """A matrix of low rank whose row and column of point i are number ``place[i]`` of the factors'.

    Reordered factors would give other last digits on some processors.
    """

    factors: Factors
    place: Labels

    def sparse(self) -> Sparse:
        """The matrix as a CSC array."""
        return sparse.csc_array(self.factors.dense()[np.ix_(self.place, self.place)])


class Draft(NamedTuple):
    """The core M where single precision makes it much cheaper: enough to say which entries are the largest.

    ``core(start, stop)`` gives rows of M in single precision and up to a factor, the caller's own; ``pairs(rows,
    columns)`` those entries that matter as they are.
    """

    core: Blocks
    pairs: Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Coefficients:
    """Self-expression coefficients C (n × n), column i represents point i, never copied as a whole.

    ``columns(start, stop)`` gives columns ``start:stop`` of C as the *rows* of a fresh (stop − start, n)
    array the caller may overwrite; ``rows(start, stop)`` does the same for the rows of C. The graph
    builders read C through these two only, so a closed form that never stores C and a solver that ends with
    a dense or sparse matrix look alike to them. ``dense()`` and ``sparse()`` give C as a whole.
    """

    n_samples: int
    dtype: np.dtype[Any]
    columns: Blocks
    rows: Blocks
    trace: Trace | None = None
    penalty: float | None = None
    """λ that a ridge representation really used."""
    condition: float | None = None
    """Condition number of the system that was solved, estimated."""
    residual: float | None = None
    """Relative error with which it was solved, measured."""
    core: Blocks | None = None
    """Rows ``start:stop`` of a symmetric hollow matrix M with C = M diag(s), s > 0, where there is one; read only."""
    array: Array | None = None
    """The whole of C where the solver stores it."""
    matrix: Sparse = None
    """The whole of C (CSC) where it is sparse from the start."""
    factors: Factors | None = None
    """The singular value decomposition of C where the solver ends with one."""
    draft: Draft | None = None
    model: Any = None
    """What represents new points in the same way, where the solver has such a thing."""
    of_core: Callable[[Array, Array], Array] | None = None
    """Entries of C from those of the core and the numbers of their columns."""
    largest: Callable[[int, int, int, Array | None], tuple[Array, Array]] | None = None
    """``largest(start, stop, k, weights)``: columns, in increasing order, and values of the k largest magnitudes of
    rows of the core, each entry times the sum of the weights of its row and column; where those are found more cheaply
    than read."""
    enlarge: int = 1
    """How many times the usual size of a block to read: more where each is a product, slow for a dozen rows."""

    def dense(self) -> Array:
        """C as an (n, n) array, with its signs: the solver's own array where it stores one, so read only."""
        if self.array is not None:
            return self.array
        if self.matrix is not None:
            return np.asarray(self.matrix.toarray())
        if self.factors is not None:
            return self.factors.dense()
        transposed = np.empty((self.n_samples, self.n_samples), dtype=self.dtype)
        for start, stop in self._blocks():
            transposed[start:stop] = self.columns(start, stop)
        return transposed.T

    def sparse(self) -> Sparse:
        """C as a CSC array of its nonzeros: the solver's own where it stores one, so read only."""
        if self.matrix is not None:
            return self.matrix
        blocks = [sparse.csr_array(self.columns(start, stop)) for start, stop in self._blocks()]
        return sparse.vstack(blocks, format="csr").T

    def _blocks(self) -> list[tuple[int, int]]:
        return row_blocks(self.n_samples, self.n_samples * self.dtype.itemsize // self.enlarge)


def from_dense(C: Array, trace: Trace | None = None) -> Coefficients:
    """Wrap a dense coefficient matrix."""
    return Coefficients(
        n_samples=C.shape[0],
        dtype=C.dtype,
        columns=lambda start, stop: C[:, start:stop].T.copy(),
        rows=lambda start, stop: C[start:stop].copy(),
        trace=trace,
        array=C,
    )


def from_sparse(C: Sparse, trace: Trace | None = None) -> Coefficients:
    """Wrap a sparse coefficient matrix (any SciPy format), by its columns: rows are asked for once or never."""
    by_column = C.tocsc()
    return Coefficients(
        n_samples=C.shape[0],
        dtype=C.dtype,
        columns=lambda start, stop: by_column[:, start:stop].T.toarray(),
        rows=lambda start, stop: by_column[start:stop].toarray(),
        trace=trace,
        matrix=by_column,
    )


def from_factors(factors: Factors, trace: Trace | None = None) -> Coefficients:
    """Wrap coefficients of low rank; no n × n array is made."""
    left, right = factors.left * factors.singular_values, factors.right
    return Coefficients(
        n_samples=len(left),
        dtype=left.dtype,
        columns=lambda start, stop: right[start:stop] @ left.T,
        rows=lambda start, stop: left[start:stop] @ right.T,
        trace=trace,
        factors=factors,
    )
