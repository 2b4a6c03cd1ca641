"""Coefficients over few near samples: SMCE (by distance, directions that cancel) and TSC (by angle)."""

from __future__ import annotations

import warnings
from itertools import zip_longest

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from subspaces.representation.coefficients import Coefficients, Trace, from_sparse
from subspaces.utils.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.utils.distances import check_points, columns_to_sparse, nearest_neighbors
from subspaces.utils.ordering import top_columns
from subspaces.utils.types import Array

CHECK_EVERY = 10
"""ADMM steps between two checks of the residuals (and removals of the samples that have converged)."""

RELAXATION = 1.6
"""Over-relaxation of ADMM; on COIL20, USPS and unions of subspaces it saves a third of the steps."""


def smce(
    X: Array, *, reg: float = 10.0, n_neighbors: int = 20, tol: float = 1e-6, max_iter: int = 10_000
) -> Coefficients:
    r"""Choose few close neighbours whose directions cancel.

    Sample i chooses among its nearest neighbours j, at distances d_j = ‖x_j − x_i‖, by

    .. math:: \min_c\ \lambda \sum_j q_j |c_j| + \tfrac12 \Big\|\sum_j c_j \frac{x_j - x_i}{d_j}\Big\|^2
              \quad\text{s.t.}\ \sum_j c_j = 1,\qquad q_j = d_j / \sum_t d_t,

    and gives neighbour j a weight proportional to abs(c_j) / d_j. Multiplying X by a number changes nothing.

    Parameters
    ----------
    X : (n, m) array, samples as rows
    reg : float
        λ of the paper, the strength of the preference for close neighbours.
    n_neighbors : int
        Candidates per sample, not counting itself (the authors' program counts it: KMax − 1).
    tol : float
        Relative primal and dual residual at which a sample is done; at least 20 times the machine precision.
    max_iter : int
        Largest number of ADMM steps of one sample.

    Returns
    -------
    Coefficients
        Sparse weights ≥ 0; every column sums to one. The published graph is ``keep_column_mass(coefficients, 0.95)``
        and then the elementwise maximum with its transpose. The trace holds the worst residuals over the samples, one
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
    X = check_points(X, n_neighbors)
    if reg <= 0:
        raise ValueError(f"reg must be positive, got {reg}: without it SMCE has no reason to be sparse.")
    tol = max(tol, 20 * float(np.finfo(X.dtype).eps))
    neighbors = nearest_neighbors(X, n_neighbors)[1]

    def solve(start: int, stop: int) -> tuple[Array, Trace]:
        gram, distances = _direction_grams(X, neighbors[start:stop], start)
        shares = distances / distances.sum(axis=1, keepdims=True)
        solution, trace = _sparse_sum_to_one(gram, shares, reg, tol, max_iter)
        weights = np.abs(solution) / shares
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total > 0, total, 1), trace

    weights, traces = zip(*map_blocks(solve, row_blocks(len(X), 3 * n_neighbors**2 * X.itemsize)), strict=True)
    trace = _worst_trace(list(traces))
    if not trace.converged:
        warnings.warn(
            f"smce: stopped after max_iter={max_iter} steps with relative residuals {trace.primal[-1]:.1e} "
            f"(primal) and {trace.dual[-1]:.1e} (dual) above tol={tol:.1e}; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return from_sparse(columns_to_sparse(neighbors, np.concatenate(weights)), trace)


def _direction_grams(X: Array, neighbors: Array, first: int) -> tuple[Array, Array]:
    """Return the Gram matrices of the unit directions from samples ``first, first + 1, ...`` to their neighbours.

    The distances are returned relative to their mean and clipped at eps: a duplicate has a tiny positive distance and
    the zero direction, so it takes all the weight instead of turning it into 0/0.
    """
    n_samples, n_neighbors = neighbors.shape
    gram = np.empty((n_samples, n_neighbors, n_neighbors), X.dtype)
    distances = np.empty((n_samples, n_neighbors), X.dtype)
    # The differences themselves, not G_jk − G_ji − G_ki + G_ii: close neighbours would cancel to noise.
    for start, stop in row_blocks(n_samples, n_neighbors * X.shape[1] * X.itemsize):
        differences = X[neighbors[start:stop]] - X[first + start : first + stop, None]
        lengths = np.linalg.norm(differences, axis=2)
        mean = lengths.mean(axis=1, keepdims=True)
        mean[mean == 0] = 1
        relative = np.maximum(lengths / mean, np.finfo(X.dtype).eps)
        differences /= (relative * mean)[:, :, None]
        gram[start:stop], distances[start:stop] = differences @ differences.swapaxes(1, 2), relative
    return gram, distances


def _sparse_sum_to_one(gram: Array, shares: Array, reg: float, tol: float, max_iter: int) -> tuple[Array, Trace]:
    """Solve min ½cᵀGc + reg Σ q_j|c_j|, Σ c_j = 1 for a batch of (s, s) matrices G by ADMM.

    One copy of c obeys the sum exactly, the other is exactly sparse (and is returned); their difference is the primal
    residual. The multiplier times the penalty always lies in reg q ∂|c|; what the first copy then lacks to be
    stationary is the dual residual. Samples leave the batch as they converge.
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


