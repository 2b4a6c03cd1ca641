"""The small problems of `elastic_net`: a code of every point of a batch over its own working set, all at once.

A semismooth Newton method on the dual, which is piecewise quadratic; see `elastic_net` for the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from subspaces.utils.blocks import row_blocks
from subspaces.utils.decompositions import solve_systems
from subspaces.utils.types import Array

NEWTON_BYTES = 2 * 2**20
"""Bytes of the working sets of one block of Newton steps: every step reads them, so they should stay in cache."""

MAX_NEWTON, MAX_HALVINGS = 100, 30
"""Newton steps on one working set and halvings of one step; about six and one are usual."""


@dataclass
class Problems:
    """Elastic-net problems of some points of a batch, one per row.

    They are solved in double precision for any data: rounding grows by γ/(1 − τ) here, and they take little memory.
    """

    rows: Array  # position in the batch
    points: Array  # x, the point to represent
    weights: Array  # γᵢ
    tolerance: Array  # largest violation allowed
    dual: Array  # δ, in the end γᵢ times the residual
    working: Array  # numbers of the atoms in the working set
    centre: Array  # c̄, the last code over the working set: centre of the proximal term
    proximal: Array  # weight of the proximal term

    def __getitem__(self, index: Array | slice) -> Problems:
        return Problems(*(getattr(self, part.name)[index] for part in fields(self)))


def excess_of(correlations: Array, codes: Array, l1_ratio: float) -> Array:
    """Violation of the optimality conditions: u_j = τ sign(c_j) + (1 − τ) c_j, or |u_j| ≤ τ where c_j = 0."""
    on = np.abs(correlations - (1 - l1_ratio) * codes - l1_ratio * np.sign(codes))
    return np.where(codes != 0, on, np.maximum(on - l1_ratio, 0))


def _soft(values: Array, threshold: float) -> Array:
    """Entries moved towards zero by `threshold`, those below it to zero."""
    return values - np.clip(values, -threshold, threshold)


def solve_working_sets(atoms: Array, problems: Problems, l1_ratio: float) -> Array:
    """Codes over the working sets, block by block; leaves γ times the residuals in ``problems.dual``."""
    values = np.empty(problems.working.shape)
    bytes_per_problem = problems.working.shape[1] * atoms.shape[1] * values.itemsize
    for start, stop in row_blocks(len(values), bytes_per_problem, NEWTON_BYTES):
        block = problems[start:stop]
        solve = _polished if block.proximal.any() else _newton
        values[start:stop], problems.dual[start:stop] = solve(atoms, block, l1_ratio)
    return values


def _polished(atoms: Array, problems: Problems, l1_ratio: float) -> tuple[Array, Array]:
    """Codes and duals with and then, support and signs given, without the proximal term; the better of the two."""
    codes, dual = _newton(atoms, problems, l1_ratio)
    support = codes != 0
    support &= np.count_nonzero(support, axis=1, keepdims=True) <= atoms.shape[1]  # more have no unique code
    active, slots = _packed(support, problems.working, atoms.shape[0] - 1)
    basis = _gather(atoms, active)
    signs = np.zeros(slots.shape)
    signs[slots] = np.sign(codes[support])
    target = _times(basis, problems.points) - l1_ratio / problems.weights[:, None] * signs
    solution = _ridge_solve(basis @ basis.transpose(0, 2, 1), (1 - l1_ratio) / problems.weights, target)
    direct = np.zeros_like(codes)
    direct[support] = solution[slots]
    direct_dual = problems.weights[:, None] * (problems.points - _combine(solution, basis))
    local = _gather(atoms, problems.working)
    excess = excess_of(_times(local, dual), codes, l1_ratio).max(axis=1, keepdims=True)
    better = excess_of(_times(local, direct_dual), direct, l1_ratio).max(axis=1, keepdims=True) <= excess
    return np.where(better, direct, codes), np.where(better, direct_dual, dual)


def _newton(atoms: Array, problems: Problems, l1_ratio: float) -> tuple[Array, Array]:
    """Codes and duals over the working sets W of all problems together, by a semismooth Newton method on the dual.

    The dual ‖δ‖²/(2γ) − ⟨x, δ⟩ + ‖soft(X_W δ + p c̄, τ)‖²/(2a) is convex and piecewise quadratic, where p weighs
    the proximal term ‖c − c̄‖²/2 and a = 1 − τ + p. Its gradient is δ/γ − (x − X_Wᵀ c) with
    c = soft(X_W δ + p c̄, τ)/a, and zero exactly at the optimal code.
    """
    result, duals = np.empty_like(problems.centre), np.empty_like(problems.dual)
    rows, dual, local = np.arange(len(result)), problems.dual, _gather(atoms, problems.working)
    inputs = _times(local, dual) + problems.proximal[:, None] * problems.centre
    settled = np.zeros(len(result), dtype=bool)
    for step in range(MAX_NEWTON + 1):
        curvature = 1 - l1_ratio + problems.proximal
        codes = _soft(inputs, l1_ratio) / curvature[:, None]
        residual = problems.points - _combine(codes, local)
        gradient = dual / problems.weights[:, None] - residual
        error = problems.weights * np.sqrt(np.vecdot(gradient, gradient))
        todo = (error > problems.tolerance / 4) & ~settled & (step < MAX_NEWTON)
        if np.count_nonzero(todo) < 0.8 * len(todo):
            result[rows], duals[rows] = codes, problems.weights[:, None] * residual
            if not todo.any():
                break
            rows, dual, local, inputs = rows[todo], dual[todo], local[todo], inputs[todo]
            problems, gradient, curvature = problems[todo], gradient[todo], curvature[todo]
        before = np.abs(inputs) > l1_ratio
        active = _gather(atoms, _packed(before, problems.working, atoms.shape[0] - 1)[0])
        direction = _newton_direction(active, gradient, problems.weights, curvature)
        change = _times(local, direction)
        slope, bend = np.vecdot(gradient, direction), np.vecdot(direction, direction) / problems.weights
        lengths = _step_lengths(inputs, change, slope, bend, l1_ratio, curvature)[:, None]
        dual, inputs = dual + lengths * direction, inputs + lengths * change
        # A full step within one quadratic piece ends at its minimum: more steps would only stir the rounding.
        settled = ((np.abs(inputs) > l1_ratio) == before).all(axis=1) & (lengths[:, 0] == 1)
    return result, duals


def _gather(atoms: Array, numbers: Array) -> Array:
    """Atoms of every problem in double precision, (problem, atom, feature)."""
    return atoms[numbers].astype(np.float64, copy=False)


def _packed(chosen: Array, atoms: Array, padding: int) -> tuple[Array, Array]:
    """Chosen atoms of each row moved to the left and padded to the longest list, and which slots are filled."""
    counts = np.count_nonzero(chosen, axis=1)
    slots = np.arange(counts.max()) < counts[:, None]
    packed = np.full(slots.shape, padding, dtype=atoms.dtype)
    packed[slots] = atoms[chosen]
    return packed, slots


def _times(matrices: Array, vectors: Array) -> Array:
    """Product of every matrix with its vector."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def _combine(codes: Array, local: Array) -> Array:
    """Combination of the atoms of every problem by its code."""
    return (codes[:, None, :] @ local)[:, 0]


