"""LRR1 and LRR2: low-rank representation with errors in single entries or in whole points."""

from __future__ import annotations

from typing import Literal

import numpy as np

from subspaces._blocks import map_blocks, row_blocks
from subspaces._typing import Array
from subspaces.representation._nuclear import (
    RELAXATION,
    LowRank,
    Residuals,
    check_arguments,
    check_start,
    closed_form_trace,
    levels,
    multipliers_of_errors,
    scaled_copy,
    singular_value_shrinkage,
    squared_error_match,
    squared_norm,
    thin_svd,
)
from subspaces.representation._result import Trace
from subspaces.representation.kernel_low_rank import solve_l21, squared_error_coefficients

THRESHOLD_SHARE = 1 / 3
"""Entrywise threshold of the l1 solver over the root mean square of the data.

It fixes the penalty of the errors. On faces and on synthetic subspaces with dense, sparse and gross errors this
share was within a few iterations of the best one over a hundredfold range of `reg`, and better than rules that
adapt; a constant penalty keeps the guarantee of convergence.
"""


def lrr(
    X: Array,
    *,
    reg: float,
    error: Literal["l1", "l21", "fro"] = "l21",
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: Array | None = None,
) -> tuple[Array, Trace]:
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
        Both relative residuals, primal and dual, have to fall to `tol`. At the default the objective is within
        about 1e-3 of its minimum.
    max_iter : int
        Iterations before giving up with a ``ConvergenceWarning``.
    start : (n, n) array, optional
        Coefficients to start from, for instance those of a neighbouring `reg`. A change of `reg` by a few percent
        then takes about half the iterations (four fifths for the l1 norm), a doubling hardly fewer than without.

    Returns
    -------
    coefficients : (n, n) array
        Z, column i represents point i. The diagonal is not zero.
    trace : Trace

    Notes
    -----
    With :math:`X = U \Sigma V^T` of rank r an optimal Z is :math:`V B`, B with r rows, so singular values are only ever
    taken of r × n matrices. The l21 norm does not see the rotation U and leads to the problem of `kernel_lrr` with
    the linear kernel. For the l1 norm, ADMM with constant penalties alternates the shrinkage of B and E with a
    projection on the constraint, for which :math:`\Sigma` gives a diagonal system. Published programs let the
    penalty grow geometrically instead, and stop near, not at, the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.representation.low_rank import lrr
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> coefficients, trace = lrr(X, reg=10.0)
    >>> coefficients.round(3) + 0.0
    array([[0.2, 0.4, 0. , 0. ],
           [0.4, 0.8, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    """
    reg = check_arguments(reg, tol, max_iter)
    if error not in ("l1", "l21", "fro"):
        raise ValueError(f"error must be 'l1', 'l21' or 'fro', got {error!r}")
    X, scale = scaled_copy(X)
    if X.ndim != 2:
        raise ValueError(f"X must have one row per point, got {X.ndim} dimension(s)")
    reg *= scale**2 if error == "fro" else scale
    V, singular_values, U = thin_svd(X)
    if np.isinf(reg) or error == "fro" or not len(singular_values):
        return squared_error_coefficients(V, singular_values**2, reg), closed_form_trace()
    initial = None if start is None else check_start(start, len(X), X.dtype).T @ V
    if error == "l21":
        low, trace = solve_l21(V, singular_values**2, reg, tol, max_iter, initial)
    else:
        low, trace = _solve_l1(X, singular_values, U, reg, tol, max_iter, initial)
    return (V @ low.right) @ low.left.T, trace


def error_penalty(X: Array, reg: float) -> float:
    """Penalty of ADMM for entrywise errors of the data X; that of the coefficients is one."""
    return reg / (THRESHOLD_SHARE * float(np.sqrt(squared_norm(X) / X.size)))


def _solve_l1(
    X: Array, singular_values: Array, U: Array, reg: float, tol: float, max_iter: int, initial: Array | None
) -> tuple[LowRank, Trace]:
    r"""Minimise :math:`\|B\|_* + reg \sum |F|` over :math:`F = X - B \Sigma U^T`, B with one row per point.

    ADMM: shrink B (penalty one) and F (`penalty`), then project on the constraint. `initial` is a B to start
    from, or None.
    """
    n, m = X.shape
    rank = len(singular_values)
    penalty = error_penalty(X, reg)
    kept, _ = squared_error_match(singular_values**2, reg, n * m)
    expected_rank = int(np.count_nonzero(kept))
    residuals = Residuals(tol, max_iter)
    if initial is None:
        coefficients, Y_F = np.zeros((n, rank), dtype=X.dtype), np.zeros_like(X)
    else:
        coefficients = initial
        Y_F = multipliers_of_errors(X - (initial * singular_values) @ U.T, reg / penalty)
    for level in levels(rank, expected_rank):
        D = U[:, :level] * singular_values[:level]
        B = np.ascontiguousarray(coefficients[:, :level])
        F = X - B @ D.T
        Y_B = penalty * (Y_F @ D)  # the projection keeps this relation between the multipliers
        gains = 1 / (1 + penalty * singular_values[:level] ** 2)
        for _ in range(residuals.budget(level == rank)):
            low = singular_value_shrinkage(B + Y_B, expected_rank)
            expected_rank = len(low.singular_values)
            primal, dual, size = _l1_sweep(X, D, gains, low, penalty, reg / penalty, B, F, Y_B, Y_F)
            if residuals.add(primal, dual, float(low.singular_values.sum()) + reg * size):
                break
        coefficients[:, :level] = B
    return low, residuals.trace()


def _l1_sweep(
    X: Array,
    D: Array,
    gains: Array,
    low: LowRank,
    penalty: float,
    threshold: float,
    B: Array,
    F: Array,
    Y_B: Array,
    Y_F: Array,
) -> tuple[float, float, float]:
    """Shrink the errors, project on ``X = B @ D.T + F``, update the multipliers: B, F, Y_B and Y_F in place.

    Returns the primal and the dual residual in the norm of the penalties, and the l1 norm of the errors.
    """

    def sweep(start: int, stop: int) -> tuple[float, ...]:
        rows = slice(start, stop)
        J = low.left[rows] @ low.right.T
        E = F[rows] + Y_F[rows]
        E -= np.clip(E, -threshold, threshold)
        J_relaxed = RELAXATION * J + (1 - RELAXATION) * B[rows]
        E_relaxed = RELAXATION * E + (1 - RELAXATION) * F[rows]
        projected = penalty * ((X[rows] - E_relaxed + Y_F[rows]) @ D)
        projected += J_relaxed
        projected -= Y_B[rows]
        projected *= gains
        errors = X[rows] - projected @ D.T
        Y_B[rows] += projected - J_relaxed
        Y_F[rows] += errors - E_relaxed
        gap = squared_norm(J - projected) + penalty * squared_norm(E - errors)
        change = squared_norm(projected - B[rows]) + penalty * squared_norm(errors - F[rows])
        B[rows], F[rows] = projected, errors
        size = squared_norm(projected) + penalty * squared_norm(X[rows])
        dual_size = squared_norm(Y_B[rows]) + penalty * squared_norm(Y_F[rows])
        return gap, size, change, dual_size, float(np.abs(E).sum())

    sums = map_blocks(sweep, row_blocks(len(X), X[:1].nbytes))
    gap, size, change, dual_size, absolute_error = np.sum(sums, axis=0).tolist()
    return (gap / size) ** 0.5, (change / dual_size) ** 0.5 if dual_size else 0.0, absolute_error
