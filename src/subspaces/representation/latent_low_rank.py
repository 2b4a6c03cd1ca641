"""LatLRR: low-rank representation by the points and by their features at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from subspaces._typing import Array
from subspaces.representation._nuclear import (
    RELAXATION,
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
from subspaces.representation.low_rank import error_penalty

Parts = tuple[Array, Array, Array]
"""Coefficients of the points, of the features, and the errors."""


class LatentLowRank(NamedTuple):
    """What LatLRR finds: `coefficients` Z for clustering, `salient` L for feature extraction, the `trace`."""

    coefficients: Array
    salient: Array
    trace: Trace


def latent_lrr(
    X: Array,
    *,
    reg: float,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: tuple[Array, Array] | None = None,
) -> LatentLowRank:
    r"""Latent low-rank representation (LatLRR).

    With the points as columns of the paper's X (rows of ours), solves

    .. math:: \min_{Z, L, E} \|Z\|_* + \|L\|_* + \lambda \|E\|_1 \quad\text{s.t.}\quad X = X Z + L X + E .

    Parameters
    ----------
    X : (n, m) array
        Points as rows.
    reg : float
        Weight :math:`\lambda` of the errors. ``numpy.inf`` is the model without errors. It has many minimisers, all
        with :math:`\|Z\|_* + \|L\|_*` equal to the rank; the symmetric one is returned,
        :math:`Z = \frac12 V V^T`, :math:`L = \frac12 U U^T`.
    tol : float
        Both relative residuals, primal and dual, have to fall to `tol`.
    max_iter : int
        Iterations before giving up with a ``ConvergenceWarning``.
    start : pair of an (n, n) and an (m, m) array, optional
        Z and L to start from, for instance those of a neighbouring `reg`.

    Returns
    -------
    LatentLowRank
        ``coefficients`` Z (n, n), column i represents point i; ``salient`` L (m, m), ``X @ L.T`` are the salient
        features of the points; ``trace``.

    Notes
    -----
    With :math:`X = U \Sigma V^T` of rank r optimal Z and L are :math:`V B` and :math:`H U^T`. ADMM with constant
    penalties alternates the shrinkage of B, H and the errors with a projection on the constraint, which in the
    bases U and V falls apart into 2 × 2 systems. (Updating Z, then L, then E, as published, is a three-block
    scheme without guarantee.)

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.representation.latent_low_rank import latent_lrr
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> latent_lrr(X, reg=np.inf).coefficients.round(3) + 0.0
    array([[0.1, 0.2, 0. ],
           [0.2, 0.4, 0. ],
           [0. , 0. , 0.5]])
    """
    reg = check_arguments(reg, tol, max_iter)
    X, scale = scaled_copy(X)
    if X.ndim != 2:
        raise ValueError(f"X must have one row per point, got {X.ndim} dimension(s)")
    reg *= scale
    V, singular_values, U = thin_svd(X)
    if np.isinf(reg) or not len(singular_values):
        return LatentLowRank(V @ V.T / 2, U @ U.T / 2, closed_form_trace())
    rank = len(singular_values)
    B, H = np.zeros((len(X), rank), dtype=X.dtype), np.zeros((X.shape[1], rank), dtype=X.dtype)
    if start is not None:
        B = check_start(start[0], len(X), X.dtype, "start[0]").T @ V
        H = check_start(start[1], X.shape[1], X.dtype, "start[1]") @ U
    return _solve(X, V, singular_values, U, reg, B, H, Residuals(tol, max_iter))


def _solve(
    X: Array, V: Array, singular_values: Array, U: Array, reg: float, B: Array, H: Array, residuals: Residuals
) -> LatentLowRank:
    r"""Minimise :math:`\|B\|_* + \|H\|_* + reg \sum |F|` over :math:`F = X - B \Sigma U^T - V \Sigma H^T`.

    B has one row per point, H one per feature. ADMM: shrink the three `parts` B, H and F (penalties one, one and
    `penalty`), then project on the constraint; `multipliers` are scaled by the penalties.
    """
    rank = len(singular_values)
    penalty = error_penalty(X, reg)
    kept, _ = squared_error_match(singular_values**2, reg, X.size)
    ranks = [int(np.count_nonzero(kept))] * 2
    errors = X - (B * singular_values) @ U.T - (V * singular_values) @ H.T
    # Without a start the coefficients are zero and the data, taken for errors, tell nothing about multipliers.
    Y_F = multipliers_of_errors(errors, reg / penalty) if B.any() or H.any() else np.zeros_like(X)
    for level in levels(rank, ranks[0]):
        bases = _Bases(X, V[:, :level], singular_values[:level], U[:, :level], penalty)
        parts = bases.with_errors(B[:, :level], H[:, :level])
        multipliers = bases.multipliers_of(Y_F)
        for _ in range(residuals.budget(level == rank)):
            J = singular_value_shrinkage(parts[0] + multipliers[0], ranks[0])
            S = singular_value_shrinkage(parts[1] + multipliers[1], ranks[1])
            E = parts[2] + multipliers[2]
            E -= np.clip(E, -reg / penalty, reg / penalty)
            ranks = [len(J.singular_values), len(S.singular_values)]
            objective = float(J.singular_values.sum() + S.singular_values.sum()) + reg * float(np.abs(E).sum())
            parts, multipliers, primal, dual = _step(bases, (J.dense(), S.dense(), E), parts, multipliers)
            if residuals.add(primal, dual, objective):
                break
        B[:, :level], H[:, :level], Y_F = parts[0], parts[1], multipliers[2]
    return LatentLowRank((V @ J.right) @ J.left.T, S.left @ (U @ S.right).T, residuals.trace())


def _step(bases: _Bases, shrunk: Parts, parts: Parts, multipliers: Parts) -> tuple[Parts, Parts, float, float]:
    """Project, update the multipliers; the new parts and multipliers with the primal and dual residual."""
    relaxed = _each(lambda new, old: RELAXATION * new + (1 - RELAXATION) * old, shrunk, parts)
    projected = bases.project(*_each(np.subtract, relaxed, multipliers))
    multipliers = _each(lambda y, new, old: y + new - old, multipliers, projected, relaxed)
    primal = bases.norm(_each(np.subtract, shrunk, projected)) / bases.norm((*projected[:2], bases.X))
    dual_scale = bases.norm(multipliers)
    dual = bases.norm(_each(np.subtract, projected, parts)) / dual_scale if dual_scale else 0.0
    return projected, multipliers, primal, dual


def _each(function: Callable[..., Array], *parts: Parts) -> Parts:
    """Apply `function` to the three parts in turn."""
    B, H, F = (function(*arrays) for arrays in zip(*parts, strict=True))
    return B, H, F


class _Bases:
    """The bases a level is solved in, and the constraint ``X = B @ D.T + G @ H.T + F`` written in them."""

    def __init__(self, X: Array, V: Array, singular_values: Array, U: Array, penalty: float) -> None:
        self.X, self.V, self.U, self.penalty = X, V, U, penalty
        self.G, self.D = V * singular_values, U * singular_values
        self.squares = penalty * singular_values**2
        self.cross = penalty * np.multiply.outer(singular_values, singular_values)
        self.determinant = 1 + self.squares[:, None] + self.squares

    def with_errors(self, B: Array, H: Array) -> Parts:
        """B, H and the errors they leave."""
        return B, H, self.X - B @ self.D.T - self.G @ H.T

    def multipliers_of(self, Y_F: Array) -> Parts:
        """All multipliers from those of the errors: projections keep the three in this relation."""
        return self.penalty * (Y_F @ self.D), self.penalty * (Y_F.T @ self.G), Y_F

    def project(self, B: Array, H: Array, F: Array) -> Parts:
        """The nearest parts, in the norm of the penalties, that meet the constraint.

        With ``R = X - F`` the normal equations couple B and H only through ``V.T @ B`` and ``U.T @ H``, entry by
        entry.
        """
        R = self.X - F
        RD, RG = R @ self.D, R.T @ self.G
        squares, cross = self.squares, self.cross
        core_B, core_H = self.V.T @ B, H.T @ self.U
        next_B = (1 + squares[:, None]) * core_B + self.penalty * (self.V.T @ RD) - cross * core_H
        next_H = (1 + squares) * core_H + self.penalty * (RG.T @ self.U) - cross * core_B
        B = (B + self.penalty * RD - self.V @ (cross * next_H / self.determinant)) / (1 + squares)
        H = (H + self.penalty * RG - self.U @ (cross * next_B / self.determinant).T) / (1 + squares)
        return self.with_errors(B, H)

    def norm(self, parts: Parts) -> float:
        """Norm of the penalties."""
        B, H, F = map(squared_norm, parts)
        return (B + H + self.penalty * F) ** 0.5
