"""Shared parts of the low-rank representations: reduction to the row space, shrinkage of singular values, residuals.

The second half is shared by those with entrywise errors (LRR1, LatLRR): penalties, start and stages.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation.coefficients import Factors, Trace
from subspaces.utils.decompositions import cholesky, eigenpairs_above, eigh, svd
from subspaces.utils.types import Array

RELAXATION = 1.6
"""Over-relaxation of ADMM: any value below 2 converges; this one took the fewest iterations on faces and on
synthetic subspaces (a third fewer than none)."""

SUBSPACE_SIZE, SUBSPACE_SHARE = 256, 0.6
"""Directions from which on, and share of them up to which, singular vectors are updated instead of computed."""

SMALLEST_LEVEL = 32
"""Directions below which a coarser level costs more to set up than it saves."""

COEFFICIENT_PENALTY = 3.0
"""Penalty of ADMM for the coefficients. Coefficients and their multipliers have singular values up to one, so that a
penalty near one needs no tuning to the data: on faces 1 to 4 were all within a fifth of the fewest iterations."""

THRESHOLD_SHARE = 1 / 3
"""Entrywise threshold over the root mean square of the data at a penalty of one for the coefficients.

It fixes the ratio of the penalties of errors and coefficients. On faces and on synthetic subspaces with dense, sparse
and gross errors this share was within a few iterations of the best one over a hundredfold range of `reg`, and better
than rules that adapt; a constant penalty keeps the guarantee of convergence.
"""

SINGLE_PRECISION_SIZE = 500_000
"""Entries from which data may be iterated on in single precision: below, there is no time to save."""

STAGE_SHARE = 0.75
"""Share of all directions above which a stage on some of them saves nothing."""

STAGES = ("leading", "turned", "all")
"""Subspaces in which coefficients are sought in turn, see `stage_dictionary`."""

SLACK = {"leading": 1.0, "turned": 0.2, "all": 1.0}
"""Multiple of the tolerance at which a stage is done. Adding directions raises the residuals about fivefold: the stage
before the last is solved as much further."""


class LowRank(NamedTuple):
    """Hold the matrix ``left @ right.T`` with its nonzero singular values.

    ``right`` has orthonormal columns; those of ``left`` are orthogonal and as long as the singular values.
    """

    left: Array
    right: Array
    singular_values: Array

    def dense(self) -> Array:
        """Return the matrix itself."""
        return np.asarray(self.left @ self.right.T)

    def represented_by(self, basis: Array) -> Factors:
        """Return the singular value decomposition of ``basis @ B.T`` for this matrix B and an orthonormal basis."""
        singular_values = self.singular_values.astype(basis.dtype)
        left = basis @ self.right.astype(basis.dtype, copy=False)
        return Factors(left, singular_values, self.left.astype(basis.dtype, copy=False) / singular_values)


def scaled_copy(X: Array) -> tuple[Array, float]:
    """Return `X` over a power of two near its largest entry, as float32 or float64, and that power.

    The problems only trade the scale of the data against `reg`; at scale one their squares neither underflow
    nor overflow in float32. A power of two changes no digit.
    """
    X = np.asarray(X)
    largest = float(np.abs(X).max(initial=0))
    scale = 2.0 ** float(np.frexp(largest)[1]) if np.isfinite(largest) else 1.0
    return X / np.asarray(scale, dtype=X.dtype if X.dtype == np.float32 else np.float64), scale


def squared_norm(M: Array) -> float:
    """Return the squared Frobenius norm."""
    return float(np.vdot(M, M))


def thin_svd(X: Array) -> tuple[Array, Array, Array]:
    """Return V (n, r), σ (r,) decreasing and U (m, r) with ``X = V @ diag(σ) @ U.T``, r the numerical rank.

    Samples are rows here, so V spans the row space of the papers.
    """
    n, m = X.shape
    epsilon = float(np.finfo(X.dtype).eps)
    # The Gram matrix of the short side is several times cheaper than an SVD, but squares the condition number:
    # taken only where both factors stay orthonormal to sqrt(epsilon).
    values, short = eigh(X.T @ X if m <= n else X @ X.T)
    if values[0] > values[-1] * epsilon**0.5:
        singular_values = np.sqrt(values[::-1])
        short = np.ascontiguousarray(short[:, ::-1])
        if m <= n:
            return (X @ short) / singular_values, singular_values, short
        return short, singular_values, (X.T @ short) / singular_values
    V, singular_values, Ut = svd(X)
    rank = int(np.count_nonzero(singular_values > singular_values[0] * epsilon * max(n, m)))
    return np.ascontiguousarray(V[:, :rank]), singular_values[:rank], np.ascontiguousarray(Ut[:rank].T)


def singular_value_shrinkage(M: Array, expected_rank: int, threshold: float = 1.0) -> LowRank:
    """Apply the proximal operator of the nuclear norm to a tall matrix `M`: lower every singular value by `threshold`.

    The eigenvectors of the small Gram matrix replace an SVD. The error of a kept singular value s is about
    ``epsilon * s_max**2 / s``, and the solvers here are scaled so that ``s_max`` is of order one and s above
    `threshold`, which is too. `expected_rank` (the rank found last time) only selects the faster eigensolver.
    """
    gram = M.T @ M
    if 3 * expected_rank < len(gram):
        values, right = eigenpairs_above(gram, threshold**2)
    else:
        values, right = eigh(gram)
        first = int(np.searchsorted(values, threshold**2, side="right"))
        values, right = values[first:], right[:, first:]
    before = np.sqrt(values)
    return LowRank((M @ right) * ((before - threshold) / before), right, before - threshold)


class Shrinkage:
    """Apply `singular_value_shrinkage` to one iterate after the other, warm started.

    From one iterate to the next the leading right singular vectors hardly turn. One step of subspace iteration from
    the last ones, with room for a few more, replaces the eigendecomposition wherever they are at most
    `SUBSPACE_SHARE` of all. It is inexact only in directions that have just turned, and exact in the limit; a solver
    that meets its tolerance calls `confirmed` and goes on with exact steps if the last one was not.
    """

    def __init__(self, expected_rank: int, threshold: float = 1.0) -> None:
        self.rank = expected_rank
        self.threshold = threshold
        self.basis: Array | None = None
        self.is_exact = True
        self.stays_exact = False
        self.calls = 0

    def __call__(self, M: Array) -> LowRank:
        """Lower every singular value of the tall matrix `M` by the threshold, to zero at least."""
        low = None if self.stays_exact or self.basis is None else self._from_basis(M, self.basis)
        self.is_exact = low is None
        if low is None:
            low = self._exact(M)
        self.rank = len(low.singular_values)
        self.calls += 1
        return low

    def confirmed(self) -> bool:
        """Tell whether the last step was exact, and make all later ones exact."""
        self.stays_exact = True
        return self.is_exact

    def _exact(self, M: Array) -> LowRank:
        n_directions = M.shape[1]
        room = self.rank + self.rank // 8 + 8
        if self.stays_exact or n_directions < SUBSPACE_SIZE or room > SUBSPACE_SHARE * n_directions:
            self.basis = None
            return singular_value_shrinkage(M, self.rank, self.threshold)
        values, vectors = eigh(M.T @ M)
        self.basis = vectors[:, -room:]
        return self._shrunk(M, values, vectors)

    def _from_basis(self, M: Array, basis: Array) -> LowRank | None:
        """Return the step in the space of `basis` after one product with the Gram matrix, None if it is too small."""
        gram = M.T @ M
        product = gram @ basis
        try:
            root, _ = cholesky(product.T @ product, largest_jitter=0)
        except LinAlgError:  # a direction has vanished: the exact step is the answer
            return None
        Q = solve_triangular(root, product.T, lower=True, overwrite_b=True, check_finite=False).T
        product = gram @ Q
        values, rotation = eigh(Q.T @ product)
        # A direction above the threshold that the space misses shows in what the Gram matrix does outside of it.
        outside = np.random.default_rng(0).standard_normal((len(gram), 8)).astype(gram.dtype)
        for _ in range(6):
            outside -= Q @ (Q.T @ outside)
            outside /= np.linalg.norm(outside, axis=0)
            outside, before = gram @ outside, outside
        missed = float(np.einsum("ij,ij->j", outside, before).max())
        if max(missed, float(values[0])) > self.threshold**2:
            return None
        self.basis = Q @ rotation
        return self._shrunk(M, values, self.basis)

    def _shrunk(self, M: Array, values: Array, vectors: Array) -> LowRank:
        first = int(np.searchsorted(values, self.threshold**2, side="right"))
        before, right = np.sqrt(values[first:]), np.ascontiguousarray(vectors[:, first:])
        return LowRank((M @ right) * ((before - self.threshold) / before), right, before - self.threshold)


def squared_error_match(spectrum: Array, reg: float, n_terms: int) -> tuple[Array, float]:
    r"""Return a closed-form start: the solution of the squared-error problem nearest to one with an error norm.

    An error norm that is a sum of `n_terms` sizes acts like squared errors of weight ``reg / size``. With one
    common size, :math:`\min \|B\|_* + \frac{reg}{2\,size} \|\Sigma(V^T - B)\|_F^2` has the solution
    :math:`B = \mathrm{diag}(kept) V^T`, :math:`kept_k = \max(0, 1 - size / (reg\,\sigma_k^2))`; the size is the root
    mean square of the errors that solution leaves, found by iteration. Returns the share of every direction that is
    kept, and the common size of the errors.
    """
    scale = float(np.sqrt(spectrum.sum() / n_terms))
    size = 1e-3 * scale
    for _ in range(100):
        kept = np.maximum(0, 1 - size / (reg * spectrum))
        # Where everything can be represented the size falls to zero; it only has to stay divisible.
        size = max(float(np.sqrt((spectrum * (1 - kept) ** 2).sum() / n_terms)), 1e-12 * scale)
    return kept, size


def levels(rank: int, n_kept: int) -> list[int]:
    """Return numbers of leading directions to solve on in turn, the last one all of them.

    A solution on the leading half of the spectrum is a few iterations away from the whole one, and an
    iteration there costs between a quarter and an eighth. So most iterations are spent where they are cheap.
    `n_kept` directions are expected to matter; a level without room for them would only mislead. The last
    level is the whole problem, hence the limit does not depend on the others.
    """
    sizes = []
    size = max(SMALLEST_LEVEL, 2 * n_kept)
    while size <= 0.8 * rank:
        sizes.append(size)
        size *= 2
    return [*sizes, rank]


class Residuals:
    """Collect the residuals of the iterations, compare them with the tolerance, and make the trace."""

    def __init__(self, tol: float, max_iter: int) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.primal: list[float] = []
        self.dual: list[float] = []
        self.objective: list[float] = []

    def budget(self, is_last_level: bool) -> int:
        """Return the iterations a level may take: all that remain, or half of them if a finer level follows."""
        remaining = self.max_iter - len(self.primal)
        return remaining if is_last_level else remaining // 2

    def add(self, primal: float, dual: float, objective: float, slack: float = 1.0) -> bool:
        """Record one iteration; return whether both residuals are within `slack` times the tolerance."""
        self.primal.append(primal)
        self.dual.append(dual)
        self.objective.append(objective)
        return max(primal, dual) <= slack * self.tol

    def trace(self) -> Trace:
        """Return the trace, with a ``ConvergenceWarning`` if the last residuals are above the tolerance."""
        converged = max(self.primal[-1], self.dual[-1]) <= self.tol
        if not converged:
            warnings.warn(
                f"stopped after max_iter={self.max_iter} iterations with relative residuals {self.primal[-1]:.1e} "
                f"(primal) and {self.dual[-1]:.1e} (dual) above tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        return Trace(converged, len(self.primal), self.primal, self.dual, self.objective)


def check_arguments(reg: float, tol: float, max_iter: int) -> float:
    """Return `reg` as a Python float, which leaves float32 arrays float32; refuse unusable arguments."""
    if not reg > 0:
        raise ValueError(f"reg must be positive, got {reg!r}; use numpy.inf for data without errors")
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}; 1e-3 is fast, 1e-6 accurate")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}")
    return float(reg)


def working_dtype(X: Array, tol: float) -> np.dtype[Any]:
    """Return the precision to iterate in: single for large data and tolerances a hundred times above its rounding."""
    return np.dtype(np.float32) if X.size >= SINGLE_PRECISION_SIZE and tol >= 1e-4 else X.dtype


def error_penalty(X: Array, reg: float) -> float:
    """Return the ADMM penalty of the errors of the data X, in units of that of the coefficients."""
    return reg / (THRESHOLD_SHARE * float(np.sqrt(squared_norm(X) / X.size)))


def entrywise_match(singular_values: Array, reg: float, n_entries: int) -> tuple[Array, Array]:
    r"""Return a start for entrywise errors, in the bases of the data, from `squared_error_match`.

    Entrywise errors have heavier tails than one common size has: two to three times the size gave a start with a
    lower objective on faces. Returns the share of every direction that is kept, and the singular values of the
    multiplier :math:`\frac{reg}{size} F`, from a formula without cancellation.
    """
    _, size = squared_error_match(singular_values**2, reg, n_entries)
    size *= 2.5
    kept = np.maximum(0, 1 - size / (reg * singular_values**2))
    return kept, np.minimum(reg / size * singular_values, 1 / singular_values)


class Dictionary(NamedTuple):
    """Hold the dictionary of a stage.

    ``rotation`` has its directions as columns (None: the leading ones of the data), ``atoms`` the data in them as
    orthogonal columns of lengths ``singular_values``.
    """

    rotation: Array | None
    atoms: Array
    singular_values: Array

    def restrict(self, M: Array) -> Array:
        """Return a copy of `M`, with one column per direction of the data, in the directions of the stage."""
        return M[:, : len(self.singular_values)].copy() if self.rotation is None else M @ self.rotation

    def extend(self, M: Array, n_directions: int) -> Array:
        """Return `M` in all directions of the data."""
        return np.pad(M, ((0, 0), (0, n_directions - M.shape[1]))) if self.rotation is None else M @ self.rotation.T


def stage_dictionary(stage: str, basis: Array, singular_values: Array, M: Array, n_kept: int) -> Dictionary | None:
    """Return the part of the dictionary ``basis * singular_values`` that a stage uses, or None if it saves nothing.

    Coefficients B with one column per direction of the data have a low rank, and a sweep costs as much as there are
    columns. So most iterations run on the leading directions of the data, then on the leading right singular
    vectors of `M`, the argument of the next shrinkage, of which `n_kept` are above the threshold; none of those left
    out is near it. The last stage has all directions, hence the limit does not depend on the others.
    """
    n_directions, dtype = M.shape[1], M.dtype
    room = 8 + n_kept // (3 if stage == "leading" else 7)  # the leading directions are the coarser guess
    size = n_directions if stage == "all" else max(SMALLEST_LEVEL, n_kept + room)
    if stage != "all" and size > STAGE_SHARE * n_directions:
        return None
    if stage != "turned":
        atoms = basis[:, :size] * singular_values[:size]
        return Dictionary(None, atoms.astype(dtype, copy=False), singular_values[:size].astype(dtype))
    vectors = eigh(M.T @ M)[1]
    directions = vectors[:, -size:].astype(np.float64)
    gram = directions.T @ (singular_values.astype(np.float64)[:, None] ** 2 * directions)
    directions = directions @ eigh(gram)[1][:, ::-1]
    atoms = basis @ (singular_values[:, None] * directions)
    parts = directions, atoms, np.linalg.norm(atoms, axis=0)
    return Dictionary(*(np.ascontiguousarray(part, dtype=dtype) for part in parts))


def refitted(low: LowRank, coefficients: Array, atoms: Dictionary, n_directions: int) -> LowRank:
    """Return `coefficients`, which meet the constraint, in the right singular vectors of `low`, which has a low rank.

    Of the two halves of an ADMM iterate this has a lower objective than `low`: its leading directions, where the data
    magnify every error, are right. The result is in the directions of the data.
    """
    M = coefficients @ low.right
    squares, rotation = eigh(M.T @ M)
    # rounding in MᵀM moves every eigenvalue by up to some ε of the largest per row
    kept = squares > 4 * len(squares) * np.finfo(M.dtype).eps * squares.max(initial=0)
    rotation = rotation[:, kept]
    right = atoms.extend((low.right @ rotation).T, n_directions).T
    return LowRank(M @ rotation, np.ascontiguousarray(right), np.sqrt(squares[kept]))
