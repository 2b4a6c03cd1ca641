"""Low-rank representation: LRR1 and LRR2 from samples, KLRR from a kernel matrix alone."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

from subspaces.representation import _nuclear as nuclear
from subspaces.representation._nuclear import RELAXATION, Dictionary, LowRank, squared_norm
from subspaces.representation.coefficients import Coefficients, Factors, Trace, from_factors
from subspaces.representation.ridge import IndefiniteKernelWarning
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import eigh
from subspaces.utils.types import Array

SWEEP_BYTES = 2 * 2**20
"""Bytes of a block of rows of one sweep: smaller ones slow down the matrix products in it."""

_INDEFINITE = 1e-4  # of the largest eigenvalue: more than rounding in float32, and more than the model can ignore


def lrr(
    X: Array, *, reg: float, error: Literal["l1", "l21"] = "l21", tol: float = 1e-3, max_iter: int = 1000
) -> Coefficients:
    r"""Low-rank representation (LRR1, LRR2).

    With the samples as columns of the papers' X (rows of ours), solves

    .. math:: \min_{Z, E} \|Z\|_* + \lambda \|E\| \quad\text{s.t.}\quad X = X Z + E .

    Parameters
    ----------
    X : (n, m) array
        Samples as rows.
    reg : float
        Weight :math:`\lambda` of the errors. ``numpy.inf`` is the model without errors, whose solution is the shape
        interaction matrix :math:`Z = V V^T`.
    error : {"l1", "l21"}
        Norm of the errors: single entries (:math:`\sum |e_{ki}|`, LRR1) or whole samples
        (:math:`\sum_i \|e_i\|_2`, LRR2).
    tol : float
        Both relative residuals, primal and dual, have to fall to `tol`. On faces the objective was then within
        1e-5 (l21) and 4e-4 (l1) of its minimum at the default, and within 5e-3 (l1) at the 0.05 of the estimator.
    max_iter : int
        Iterations before giving up with a ``ConvergenceWarning``.

    Returns
    -------
    Coefficients
        Z as its singular value decomposition, which is how it is found. The diagonal is not zero.

    Notes
    -----
    With :math:`X = U \Sigma V^T` of rank r an optimal Z is :math:`V B`, B with r rows, so singular values are only ever
    taken of r × n matrices. The l21 norm does not see the rotation U and leads to the problem of `kernel_lrr` with
    the linear kernel. For the l1 norm, ADMM with constant penalties alternates the shrinkage of B and E with a
    projection on the constraint, for which :math:`\Sigma` gives a diagonal system; most iterations are spent on the
    directions of the row space that B turns out to use, the last ones on all of them. Large data with a `tol` from
    1e-4 on are iterated on in single precision. Published programs let the penalty grow geometrically instead, and
    stop near, not at, the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.representation.low_rank import lrr
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> lrr(X, reg=10.0).dense().round(3) + 0.0
    array([[0.2, 0.4, 0. , 0. ],
           [0.4, 0.8, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    """
    reg = nuclear.check_arguments(reg, tol, max_iter)
    if error not in ("l1", "l21"):
        raise ValueError(f"error must be 'l1' or 'l21', got {error!r}")
    X, scale = nuclear.scaled_copy(X)
    if X.ndim != 2:
        raise ValueError(f"X must have one row per point, got {X.ndim} dimension(s)")
    reg *= scale
    V, singular_values, U = nuclear.thin_svd(X)
    if np.isinf(reg) or not len(singular_values):
        return from_factors(squared_error_coefficients(V, singular_values**2, reg), Trace(converged=True, n_iter=0))
    if error == "l21":
        low, trace = solve_l21(V, singular_values**2, reg, tol, max_iter)
    else:
        low, trace = _solve_l1(X, V, singular_values, U, reg, tol, max_iter)
    return from_factors(low.represented_by(V), trace)


def kernel_lrr(
    K: Array, *, reg: float, error: Literal["l21", "fro"] = "l21", tol: float = 1e-3, max_iter: int = 500
) -> Coefficients:
    r"""Low-rank representation of samples given by their kernel matrix (KLRR, robust kernel LRR).

    Solves, with :math:`\phi` the feature map of the kernel and samples as its columns,

    .. math:: \min_Z \|Z\|_* + \lambda \|\phi(X) - \phi(X) Z\|_{2,1}
       \quad\text{or}\quad \min_Z \|Z\|_* + \tfrac\lambda2 \|\phi(X) - \phi(X) Z\|_F^2 .

    Parameters
    ----------
    K : (n, n) array
        Positive semidefinite kernel matrix. Eigenvalues below rounding error count as zero.
    reg : float
        Weight :math:`\lambda` of the errors. ``numpy.inf`` is the model without errors, :math:`Z = V V^T`
        (the identity for a kernel matrix of full rank).
    error : {"l21", "fro"}
        Norm of the errors: whole samples ("l21", iterative), or everything a little ("fro", closed form
        :math:`Z = V \mathrm{diag}(\max(0, 1 - 1/(\lambda\Lambda_k))) V^T`).
    tol, max_iter
        As in :func:`lrr`, like the result.

    Notes
    -----
    With :math:`K = V \Lambda V^T` an optimal Z is :math:`V B`, so the problem becomes
    :math:`\min_B \|B\|_* + \lambda \sum_i \|\Lambda^{1/2} (v_i - b_i)\|_2` with r rows. ADMM alternates singular value
    shrinkage of B and the shrinkage of each error in the metric :math:`\Lambda`, see `metric_shrinkage`. The problem
    has no scale left in it (V is orthonormal, the multiplier has spectral norm one), which is why the penalty
    can be one for every data set and need not grow: the iterates converge to the optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.representation.low_rank import kernel_lrr
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> kernel_lrr(X @ X.T, reg=np.inf).dense().round(3) + 0.0
    array([[0.2, 0.4, 0. ],
           [0.4, 0.8, 0. ],
           [0. , 0. , 1. ]])
    """
    reg = nuclear.check_arguments(reg, tol, max_iter)
    if error not in ("l21", "fro"):
        raise ValueError(f"error must be 'l21' or 'fro', got {error!r}")
    K, scale = nuclear.scaled_copy(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square kernel matrix, got shape {K.shape}")
    reg *= scale if error == "fro" else scale**0.5
    V, spectrum = _positive_part(K)
    if np.isinf(reg) or error == "fro" or not len(spectrum):
        return from_factors(squared_error_coefficients(V, spectrum, reg), Trace(converged=True, n_iter=0))
    low, trace = solve_l21(V, spectrum, reg, tol, max_iter)
    return from_factors(low.represented_by(V), trace)


def _positive_part(K: Array) -> tuple[Array, Array]:
    """Return the eigenvectors and eigenvalues of K above rounding, the largest first."""
    values, vectors = eigh(K)
    # sqrt(n): the usual n would cut real directions of a smooth kernel in float32
    rounding = float(values[-1] * np.finfo(K.dtype).eps) * len(K) ** 0.5
    first = int(np.searchsorted(values, rounding, side="right"))
    if values[0] < -_INDEFINITE * max(abs(values[-1]), abs(values[0])):
        warnings.warn(
            f"the kernel matrix has negative eigenvalues down to {values[0] / values[-1]:.2g} of the largest: it is no "
            "kernel of inner products, and what they stand for is left out.",
            IndefiniteKernelWarning,
            stacklevel=3,
        )
    return np.ascontiguousarray(vectors[:, first:][:, ::-1]), values[first:][::-1]


def squared_error_coefficients(V: Array, spectrum: Array, reg: float) -> Factors:
    r"""Return :math:`Z = V \mathrm{diag}(\max(0, 1 - 1/(\lambda\Lambda_k))) V^T` of the squared error."""
    kept = np.maximum(0, 1 - 1 / (reg * spectrum))
    n_kept = int(np.count_nonzero(kept))  # the spectrum decreases
    return Factors(V[:, :n_kept], kept[:n_kept], V[:, :n_kept])


def metric_shrinkage(
    W: Array, spectrum: Array, reg: float, offset: Array, guess: Array | None = None
) -> tuple[Array, Array]:
    r"""Apply the proximal operator of :math:`reg \sqrt{p^T \Lambda p + c}` to every row w of `W`, all rows at once.

    Returns the minimisers p of :math:`reg \sqrt{p^T \Lambda p + c} + \frac12 \|p - w\|^2` and their sizes
    :math:`s = \sqrt{p^T \Lambda p + c}`. `spectrum` is the diagonal of :math:`\Lambda`, positive and decreasing;
    `offset` the part c of the squared sizes that does not depend on p; `guess` are sizes to start from, for instance
    those of the iteration before.

    The minimiser is :math:`p_k = w_k s / (s + reg \Lambda_k)` where s solves
    :math:`f(s) = \sum_k \Lambda_k w_k^2 / (s + reg\Lambda_k)^2 + c / s^2 = 1`; it is zero where c is zero and
    :math:`\sum_k w_k^2 / \Lambda_k \le reg^2`. As in trust-region methods :math:`f^{-1/2}` is concave, so Newton's
    method on :math:`f^{-1/2} = 1` falls short of the root from any start and then climbs without overshooting.
    """
    scaled = reg * spectrum
    squares = W * W
    is_zero = (offset == 0) & (squares @ (1 / spectrum) <= reg * reg)
    squares *= spectrum
    lower = np.sqrt(squares.sum(axis=1) + offset) - scaled[0]
    np.maximum(lower, np.sqrt(offset), out=lower)
    lower[is_zero] = 1  # any positive number: these rows only have to stay out of the others' way
    sizes = lower.copy() if guess is None else np.maximum(guess, lower)
    has_offset = bool(offset.any())
    # One more step from a relative error e leaves about e**2.
    enough = float(np.finfo(W.dtype).eps) ** 0.5
    for _ in range(100):
        inverse = 1 / (sizes[:, None] + scaled)
        terms = squares * inverse
        terms *= inverse
        value = terms.sum(axis=1)
        slope = np.einsum("ij,ij->i", terms, inverse)
        if has_offset:
            inverse_sizes = np.divide(1, sizes, out=np.zeros_like(sizes), where=offset > 0)
            value += offset * inverse_sizes**2
            slope += offset * inverse_sizes**3
        root = np.sqrt(value)
        step = np.divide(value * (root - 1), slope, out=np.zeros_like(slope), where=slope > 0)
        sizes = np.maximum(sizes + step, lower)
        if np.all((np.abs(root - 1) <= enough) | is_zero):
            break
    sizes[is_zero] = 0
    return W * (sizes[:, None] / (sizes[:, None] + scaled)), sizes


def solve_l21(V: Array, spectrum: Array, reg: float, tol: float, max_iter: int) -> tuple[LowRank, Trace]:
    r"""Minimise :math:`\|B\|_* + reg \sum_i \|\Lambda^{1/2} (v_i - b_i)\|_2`.

    Rows of V are the :math:`v_i`, rows of the result the :math:`b_i`.
    """
    n, rank = V.shape
    kept, size = nuclear.squared_error_match(spectrum, reg, n)
    residuals = nuclear.Residuals(tol, max_iter)
    errors, multipliers = V * (1 - kept), V * np.minimum(1, (reg / size) * spectrum)
    sizes = np.zeros(n, dtype=V.dtype)
    expected_rank = int(np.count_nonzero(kept))
    n_solved = 0
    for level in nuclear.levels(rank, expected_rank):
        target, metric = np.ascontiguousarray(V[:, :level]), spectrum[:level]
        offset = V[:, level:] ** 2 @ spectrum[level:]
        if n_solved:
            # The multiplier of a direction not solved for yet follows from the size of the sample's error.
            weights = reg * np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)
            fresh = errors[:, n_solved:level]
            multipliers[:, n_solved:level] = fresh * spectrum[n_solved:level] * weights[:, None]
        P, Y = np.ascontiguousarray(errors[:, :level]), np.ascontiguousarray(multipliers[:, :level])
        shrink = nuclear.Shrinkage(expected_rank)
        for _ in range(residuals.budget(level == rank)):
            low = shrink(target - P + Y)
            primal, dual = _sweep(target, low, P, Y, metric, reg, offset, sizes)
            objective = float(low.singular_values.sum()) + reg * float(sizes.sum())
            if residuals.add(primal, dual, objective) and shrink.confirmed():
                break
        errors[:, :level], multipliers[:, :level], n_solved = P, Y, level
        expected_rank = shrink.rank
    return low, residuals.trace()


def _sweep(
    target: Array, low: LowRank, P: Array, Y: Array, metric: Array, reg: float, offset: Array, sizes: Array
) -> tuple[float, float]:
    """Shrink the errors `P` and update the multipliers `Y` and the `sizes` in place; return both residuals."""

    def sweep(start: int, stop: int) -> tuple[float, float, float]:
        rows = slice(start, stop)
        coefficients = low.left[rows] @ low.right.T
        before = target[rows] - P[rows]
        W = target[rows] - RELAXATION * coefficients - (1 - RELAXATION) * before + Y[rows]
        shrunk, sizes[rows] = metric_shrinkage(W, metric, reg, offset[rows], sizes[rows])
        np.subtract(W, shrunk, out=Y[rows])
        change = shrunk - P[rows]
        P[rows] = shrunk
        gap = target[rows] - coefficients - shrunk
        return squared_norm(gap), squared_norm(change), squared_norm(Y[rows])

    sums = np.sum(map_blocks(sweep, row_blocks(len(P), P[:1].nbytes)), axis=0)
    primal = float(np.sqrt(sums[0] / target.shape[1]))  # the target has orthonormal columns
    return primal, float(np.sqrt(sums[1] / sums[2])) if sums[2] else 0.0


def _solve_l1(
    X: Array, V: Array, singular_values: Array, U: Array, reg: float, tol: float, max_iter: int
) -> tuple[LowRank, Trace]:
    r"""Minimise :math:`\|B\|_* + reg \sum |F|` over :math:`F = X - B \Sigma U^T`, B with one row per sample.

    ADMM: shrink B (penalty `COEFFICIENT_PENALTY`) and F (`penalty` times that), then project on the constraint.
    """
    penalty = nuclear.error_penalty(X, reg)
    kept, slopes = nuclear.entrywise_match(singular_values, reg, X.size)
    rank = int(np.count_nonzero(kept))
    working = nuclear.working_dtype(X, tol)
    X, V, U, D = (array.astype(working, copy=False) for array in (X, V, U, U * singular_values))
    scaled = slopes / (penalty * nuclear.COEFFICIENT_PENALTY)
    coefficients, Y_F = V * kept.astype(working), (V * scaled.astype(working)) @ U.T
    residuals = nuclear.Residuals(tol, max_iter)
    found: list[tuple[float, LowRank]] = []
    for stage in nuclear.STAGES:
        Y_B = penalty * (Y_F @ D)  # the projection keeps this relation between the multipliers
        atoms = nuclear.stage_dictionary(stage, U, singular_values, coefficients + Y_B, rank)
        if atoms is None:
            continue
        B, Y_B = atoms.restrict(coefficients), atoms.restrict(Y_B)
        F = X - B @ atoms.atoms.T
        shrink = nuclear.Shrinkage(rank, 1 / nuclear.COEFFICIENT_PENALTY)
        for _ in range(residuals.budget(stage == "all")):
            low = shrink(B + Y_B)
            primal, dual, size = _l1_sweep(X, atoms, low, penalty, reg, B, F, Y_B, Y_F)
            objective = float(low.singular_values.sum()) + reg * size
            is_done = residuals.add(primal, dual, objective, nuclear.SLACK[stage])
            if is_done and (stage != "all" or shrink.confirmed()):
                break
        coefficients, rank = atoms.extend(B, U.shape[1]), shrink.rank
        if stage != "leading" and shrink.calls:
            fit = nuclear.refitted(low, B, atoms, U.shape[1])
            error = float(np.abs(X - fit.left @ (D @ fit.right).T).sum())
            found.append((float(fit.singular_values.sum()) + reg * error, fit))
    return min(found, key=lambda pair: pair[0])[1], residuals.trace()


def _l1_sweep(
    X: Array, atoms: Dictionary, low: LowRank, penalty: float, reg: float, B: Array, F: Array, Y_B: Array, Y_F: Array
) -> tuple[float, float, float]:
    """Shrink the errors, project on ``X = B @ D.T + F`` and update the multipliers: B, F, Y_B and Y_F in place.

    Returns the primal and the dual residual in the norm of the penalties, and the l1 norm of the errors.
    """
    threshold = reg / (penalty * nuclear.COEFFICIENT_PENALTY)
    D, gains = atoms.atoms, 1 / (1 + penalty * atoms.singular_values**2)

    def sweep(start: int, stop: int) -> tuple[float, ...]:
        rows = slice(start, stop)
        J = low.left[rows] @ low.right.T
        E = F[rows] + Y_F[rows]
        E -= np.clip(E, -threshold, threshold)
        J_relaxed = RELAXATION * J + (1 - RELAXATION) * B[rows]
        E_relaxed = RELAXATION * E + (1 - RELAXATION) * F[rows]
        # The multipliers, normal to the constraint, drop out but for rounding, which they keep from adding up.
        projected = (X[rows] - E_relaxed + Y_F[rows]) @ D
        projected *= penalty
        projected += J_relaxed
        projected -= Y_B[rows]
        projected *= gains
        errors = X[rows] - projected @ D.T
        Y_B[rows] += np.subtract(projected, J_relaxed, out=J_relaxed)
        Y_F[rows] += np.subtract(errors, E_relaxed, out=E_relaxed)
        absolute_error = float(np.abs(E).sum())
        gap = squared_norm(np.subtract(J, projected, out=J)) + penalty * squared_norm(np.subtract(E, errors, out=E))
        B[rows] -= projected
        F[rows] -= errors
        change = squared_norm(B[rows]) + penalty * squared_norm(F[rows])
        B[rows], F[rows] = projected, errors
        size = squared_norm(projected) + penalty * squared_norm(X[rows])
        dual_size = squared_norm(Y_B[rows]) + penalty * squared_norm(Y_F[rows])
        return gap, size, change, dual_size, absolute_error

    sums = map_blocks(sweep, row_blocks(len(X), X[:1].nbytes, SWEEP_BYTES))
    gap, size, change, dual_size, absolute_error = np.sum(sums, axis=0).tolist()
    return (gap / size) ** 0.5, (change / dual_size) ** 0.5 if dual_size else 0.0, absolute_error
