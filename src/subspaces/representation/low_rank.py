"""LRR1 and LRR2: low-rank representation with errors in single entries or in whole points."""

from __future__ import annotations

import numpy as np

from subspaces.representation import _nuclear as nuclear
from subspaces.representation._nuclear import RELAXATION, Dictionary, LowRank, squared_norm
from subspaces.representation.coefficients import Coefficients, Trace, from_factors
from subspaces.representation.kernel_low_rank import solve_l21, squared_error_coefficients
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.types import Array

SWEEP_BYTES = 2 * 2**20
"""Bytes of a block of rows of one sweep: smaller ones slow down the matrix products in it."""


def lrr(
    X: Array, *, reg: float, error: str = "l21", tol: float = 1e-3, max_iter: int = 1000, start: Array | None = None
) -> Coefficients:
    r"""Low-rank representation (LRR1, LRR2).

    With the points as columns of the papers' X (rows of ours), solves

    .. math:: \min_{Z, E} \|Z\|_* + \lambda \|E\| \quad\text{s.t.}\quad X = X Z + E .

    Parameters
    ----------
    X : (n, m) array
        Points as rows.
    reg : float
        Weight :math:`\lambda` of the errors. ``numpy.inf`` is the model without errors, whose solution is the shape
        interaction matrix :math:`Z = V V^T`.
    error : {"l1", "l21", "fro"}
        What may be wrong: single entries (:math:`\sum |e_{ki}|`, LRR1), whole points
        (:math:`\sum_i \|e_i\|_2`, LRR2), or everything a little (:math:`\frac12 \|E\|_F^2`, closed form).
    tol : float
        Both relative residuals, primal and dual, have to fall to `tol`. On faces the objective was then within
        1e-5 (l21) and 4e-4 (l1) of its minimum at the default, and within 5e-3 (l1) at the 0.05 of the estimator.
    max_iter : int
        Iterations before giving up with a ``ConvergenceWarning``.
    start : (n, n) array, optional
        Coefficients to start from, for instance those of a neighbouring `reg`. A change of `reg` by a few percent
        then takes about half the iterations (four fifths for the l1 norm), a doubling hardly fewer than without.

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
    if error not in ("l1", "l21", "fro"):
        raise ValueError(f"error must be 'l1', 'l21' or 'fro', got {error!r}")
    X, scale = nuclear.scaled_copy(X)
    if X.ndim != 2:
        raise ValueError(f"X must have one row per point, got {X.ndim} dimension(s)")
    reg *= scale**2 if error == "fro" else scale
    V, singular_values, U = nuclear.thin_svd(X)
    if np.isinf(reg) or error == "fro" or not len(singular_values):
        return from_factors(squared_error_coefficients(V, singular_values**2, reg), Trace(converged=True, n_iter=0))
    initial = None if start is None else nuclear.check_start(start, len(X), X.dtype).T @ V
    if error == "l21":
        low, trace = solve_l21(V, singular_values**2, reg, tol, max_iter, initial)
    else:
        low, trace = _solve_l1(X, V, singular_values, U, reg, tol, max_iter, initial)
    return from_factors(low.represented_by(V), trace)


def _solve_l1(
    X: Array, V: Array, singular_values: Array, U: Array, reg: float, tol: float, max_iter: int, initial: Array | None
) -> tuple[LowRank, Trace]:
    r"""Minimise :math:`\|B\|_* + reg \sum |F|` over :math:`F = X - B \Sigma U^T`, B with one row per point.

    ADMM: shrink B (penalty `COEFFICIENT_PENALTY`) and F (`penalty` times that), then project on the constraint.
    `initial` is a B to start from, or None.
    """
    penalty = nuclear.error_penalty(X, reg)
    kept, slopes = nuclear.entrywise_match(singular_values, reg, X.size)
    rank = int(np.count_nonzero(kept))
    working = nuclear.working_dtype(X, tol)
    X, V, U, D = (array.astype(working, copy=False) for array in (X, V, U, U * singular_values))
    if initial is None:
        scaled = slopes / (penalty * nuclear.COEFFICIENT_PENALTY)
        coefficients, Y_F = V * kept.astype(working), (V * scaled.astype(working)) @ U.T
    else:
        coefficients = initial.astype(working, copy=False)
        Y_F = nuclear.multipliers_of_errors(X - coefficients @ D.T, reg / (penalty * nuclear.COEFFICIENT_PENALTY))
    residuals = nuclear.Residuals(tol, max_iter)
    found: list[tuple[float, LowRank]] = []
    for stage in nuclear.STAGES if initial is None else nuclear.STAGES[1:]:
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
    """Shrink the errors, project on ``X = B @ D.T + F``, update the multipliers: B, F, Y_B and Y_F in place.

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
