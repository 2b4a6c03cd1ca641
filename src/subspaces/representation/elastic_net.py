"""Elastic-net self-expression: a sparse code of every point over all the others, solved to optimality.

Every point i has its own problem (You, Li, Robinson and Vidal, CVPR 2016)::

    min over c, c_i = 0:   τ ‖c‖₁ + (1 − τ)/2 ‖c‖² + γᵢ/2 ‖x_i − Σ_j c_j x_j‖²

whose dual variable is the scaled residual δ = γᵢ (x_i − Σ_j c_j x_j): c is optimal exactly when
(1 − τ) c_j = soft(⟨x_j, δ⟩, τ) for all j ≠ i. The paper's oracle follows: only points with |⟨x_j, δ⟩| > τ take
part, so the problem is solved over a small working set, and one product X δ tells whether a point outside of
it is missing. Here both halves run on a batch of points at once: the oracle test is one matrix product, and
the small problems are solved together by a semismooth Newton method on the dual.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation._elastic_net_newton import Problems, excess_of, solve_working_sets
from subspaces.representation.coefficients import Coefficients, Trace, from_sparse
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import coordinates
from subspaces.utils.process import one_thread
from subspaces.utils.types import Array, Sparse

BATCH_BYTES = 8 * 2**20
"""Bytes of one (batch, n) block of correlations."""

MIN_BATCH, MAX_BATCH = 32, 256
"""Points per batch: below, Python's overhead shows; above, nothing is won."""

WORKING_SET = 30
"""Atoms in the first working sets, which grow with the supports. More (trials to 100) saves tests but slows steps."""

_LARGEST_GAMMA = 1e30

MIN_RIDGE = 1e-4
"""Where (1 − τ)/γ is smaller, a proximal term makes up for it: a lasso alone has no smooth dual."""


@dataclass(frozen=True)
class _Codes:
    """Codes of one batch as sparse rows, and how far its points were after every oracle test."""

    rows: Sparse
    violation: list[float]
    objective: list[float]
    n_unfinished: int


