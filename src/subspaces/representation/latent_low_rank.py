"""LatLRR: low-rank representation by the samples and by the features at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from subspaces.representation import _nuclear as nuclear
from subspaces.representation._nuclear import RELAXATION, Dictionary, LowRank, squared_norm
from subspaces.representation.coefficients import Coefficients, Factors, Trace, from_factors
from subspaces.utils.types import Array

Parts = tuple[Array, Array, Array]
"""Coefficients of the samples, of the features, and the errors."""


def latent_lrr(X: Array, *, reg: float, tol: float = 1e-3, max_iter: int = 1000) -> Coefficients:
    r"""Latent low-rank representation (LatLRR).

    With the samples as columns of the paper's X (rows of ours), solves

    .. math:: \min_{Z, L, E} \|Z\|_* + \|L\|_* + \lambda \|E\|_1 \quad\text{s.t.}\quad X = X Z + L X + E .

    Parameters
    ----------
    X : (n, m) array
        Samples as rows.
    reg : float
        Weight :math:`\lambda` of the errors. ``numpy.inf`` is the model without errors. It has many minimisers, all
        with :math:`\|Z\|_* + \|L\|_*` equal to the rank; the symmetric one is returned,
        :math:`Z = \frac12 V V^T`, :math:`L = \frac12 U U^T`.
    tol, max_iter
        As in :func:`~subspaces.representation.low_rank.lrr`.

    Returns
    -------
    Coefficients
        Z as its singular value decomposition, which is how it is found; ``latent_lrr_factors`` returns L too.

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
    >>> latent_lrr(X, reg=np.inf).dense().round(3) + 0.0
    array([[0.1, 0.2, 0. ],
           [0.2, 0.4, 0. ],
           [0. , 0. , 0.5]])
    """
    Z, _, trace = latent_lrr_factors(X, reg=reg, tol=tol, max_iter=max_iter)
    return from_factors(Z, trace)


def latent_lrr_factors(
    X: Array, *, reg: float, tol: float = 1e-3, max_iter: int = 1000
) -> tuple[Factors, Factors, Trace]:
    """Return Z (n × n) and L (m × m) of :func:`latent_lrr` as factors; ``X @ L.T`` are the salient features."""
    reg = nuclear.check_arguments(reg, tol, max_iter)
    X, scale = nuclear.scaled_copy(X)
    if X.ndim != 2:
        raise ValueError(f"X must have one row per point, got {X.ndim} dimension(s)")
    reg *= scale
    V, singular_values, U = nuclear.thin_svd(X)
    if np.isinf(reg) or not len(singular_values):
        half = np.full_like(singular_values, 0.5)
        return Factors(V, half, V), Factors(U, half, U), Trace(converged=True, n_iter=0)
    residuals = nuclear.Residuals(tol, max_iter)
    Z, L = _solve(X, V, singular_values, U, reg, residuals)
    return Z, L, residuals.trace()


def _solve(
    X: Array, V: Array, singular_values: Array, U: Array, reg: float, residuals: nuclear.Residuals
) -> tuple[Factors, Factors]:
    r"""Minimise :math:`\|B\|_* + \|H\|_* + reg \sum |F|` over :math:`F = X - B \Sigma U^T - V \Sigma H^T`.

    B has one row per sample, H one per feature. ADMM: shrink the three `parts` B, H and F (penalties
    `COEFFICIENT_PENALTY` and, for F, `penalty` times that), then project on the constraint; `multipliers` are scaled
    by the penalties.
    """
    rank, penalty = len(singular_values), nuclear.error_penalty(X, reg)
    kept, slopes = nuclear.entrywise_match(singular_values, reg, X.size)
    ranks = (int(np.count_nonzero(kept)),) * 2
    threshold = reg / (penalty * nuclear.COEFFICIENT_PENALTY)
    working, bases = nuclear.working_dtype(X, residuals.tol), (V, U)
    X, V, U, G, D = (array.astype(working, copy=False) for array in (X, V, U, V * singular_values, U * singular_values))
    scaled, half = (slopes / (penalty * nuclear.COEFFICIENT_PENALTY)).astype(working), (kept / 2).astype(working)
    B, H, Y_F = V * half, U * half, (V * scaled) @ U.T
    found: list[tuple[float, LowRank, LowRank]] = []
    for stage in nuclear.STAGES:
        of_points = nuclear.stage_dictionary(stage, U, singular_values, B + penalty * (Y_F @ D), ranks[0])
        of_features = nuclear.stage_dictionary(stage, V, singular_values, H + penalty * (Y_F.T @ G), ranks[1])
        if of_points is None or of_features is None:
            continue
        constraint = _Constraint(X, of_points, of_features, penalty)
        parts = constraint.with_errors(of_points.restrict(B), of_features.restrict(H))
        multipliers = constraint.multipliers_of(Y_F)
        shrink_B, shrink_H = (nuclear.Shrinkage(expected, 1 / nuclear.COEFFICIENT_PENALTY) for expected in ranks)
        for _ in range(residuals.budget(stage == "all")):
            J, S = shrink_B(parts[0] + multipliers[0]), shrink_H(parts[1] + multipliers[1])
            E = parts[2] + multipliers[2]
            E -= np.clip(E, -threshold, threshold)
            objective = float(J.singular_values.sum() + S.singular_values.sum()) + reg * float(np.abs(E).sum())
            parts, multipliers, primal, dual = _step(constraint, (J.dense(), S.dense(), E), parts, multipliers)
            is_done = residuals.add(primal, dual, objective, nuclear.SLACK[stage])
            # not "and": both have to hear that the tolerance is met
            if is_done and (stage != "all" or all([shrink_B.confirmed(), shrink_H.confirmed()])):
                break
        B, H, Y_F = of_points.extend(parts[0], rank), of_features.extend(parts[1], rank), multipliers[2]
        ranks = (shrink_B.rank, shrink_H.rank)
        if stage != "leading" and shrink_B.calls:
            fit = nuclear.refitted(J, parts[0], of_points, rank), nuclear.refitted(S, parts[1], of_features, rank)
            errors = X - fit[0].left @ (D @ fit[0].right).T - (G @ fit[1].right) @ fit[1].left.T
            value = sum(float(low.singular_values.sum()) for low in fit) + reg * float(np.abs(errors).sum())
            found.append((value, *fit))
    _, J, S = min(found, key=lambda candidate: candidate[0])
    salient = S.represented_by(bases[1])
    return J.represented_by(bases[0]), Factors(salient.right, salient.singular_values, salient.left)


def _step(
    constraint: _Constraint, shrunk: Parts, parts: Parts, multipliers: Parts
) -> tuple[Parts, Parts, float, float]:
    """Project, update the multipliers; return the new parts and multipliers with the primal and dual residual."""
    relaxed = _each(lambda new, old: RELAXATION * new + (1 - RELAXATION) * old, shrunk, parts)
    projected = constraint.project(*_each(np.subtract, relaxed, multipliers))
    multipliers = _each(lambda y, new, old: y + new - old, multipliers, projected, relaxed)
    primal = constraint.norm(_each(np.subtract, shrunk, projected)) / constraint.norm((*projected[:2], constraint.X))
    dual_scale = constraint.norm(multipliers)
    dual = constraint.norm(_each(np.subtract, projected, parts)) / dual_scale if dual_scale else 0.0
    return projected, multipliers, primal, dual


def _each(function: Callable[..., Array], *parts: Parts) -> Parts:
    """Apply `function` to the three parts in turn."""
    B, H, F = (function(*arrays) for arrays in zip(*parts, strict=True))
    return B, H, F


class _Constraint:
    """Project on the constraint ``X = B @ D.T + G @ H.T + F`` of a stage; D and G are the atoms of its dictionaries."""

    def __init__(self, X: Array, of_points: Dictionary, of_features: Dictionary, penalty: float) -> None:
        self.X, self.penalty = X, penalty
        self.D, self.G = of_points.atoms, of_features.atoms
        self.U, self.V = self.D / of_points.singular_values, self.G / of_features.singular_values
        self.columns = penalty * of_points.singular_values**2
        self.rows = penalty * of_features.singular_values**2
        self.coupling = penalty * np.multiply.outer(of_features.singular_values, of_points.singular_values)
        self.weights = self.coupling / (1 + self.rows[:, None] + self.columns)

    def with_errors(self, B: Array, H: Array) -> Parts:
        """Return B, H and the errors they leave."""
        errors = self.X - B @ self.D.T
        errors -= self.G @ H.T
        return B, H, errors

    def multipliers_of(self, Y_F: Array) -> Parts:
        """Return all multipliers from those of the errors: projections keep the three in this relation."""
        return self.penalty * (Y_F @ self.D), self.penalty * (Y_F.T @ self.G), Y_F

    def project(self, B: Array, H: Array, F: Array) -> Parts:
        """Return the nearest parts, in the norm of the penalties, that meet the constraint.

        With ``R = X - F`` the normal equations couple B and H only through ``V.T @ B`` and ``U.T @ H``, entry by
        entry.
        """
        R = np.subtract(self.X, F, out=F)
        next_B, next_H = R @ self.D, R.T @ self.G
        next_B *= self.penalty
        next_H *= self.penalty
        core_B, core_H = self.V.T @ B, H.T @ self.U
        mixed_B = (1 + self.rows[:, None]) * core_B + self.V.T @ next_B - self.coupling * core_H
        mixed_H = (1 + self.columns) * core_H + next_H.T @ self.U - self.coupling * core_B
        next_B += B
        next_B -= self.V @ (self.weights * mixed_H)
        next_B /= 1 + self.columns
        next_H += H
        next_H -= self.U @ (self.weights * mixed_B).T
        next_H /= 1 + self.rows
        return self.with_errors(next_B, next_H)

    def norm(self, parts: Parts) -> float:
        """Return the norm weighted by the penalties."""
        B, H, F = map(squared_norm, parts)
        return (B + H + self.penalty * F) ** 0.5
