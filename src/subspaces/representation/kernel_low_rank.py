"""KLRR: low-rank representation in the feature space of a kernel, from the Gram matrix alone."""

from __future__ import annotations

import warnings

import numpy as np

from subspaces.representation import _nuclear as nuclear
from subspaces.representation._nuclear import RELAXATION, LowRank, squared_norm
from subspaces.representation.coefficients import Coefficients, Factors, Trace, from_factors
from subspaces.representation.inverse import IndefiniteKernelWarning
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import eigh
from subspaces.utils.types import Array

_INDEFINITE = 1e-4  # of the largest eigenvalue: more than rounding in float32, and more than the model can ignore


def kernel_lrr(
    K: Array, *, reg: float, error: str = "l21", tol: float = 1e-3, max_iter: int = 500, start: Array | None = None
) -> Coefficients:
    r"""Low-rank representation of points known by their kernel (KLRR, robust kernel LRR).

    Solves, with :math:`\phi` the feature map of the kernel and points as its columns,

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
        Norm of the errors: whole points may be wrong ("l21", iterative), or all are a little ("fro", closed form
        :math:`Z = V \mathrm{diag}(\max(0, 1 - 1/(\lambda\Lambda_k))) V^T`).
    tol, max_iter, start
        As of :func:`~subspaces.representation.low_rank.lrr`, like what is returned.

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
    >>> from subspaces.representation.kernel_low_rank import kernel_lrr
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
    initial = None if start is None else nuclear.check_start(start, len(K), K.dtype).T @ V
    low, trace = solve_l21(V, spectrum, reg, tol, max_iter, initial)
    return from_factors(low.represented_by(V), trace)


def _positive_part(K: Array) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of K above rounding, the largest first."""
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
    r"""Closed form :math:`Z = V \mathrm{diag}(\max(0, 1 - 1/(\lambda\Lambda_k))) V^T` of the squared error."""
    kept = np.maximum(0, 1 - 1 / (reg * spectrum))
    n_kept = int(np.count_nonzero(kept))  # the spectrum decreases
    return Factors(V[:, :n_kept], kept[:n_kept], V[:, :n_kept])


def metric_shrinkage(
    W: Array, spectrum: Array, reg: float, offset: Array, guess: Array | None = None
) -> tuple[Array, Array]:
    r"""Proximal step of :math:`reg \sqrt{p^T \Lambda p + c}` at every row w of `W`, all rows at once.

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


def solve_l21(
    V: Array, spectrum: Array, reg: float, tol: float, max_iter: int, initial: Array | None
) -> tuple[LowRank, Trace]:
    r"""Minimise :math:`\|B\|_* + reg \sum_i \|\Lambda^{1/2} (v_i - b_i)\|_2`.

    Rows of V are the :math:`v_i`, rows of `initial` (coefficients to start from, or None) and of the result the
    :math:`b_i`.
    """
    n, rank = V.shape
    kept, size = nuclear.squared_error_match(spectrum, reg, n)
    residuals = nuclear.Residuals(tol, max_iter)
    if initial is None:
        errors, multipliers = V * (1 - kept), V * np.minimum(1, (reg / size) * spectrum)
    else:
        errors, multipliers = V - initial, _multipliers_of(V - initial, initial, spectrum, reg)
    sizes = np.zeros(n, dtype=V.dtype)
    expected_rank = int(np.count_nonzero(kept))
    n_solved = 0
    for level in nuclear.levels(rank, expected_rank):
        target, metric = np.ascontiguousarray(V[:, :level]), spectrum[:level]
        offset = V[:, level:] ** 2 @ spectrum[level:]
        if n_solved:
            # The multiplier of a direction not solved for yet follows from the size of the point's error.
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


def _multipliers_of(errors: Array, coefficients: Array, spectrum: Array, reg: float) -> Array:
    """Multipliers for coefficients given without them.

    The errors fix them up to the errors of the errors, which large eigenvalues magnify; the projection on the
    unit ball of the spectral norm, where the optimal ones lie, removes what was magnified.
    """
    sizes = np.sqrt(errors**2 @ spectrum)
    weights = reg * np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    M = coefficients + errors * spectrum * weights[:, None]
    return M - nuclear.singular_value_shrinkage(M, M.shape[1]).dense()