def elastic_net(
    X: Array,
    *,
    error_weight: float = 50.0,
    l1_ratio: float = 0.9,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Array | Sparse | None = None,
) -> Coefficients:
    r"""Elastic-net coefficients of every point over all the others (EnSC; the lasso for ``l1_ratio=1``).

    .. math:: \min_{c_{ii} = 0}\; \tau\|c_i\|_1 + \tfrac{1-\tau}{2}\|c_i\|_2^2
              + \tfrac{\gamma_i}{2}\bigl\|x_i - \textstyle\sum_j c_{ji} x_j\bigr\|_2^2,
              \qquad \gamma_i = \gamma\,\tau / \max_{j \ne i} |x_j^\top x_i|

    Parameters
    ----------
    X : array of shape (n, m)
        Points as rows, usually of unit length. A factor common to all of X changes nothing.
    error_weight : float, default=50.0
        Weight of the fit γ, in units of the weight at which the first coefficient leaves zero; above 1, usually 5
        to 500. Larger gives a closer fit and more coefficients.
    l1_ratio : float, default=0.9
        Share τ of the l1 norm in the penalty, in (0, 1]; 1 is the lasso. Smaller gives a better connected graph.
    tol : float, default=1e-6
        Largest violation of the optimality conditions, over all points and coefficients, relative to τ. Where that is
        below rounding, about 50 γ times the machine precision is used.
    max_iter : int, default=100
        Most oracle tests for a point; two to six are usual.
    start : array or sparse array of shape (n, n), optional
        Coefficients to start from, such as those for a nearby `error_weight`: they give the first working sets.

    Returns
    -------
    Coefficients
        Sparse, with zero diagonal; the column of a point that is zero or orthogonal to all others is zero. In the
        trace, after each oracle test, ``primal`` is the largest relative violation and ``objective`` the sum over all
        points.

    References
    ----------
    C. You et al., "Oracle Based Active Set Algorithm for Scalable Elastic Net Subspace Clustering", CVPR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    >>> elastic_net(X).columns(0, 5).round(2)[[0, 4]]
    array([[ 0.  ,  1.21, -0.71,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.  , -0.98,  0.  ]])
    """
    _check(X, error_weight, l1_ratio, max_iter)
    n_samples = X.shape[0]
    atoms = _scaled_atoms(X)
    first_codes = None if start is None else _start_rows(start, n_samples)
    with one_thread("blas"):  # the threads are those of the batches
        codes = map_blocks(
            lambda lo, hi: _solve_batch(atoms, lo, hi, error_weight, l1_ratio, tol, max_iter, first_codes),
            batches(n_samples, atoms.itemsize),
        )
    n_unfinished = sum(part.n_unfinished for part in codes)
    trace = _joined_trace(codes, n_unfinished == 0)
    if n_unfinished:
        message = (
            f"elastic_net: {n_unfinished} of {n_samples} points are not optimal to tol={tol:g} after max_iter="
            f"{max_iter} tests (relative violation {trace.primal[-1]:.1e}); raise max_iter, tol, or lower error_weight."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return from_sparse(sparse.vstack([part.rows for part in codes], format="csr").T, trace)


def elastic_net_path(
    X: Array, gammas: Iterable[float], *, l1_ratio: float = 0.9, tol: float = 1e-6, max_iter: int = 100
) -> Iterator[Coefficients]:
    """Yield :func:`elastic_net` for each of `gammas`, best in ascending order, each started from the one before."""
    start: Sparse | None = None
    for error_weight in gammas:
        found = elastic_net(X, error_weight=error_weight, l1_ratio=l1_ratio, tol=tol, max_iter=max_iter, start=start)
        start = found.sparse()
        yield found


def _start_rows(start: Array | Sparse, n_samples: int) -> Sparse:
    """Columns of `start` as sparse rows, without its diagonal."""
    if start.shape != (n_samples, n_samples):
        raise ValueError(f"start must be of shape ({n_samples}, {n_samples}) like the result, got {start.shape}.")
    rows = sparse.coo_array(start).T
    if not np.isfinite(rows.data).all():
        raise ValueError("start must be finite, got NaN or infinity.")
    off = rows.row != rows.col
    return sparse.csr_array((rows.data[off], (rows.row[off], rows.col[off])), shape=rows.shape)


def batches(n_samples: int, itemsize: int) -> list[tuple[int, int]]:
    """Ranges of points whose correlations with all others are of about `BATCH_BYTES`."""
    return row_blocks(n_samples, 1, min(MAX_BATCH, max(MIN_BATCH, BATCH_BYTES // (n_samples * itemsize))))


def check_rows(X: Array) -> None:
    """Refuse what is no finite array of points as rows."""
    if X.ndim != 2 or X.shape[0] < 1:
        raise ValueError(f"X must be a two-dimensional array with points as rows, got shape {X.shape}.")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite, got NaN or infinity. Remove or impute these points.")


def _check(X: Array, error_weight: float, l1_ratio: float, max_iter: int) -> None:
    check_rows(X)
    if not error_weight > 1:
        raise ValueError(
            f"error_weight must be above 1, below it every coefficient is zero; got {error_weight}. Try 50."
        )
    if error_weight > _LARGEST_GAMMA:
        raise ValueError(
            f"error_weight must be below {_LARGEST_GAMMA:.0e}, its square is computed with; got {error_weight}. Try 50."
        )
    if not 0 < l1_ratio <= 1:
        raise ValueError(f"l1_ratio must be in (0, 1], got {l1_ratio}. Use ridge for codes without the l1 norm.")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter}. Try 100.")


def _scaled_atoms(X: Array) -> Array:
    """Copy X with the longest row of length one, so that nothing overflows, and a zero row that pads lists of atoms.

    The problems know inner products only, so points of more features than there are points (texts, genes) are replaced
    by their coordinates in a basis of their span: every step of Newton's method reads all features of its atoms.
    """
    atoms = np.zeros((X.shape[0] + 1, X.shape[1]), dtype=np.result_type(X.dtype, np.float32))
    peak = np.abs(X).max(initial=0)
    if peak > 0:
        np.divide(X, peak, out=atoms[:-1])
        atoms /= np.sqrt(np.vecdot(atoms, atoms).max())
    if X.shape[1] > X.shape[0]:
        return np.vstack([coordinates(atoms[:-1]), np.zeros((1, X.shape[0]), dtype=atoms.dtype)])
    return atoms


def _joined_trace(codes: list[_Codes], converged: bool) -> Trace:
    """Trace of all batches side by side; a batch that has finished stays at its last values."""
    n_iter = max(len(part.violation) for part in codes)
    rounds = [[min(step, len(part.violation) - 1) for part in codes] for step in range(n_iter)]
    violation = [max(part.violation[k] for part, k in zip(codes, ks, strict=True)) for ks in rounds]
    objective = [sum(part.objective[k] for part, k in zip(codes, ks, strict=True)) for ks in rounds]
    return Trace(converged, n_iter, primal=violation, objective=objective)


def _solve_batch(
    atoms: Array,
    start: int,
    stop: int,
    error_weight: float,
    l1_ratio: float,
    tol: float,
    max_iter: int,
    first_codes: Sparse | None,
) -> _Codes:
    """Codes of the points ``start:stop``: solve on the working sets, test all atoms, change the sets, repeat."""
    problems = _first_problems(atoms, start, stop, error_weight, l1_ratio, tol)
    if first_codes is not None and len(problems.rows):
        _start_from(problems, first_codes[start + problems.rows].toarray(), atoms, start, l1_ratio)
    codes = np.zeros((stop - start, atoms.shape[0] - 1), dtype=atoms.dtype)
    violation, objective = np.zeros(stop - start), np.zeros(stop - start)
    violations, objectives = [], []
    for n_iter in range(max_iter):
        problems.proximal = _proximal_weights(problems.weights, l1_ratio, n_iter)
        values = solve_working_sets(atoms, problems, l1_ratio).astype(codes.dtype)
        codes[problems.rows] = 0
        codes[problems.rows[:, None], problems.working] = values
        objective[problems.rows] = _objective(values, problems, l1_ratio)
        correlations = problems.dual.astype(atoms.dtype) @ atoms[:-1].T
        excess = _oracle_test(correlations, values, problems, start, l1_ratio)
        violation[problems.rows] = excess / l1_ratio
        violations.append(float(violation.max()))
        objectives.append(float(objective.sum()))
        unfinished = excess > problems.tolerance
        problems = problems[unfinished]
        if not problems.rows.size:
            break
        n_support = int(np.count_nonzero(values[unfinished], axis=1).max())
        size = max(problems.working.shape[1], n_support + n_support // 2)
        problems.working = _largest(correlations[unfinished], min(size, codes.shape[1] - 1))
        problems.centre = codes[problems.rows[:, None], problems.working].astype(np.float64)
    return _Codes(sparse.csr_array(codes), violations, objectives, problems.rows.size)


def _first_problems(atoms: Array, start: int, stop: int, error_weight: float, l1_ratio: float, tol: float) -> Problems:
    """Problems of the points ``start:stop`` that have a code, on their most coherent atoms."""
    points = atoms[start:stop]
    rows = np.arange(stop - start)
    correlations = np.abs(points @ atoms[:-1].T)
    correlations[rows, rows + start] = -1
    coherence = correlations.max(axis=1)
    lengths = np.sqrt(np.vecdot(points, points))
    eps = np.finfo(atoms.dtype).eps
    # Correlations at the level of rounding say nothing about a point: it gets no code.
    rows = np.flatnonzero(coherence > 4 * eps * lengths)
    points, lengths = points[rows].astype(np.float64), lengths[rows]
    # At this weight the first coefficient leaves zero (Proposition 1 of the paper).
    threshold = l1_ratio / coherence[rows].astype(np.float64)
    tolerance = np.maximum(tol * l1_ratio, 32 * eps * error_weight * threshold * lengths)
    working = _largest(correlations[rows], min(WORKING_SET, atoms.shape[0] - 2))
    dual, centre, proximal = points * threshold[:, None], np.zeros(working.shape), np.zeros(rows.shape)
    return Problems(rows, points, error_weight * threshold, tolerance, dual, working, centre, proximal)


def _start_from(problems: Problems, codes: Array, atoms: Array, start: int, l1_ratio: float) -> None:
    """Give every problem the working set, the dual and the centre that belong to a code of a neighbouring problem.

    A code c with residual r is optimal at the weight γ with γ ⟨Σ_j c_j x_j, r⟩ = τ‖c‖₁ + (1 − τ)‖c‖². The dual γ r at
    that weight, not at the new one, is the nearest guess: it changes much less along a path than the weight does.
    """
    fits = (codes @ atoms[:-1]).astype(np.float64)
    residuals = problems.points - fits
    slopes = np.vecdot(fits, residuals)
    penalties = l1_ratio * np.abs(codes).sum(axis=1) + (1 - l1_ratio) * np.vecdot(codes, codes)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = penalties / slopes
    is_near = (penalties > 0) & (slopes > 0) & (weights < 1e3 * problems.weights) & (weights > 1e-3 * problems.weights)
    problems.dual[is_near] = weights[is_near, None] * residuals[is_near]
    scores = np.abs(problems.dual @ atoms[:-1].T)
    scores[np.arange(len(codes)), problems.rows + start] = -1
    scores[codes != 0] = np.inf
    n_support = int(np.count_nonzero(codes, axis=1).max())
    size = max(problems.working.shape[1], n_support + n_support // 2)
    problems.working = _largest(scores, min(size, codes.shape[1] - 1))
    problems.centre = np.take_along_axis(codes, problems.working, axis=1).astype(np.float64)


def _proximal_weights(weights: Array, l1_ratio: float, n_iter: int) -> Array:
    """Curvature that 1 − τ lacks. It falls in the end: a constant one makes the way between near-equal codes long."""
    ridge = max(1e-10, MIN_RIDGE * 0.1 ** max(0, n_iter - 6))
    return np.maximum(0, ridge * weights - (1 - l1_ratio))


def _largest(scores: Array, size: int) -> Array:
    """Columns of the `size` largest entries of each row."""
    first = scores.shape[1] - size
    return np.argpartition(scores, min(first, scores.shape[1] - 1), axis=1)[:, first:]


def _objective(values: Array, problems: Problems, l1_ratio: float) -> Array:
    """Value of every problem at its code: the dual variable is the residual times the weight."""
    penalty = l1_ratio * np.abs(values) + (1 - l1_ratio) / 2 * values**2
    return penalty.sum(axis=1) + np.vecdot(problems.dual, problems.dual) / (2 * problems.weights)


def _oracle_test(correlations: Array, codes: Array, problems: Problems, start: int, l1_ratio: float) -> Array:
    """Largest violation of the optimality conditions of every problem over all atoms.

    Turns `correlations` into scores for the next working set: infinite on the support, so that it is never dropped
    and the objective can only fall.
    """
    local = np.take_along_axis(correlations, problems.working, axis=1)
    inside = excess_of(local, codes, l1_ratio).max(axis=1, initial=0)
    np.abs(correlations, out=correlations)
    correlations[np.arange(len(codes)), problems.rows + start] = -1
    np.put_along_axis(correlations, problems.working, -1, axis=1)
    outside = correlations.max(axis=1) - l1_ratio
    scores = np.where(codes != 0, np.inf, np.abs(local))
    np.put_along_axis(correlations, problems.working, scores, axis=1)
    return np.maximum(inside, outside)
