"""SMCE: few close neighbours of each point whose directions cancel."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import zip_longest

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation.coefficients import Coefficients, Trace, from_sparse
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import solve_systems
from subspaces.utils.distances import check_points, columns_to_sparse, nearest_neighbors
from subspaces.utils.types import Array

CHECK_EVERY = 10
"""ADMM steps between two looks at the residuals (and removals of the points that have converged)."""

RELAXATION = 1.6
"""Over-relaxation of ADMM; on COIL20, USPS and unions of subspaces it saves a third of the steps."""


def smce(
    X: Array, *, reg: float = 10.0, n_neighbors: int = 20, tol: float = 1e-6, max_iter: int = 10_000
) -> Coefficients:
    r"""Sparse manifold clustering and embedding: few close neighbours whose directions cancel.

    Point i chooses among its nearest neighbours j, at distances d_j = ‖x_j − x_i‖, by

    .. math:: \min_c\ \lambda \sum_j q_j |c_j| + \tfrac12 \Big\|\sum_j c_j \frac{x_j - x_i}{d_j}\Big\|^2
              \quad\text{s.t.}\ \sum_j c_j = 1,\qquad q_j = d_j / \sum_t d_t,

    and gives neighbour j a weight proportional to abs(c_j) / d_j. Multiplying X by a number changes nothing.

    Parameters
    ----------
    X : (n, m) array, points as rows
    reg : float
        λ of the paper, the strength of the preference for close neighbours.
    n_neighbors : int
        Candidates per point, the point itself not counted (the authors' program counts it: KMax − 1).
    tol : float
        Relative primal and dual residual at which a point is done; not below what the dtype can show.
    max_iter : int
        Cap on the ADMM steps of one point.

    Returns
    -------
    Coefficients
        Sparse weights ≥ 0; every column sums to one. The published graph is ``keep_column_mass(coefficients, 0.95)``
        and then the elementwise maximum with its transpose. The trace holds the worst residuals over the points, one
        entry every ten steps.

    References
    ----------
    Elhamifar & Vidal, "Sparse manifold clustering and embedding", NeurIPS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> C = smce(np.c_[np.cos(angles), np.sin(angles)], n_neighbors=11)
    >>> C.columns(1, 2)[0, :4].round(3)
    array([0.5, 0. , 0.5, 0. ])
    """
    return next(smce_path(X, [reg], n_neighbors=n_neighbors, tol=tol, max_iter=max_iter))


def smce_path(
    X: Array, regs: Iterable[float], *, n_neighbors: int = 20, tol: float = 1e-6, max_iter: int = 10_000
) -> Iterator[Coefficients]:
    """Yield :func:`smce` for each of `regs`, each started from the solution before it; neighbours are found once.

    The start is the signed solution, which the weights do not show; hence a path, and no argument ``start``.
    """
    X = check_points(X, n_neighbors)
    tol = max(tol, 20 * float(np.finfo(X.dtype).eps))
    neighbours = nearest_neighbors(X, n_neighbors)[1]
    solutions: Array | None = None
    for reg in regs:
        if reg <= 0:
            raise ValueError(f"reg must be positive, got {reg}: without it SMCE has no reason to be sparse.")
        solutions, weights, trace = _solve(X, neighbours, reg, tol, max_iter, solutions)
        if not trace.converged:
            warnings.warn(
                f"smce: stopped after max_iter={max_iter} steps with relative residuals {trace.primal[-1]:.1e} "
                f"(primal) and {trace.dual[-1]:.1e} (dual) above tol={tol:.1e}; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        yield from_sparse(columns_to_sparse(neighbours, weights), trace)


def _solve(
    X: Array, neighbours: Array, reg: float, tol: float, max_iter: int, first: Array | None
) -> tuple[Array, Array, Trace]:
    """Solutions c and weights of all points, one row of each per point; `first` are solutions to start from."""

    def solve(start: int, stop: int) -> tuple[Array, Array, Trace]:
        gram, distances = _direction_grams(X, neighbours[start:stop], start)
        shares = distances / distances.sum(axis=1, keepdims=True)
        guess = None if first is None else first[start:stop]
        solution, trace = _sparse_sum_to_one(gram, shares, reg, tol, max_iter, guess)
        weights = np.abs(solution) / shares
        total = weights.sum(axis=1, keepdims=True)
        return solution, weights / np.where(total > 0, total, 1), trace

    blocks = row_blocks(len(X), 3 * neighbours.shape[1] ** 2 * X.itemsize)
    solutions, weights, traces = zip(*map_blocks(solve, blocks), strict=True)
    return np.concatenate(solutions), np.concatenate(weights), _worst_trace(list(traces))


def _direction_grams(X: Array, neighbours: Array, first: int) -> tuple[Array, Array]:
    """Gram matrices of the unit directions from points ``first, first + 1, ...`` to their neighbours.

    The distances come back relative to their mean and clipped at eps: a duplicate has a tiny positive distance and
    the zero direction, so it takes all the weight instead of turning it into 0/0.
    """
    n_samples, n_neighbors = neighbours.shape
    gram = np.empty((n_samples, n_neighbors, n_neighbors), X.dtype)
    distances = np.empty((n_samples, n_neighbors), X.dtype)
    # The differences themselves, not G_jk − G_ji − G_ki + G_ii: close neighbours would cancel to noise.
    for start, stop in row_blocks(n_samples, n_neighbors * X.shape[1] * X.itemsize):
        differences = X[neighbours[start:stop]] - X[first + start : first + stop, None]
        lengths = np.linalg.norm(differences, axis=2)
        mean = lengths.mean(axis=1, keepdims=True)
        mean[mean == 0] = 1
        relative = np.maximum(lengths / mean, np.finfo(X.dtype).eps)
        differences /= (relative * mean)[:, :, None]
        gram[start:stop], distances[start:stop] = differences @ differences.swapaxes(1, 2), relative
    return gram, distances


def _sparse_sum_to_one(
    gram: Array, shares: Array, reg: float, tol: float, max_iter: int, first: Array | None = None
) -> tuple[Array, Trace]:
    """Solve min ½cᵀGc + reg Σ q_j|c_j|, Σ c_j = 1 for a batch of (s, s) matrices G by ADMM.

    One copy of c obeys the sum exactly, the other is exactly sparse (and is returned); their difference is the primal
    residual. The multiplier times the penalty always lies in reg q ∂|c|; what the first copy then lacks to be
    stationary is the dual residual. Points leave the batch as they converge. `first` are solutions to start from.
    """
    size = shares.shape[1]
    # Both data terms are free of scale, so one rule fits all: among 0.1, 1 and 10 (the authors' constant) the
    # best penalty was 0.1 to 1 at reg 1, 1 at reg 10, 1 to 10 at reg 100, on every data set tried.
    penalty = max(float(np.sqrt(reg / 10)), 1e-4)  # below, the systems of nearly flat neighbourhoods are singular
    inverse = np.linalg.inv(gram + penalty * np.eye(size, dtype=gram.dtype))
    row_sums = inverse.sum(axis=2)
    centre = row_sums / row_sums.sum(axis=1, keepdims=True)
    step = penalty * (inverse - centre[:, :, None] * row_sums[:, None, :])
    threshold, dual_scale = shares * (reg / penalty), np.linalg.norm(shares, axis=1) * reg

    result = np.zeros_like(shares)
    active = np.arange(len(shares))
    sparse, multiplier = np.zeros_like(shares), np.zeros_like(shares)
    if first is not None:
        sparse = _same_support(first, gram, shares * reg)
        multiplier = _multiplier_of(sparse, gram, shares * reg) / penalty
    primal_history, dual_history = [], []
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        feasible = (step @ (sparse - multiplier)[:, :, None])[:, :, 0] + centre
        relaxed = RELAXATION * feasible + (1 - RELAXATION) * sparse
        previous, shifted = sparse, relaxed + multiplier
        sparse = np.copysign(np.maximum(np.abs(shifted) - threshold, 0), shifted)
        multiplier = shifted - sparse
        if n_iter % CHECK_EVERY and n_iter < max_iter:
            continue
        primal = np.linalg.norm(feasible - sparse, axis=1) / np.linalg.norm(feasible, axis=1)
        dual = penalty * np.linalg.norm(sparse - previous + feasible - relaxed, axis=1) / dual_scale
        primal_history.append(float(primal.max()))
        dual_history.append(float(dual.max()))
        open_ = (primal > tol) | (dual > tol)
        result[active] = sparse
        if open_.all():
            continue
        active, sparse, multiplier = active[open_], sparse[open_], multiplier[open_]
        step, centre, threshold, dual_scale = step[open_], centre[open_], threshold[open_], dual_scale[open_]
    return result, Trace(not len(active), n_iter, primal_history, dual_history)


def _same_support(solution: Array, gram: Array, bounds: Array) -> Array:
    """The solution for new `bounds` if support and signs stay; where they do not, the old one."""
    n_samples, size = solution.shape
    support, signs = solution != 0, np.sign(solution)
    system = np.zeros((n_samples, size + 1, size + 1), solution.dtype)
    system[:, :size, :size] = gram * (support[:, :, None] & support[:, None, :])
    diagonal = np.arange(size)
    # Candidates off the support get an equation of their own. The ridge lets dependent directions pass.
    system[:, diagonal, diagonal] += np.where(support, 100 * np.finfo(solution.dtype).eps, 1)
    system[:, :size, size] = system[:, size, :size] = support
    target = np.zeros((n_samples, size + 1, 1), solution.dtype)
    target[:, :size, 0], target[:, size] = -bounds * signs, 1
    has_code = support.any(axis=1)
    moved = solution.copy()
    moved[has_code] = solve_systems(system[has_code], target[has_code])[:, :size, 0]
    stays = (np.sign(moved) == signs).all(axis=1, keepdims=True)
    return np.where(stays, moved, solution)


def _multiplier_of(solution: Array, gram: Array, bounds: Array) -> Array:
    """What balances the gradient at a solution for another reg: ± bounds on the support, within them elsewhere."""
    gradient = (gram @ solution[:, :, None])[:, :, 0]
    support = solution != 0
    n_support = np.maximum(np.count_nonzero(support, axis=1, keepdims=True), 1)
    level = (support * (gradient + bounds * np.sign(solution))).sum(axis=1, keepdims=True) / n_support
    return np.where(support, bounds * np.sign(solution), np.clip(level - gradient, -bounds, bounds))


def _worst_trace(traces: list[Trace]) -> Trace:
    """One record for several batches: the worst residual of those still running at each check."""
    primal = [max(check) for check in zip_longest(*(trace.primal for trace in traces), fillvalue=0.0)]
    dual = [max(check) for check in zip_longest(*(trace.dual for trace in traces), fillvalue=0.0)]
    return Trace(all(t.converged for t in traces), max(t.n_iter for t in traces), primal, dual)