def _newton_direction(active: Array, gradient: Array, weights: Array, curvature: Array) -> Array:
    """Solve (I/γ + AᵀA/a) d = −gradient for every problem, A (k × m) its active atoms, in the smaller of k, m."""
    n_active, n_features = active.shape[1:]
    ridge = curvature / weights
    if n_active < n_features:
        part = _ridge_solve(active @ active.transpose(0, 2, 1), ridge, _times(active, gradient))
        return weights[:, None] * (_combine(part, active) - gradient)
    return -curvature[:, None] * _ridge_solve(active.transpose(0, 2, 1) @ active, ridge, gradient)


def _ridge_solve(grams: Array, ridge: Array, targets: Array) -> Array:
    """Solve (gram + ridge I) z = target for every problem; overwrites `grams`."""
    diagonal = np.arange(grams.shape[1])
    # A ridge above rounding lets equal atoms pass in a lasso, where only the sum of their coefficients is determined.
    grams[:, diagonal, diagonal] += np.maximum(ridge, 16 * np.finfo(np.float64).eps)[:, None]
    return solve_systems(grams, targets[:, :, None])[:, :, 0]


def _step_lengths(inputs: Array, change: Array, slope: Array, bend: Array, l1_ratio: float, curvature: Array) -> Array:
    """Halve the Newton step of each problem until the dual falls (Armijo); full steps alone can cycle."""
    start = _soft(inputs, l1_ratio)
    # Falls below rounding cannot be seen; near the minimum the full step is right anyway.
    rounding = 16 * np.finfo(np.float64).eps * np.vecdot(start, inputs) / curvature
    lengths = np.ones_like(slope)
    rows: slice | Array = slice(None)
    for _ in range(MAX_HALVINGS):
        t = lengths[rows]
        move = t[:, None] * change[rows]
        jump = _soft(inputs[rows] + move, l1_ratio) - start[rows]
        # The fall as a second-order remainder: the difference of two dual values would lose its digits.
        remainder = np.vecdot(jump, jump) / 2 + np.vecdot(start[rows], jump - move)
        fall = t * slope[rows] + t * t * bend[rows] / 2 + remainder / curvature[rows]
        too_long = fall > 1e-4 * t * slope[rows] + rounding[rows]
        if not too_long.any():
            break
        rows = np.arange(len(slope))[rows][too_long]
        lengths[rows] /= 2
    return lengths