def _worst_trace(traces: list[Trace]) -> Trace:
    """Join the traces of several batches: the worst residual of those still running at each check."""
    primal = [max(check) for check in zip_longest(*(trace.primal for trace in traces), fillvalue=0.0)]
    dual = [max(check) for check in zip_longest(*(trace.dual for trace in traces), fillvalue=0.0)]
    return Trace(all(t.converged for t in traces), max(t.n_iter for t in traces), primal, dual)


def tsc(X: Array, *, n_neighbors: int) -> Coefficients:
    r"""Thresholding-based subspace clustering: connect each sample to the q samples at the smallest angle.

    .. math:: C_{ji} = \exp(-2 \arccos |\langle x_j, x_i\rangle| / \|x_j\|\|x_i\|)
              \quad\text{for the } q \text{ largest cosines } |\cdot| \text{ of column } i,\ j \neq i.

    C is not symmetric: a sample may be among the q nearest of another that is not among its own.

    Parameters
    ----------
    X : (n, m) array, samples as rows
    n_neighbors : q of the paper

    Returns
    -------
    Coefficients
        Sparse; the published graph is C + Cᵀ. A zero row of X has no angle to anything: its row and column are empty.

    References
    ----------
    Heckel & Bölcskei, "Robust subspace clustering via thresholding", IEEE Trans. Inf. Theory 2015.

    Examples
    --------
    >>> import numpy as np
    >>> tsc(np.array([[1.0, 0], [-2, 0], [0, 1], [0.1, 3]]), n_neighbors=1).dense().round(3)
    array([[0.   , 1.   , 0.   , 0.   ],
           [1.   , 0.   , 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.936],
           [0.   , 0.   , 0.936, 0.   ]])
    """
    X = check_points(X, n_neighbors)
    points: Array = normalize(X)  # zero rows stay zero
    neighbours, cosines = strongest_cosines(points, n_neighbors)
    weights = np.exp(-2 * np.arccos(np.minimum(cosines, 1)))
    nonzero = np.count_nonzero(points, axis=1) > 0
    return from_sparse(columns_to_sparse(neighbours, weights * (nonzero[:, None] & nonzero[neighbours])))


def strongest_cosines(points: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Return indices (ascending) and values of the largest absolute cosines of each unit row with the others."""
    n_samples = len(points)

    def search(start: int, stop: int) -> tuple[Array, Array]:
        cosines = np.abs(points[start:stop] @ points.T)
        cosines[np.arange(stop - start), np.arange(start, stop)] = -1  # not its own neighbour
        best = top_columns(cosines, n_neighbors)
        return best, np.take_along_axis(cosines, best, axis=1)

    # Larger blocks than for elementwise work: each one streams all samples through a matrix product.
    blocks = row_blocks(n_samples, n_samples * points.itemsize, 8 * BLOCK_BYTES)
    indices, values = zip(*map_blocks(search, blocks), strict=True)
    return np.concatenate(indices), np.concatenate(values)
