"""Self-expression coefficients C with X ≈ XC, and the record of how a solver reached them.

A representation is a pure function of samples (or of their kernel matrix) and keyword parameters that returns
:class:`Coefficients`, in which column i represents sample i. Some solvers never store C, others end with a dense,
sparse or factorised matrix; readers of blocks need not know which.
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
"""Function that computes rows ``start:stop`` of a matrix on demand."""


@dataclass(frozen=True)
class Trace:
    """Record the convergence of an iterative solver, one entry per iteration (or per check).

    A closed form has no trace. ``primal`` and ``dual`` are the relative residuals that are compared with the tolerance;
    ``objective`` is filled if the solver computes it.
    """

    converged: bool
    n_iter: int
    primal: list[float] = field(default_factory=list)
    dual: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)


class Factors(NamedTuple):
    """Hold the singular value decomposition ``left @ diag(singular_values) @ right.T`` of a low-rank matrix."""

    left: Array
    singular_values: Array
    right: Array

    def dense(self) -> Array:
        """Return the matrix itself."""
        return np.asarray((self.left * self.singular_values) @ self.right.T)


class PermutedFactors(NamedTuple):
    """Hold a low-rank matrix whose row and column i are row and column ``place[i]`` of the factors.

    The factors are not reordered: products of reordered factors differ in the last digits on some processors.
    """

    factors: Factors
    place: Labels

    def sparse(self) -> Sparse:
        """Return the matrix as a CSC array."""
        return sparse.csc_array(self.factors.dense()[np.ix_(self.place, self.place)])


class Draft(NamedTuple):
    """Compute the core M cheaply in single precision, to find its largest entries before computing them exactly.

    ``core(start, stop)`` gives rows of M in single precision, up to a common factor; ``pairs(rows, columns)`` gives the
    chosen entries of M in double precision.
    """

    core: Blocks
    pairs: Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Coefficients:
    """Hold self-expression coefficients C (n × n), whose column i represents sample i.

    ``columns(start, stop)`` returns columns ``start:stop`` of C as the *rows* of a fresh (stop − start, n) array that
    the caller may overwrite; ``rows(start, stop)`` does the same for rows of C. Graph builders read C only through
    these two. ``dense()`` and ``sparse()`` return C as a whole.
    """

    n_samples: int
    dtype: np.dtype[Any]
    columns: Blocks
    rows: Blocks
    trace: Trace | None = None
    penalty: float | None = None
    """λ of a ridge representation as used."""
    condition: float | None = None
    """Estimated condition number of the system that was solved."""
    residual: float | None = None
    """Measured relative error of its solution."""
    core: Blocks | None = None
    """Rows ``start:stop`` of a symmetric hollow matrix M with C = M diag(s), s > 0, if there is one; read only."""
    array: Array | None = None
    """C as a whole, if the solver stores it dense."""
    matrix: Sparse = None
    """C as a whole (CSC), if the solver stores it sparse."""
    signed: Sparse = None
    """The largest entries of each column with their signs, where `matrix` holds what a rule made of them."""
    factors: Factors | None = None
    """Singular value decomposition of C, if the solver ends with one."""
    draft: Draft | None = None
    cells: Any = None
    """Cells of the samples, if the solver searches in them: new samples are looked for there too."""
    of_core: Callable[[Array, Array], Array] | None = None
    """Entries of C from entries of the core and their column numbers."""
    enlarge: int = 1
    """Factor on the usual block size; above 1 if a block is a matrix product, which is slow for a dozen rows."""

    def dense(self) -> Array:
        """Return C as an (n, n) array; it may be the solver's own array, so treat it as read only."""
        if self.array is not None:
            return self.array
        if self.matrix is not None:
            return np.asarray(self.matrix.toarray())
        if self.factors is not None:
            return self.factors.dense()
        transposed = np.empty((self.n_samples, self.n_samples), dtype=self.dtype)
        for start, stop in self.blocks():
            transposed[start:stop] = self.columns(start, stop)
        return transposed.T

    def sparse(self) -> Sparse:
        """Return C as a CSC array of its nonzeros; it may be the solver's own array, so treat it as read only."""
        if self.matrix is not None:
            return self.matrix
        blocks = [sparse.csr_array(self.columns(start, stop)) for start, stop in self.blocks()]
        return sparse.vstack(blocks, format="csr").T

    def blocks(self, itemsize: int | None = None) -> list[tuple[int, int]]:
        """Return ranges of columns or rows to read at a time, as numbers of `itemsize` bytes if given."""
        return row_blocks(self.n_samples, self.n_samples * (itemsize or self.dtype.itemsize) // self.enlarge)


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
    """Wrap a sparse coefficient matrix (any SciPy format), stored by columns since rows are read at most once."""
    by_column = C.tocsc()
    return Coefficients(
        n_samples=C.shape[0],
        dtype=C.dtype,
        columns=lambda start, stop: by_column[:, start:stop].T.toarray(),
        rows=lambda start, stop: by_column[start:stop].toarray(),
        trace=trace,
        matrix=by_column,
    )


def from_core(core: Blocks, scale: Array, apply: Callable[..., Array] = np.multiply, **found: Any) -> Coefficients:
    """Wrap C = M diag(s) by its symmetric hollow core M; s is `scale`, or one over it where `apply` divides by it."""
    return Coefficients(
        n_samples=len(scale),
        dtype=scale.dtype,
        columns=lambda start, stop: apply(core(start, stop), scale[start:stop, None]),
        rows=lambda start, stop: apply(core(start, stop), scale),
        core=core,
        of_core=lambda values, points: apply(values, scale[points]),
        **found,
    )


def from_factors(factors: Factors, trace: Trace | None = None) -> Coefficients:
    """Wrap low-rank coefficients without forming an n × n array."""
    left, right = factors.left * factors.singular_values, factors.right
    return Coefficients(
        n_samples=len(left),
        dtype=left.dtype,
        columns=lambda start, stop: right[start:stop] @ left.T,
        rows=lambda start, stop: left[start:stop] @ right.T,
        trace=trace,
        factors=factors,
    )
