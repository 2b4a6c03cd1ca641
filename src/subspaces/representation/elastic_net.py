"""Elastic-net self-expression: a sparse code of every sample over all others, solved to optimality.

Every sample i has its own problem (You, Li, Robinson and Vidal, "Oracle Based Active Set Algorithm for Scalable
Elastic Net Subspace Clustering", CVPR 2016)::

    min over c, c_i = 0:   τ ‖c‖₁ + (1 − τ)/2 ‖c‖² + γᵢ/2 ‖x_i − Σ_j c_j x_j‖²

whose dual variable is the scaled residual δ = γᵢ (x_i − Σ_j c_j x_j): c is optimal exactly when
(1 − τ) c_j = soft(⟨x_j, δ⟩, τ) for all j ≠ i. The paper's oracle follows: only samples with |⟨x_j, δ⟩| > τ take
part, so the problem is solved over a small working set, and one product X δ tells whether a sample outside of
it is missing. Here both halves run on a batch of samples at once: the oracle test is one matrix product, and
the small problems are solved together by a semismooth Newton method on the dual, which is piecewise quadratic.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation.coefficients import Coefficients, Trace, from_sparse
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import coordinates, solve_systems
from subspaces.utils.process import one_thread
from subspaces.utils.types import Array, Sparse

BATCH_BYTES = 8 * 2**20
"""Bytes of one (batch, n) block of correlations."""

MIN_BATCH, MAX_BATCH = 32, 256
"""Samples per batch: below, Python's overhead shows; above, nothing is gained."""

WORKING_SET = 30
"""Atoms in the first working sets, which grow with the supports. More (trials to 100) saves tests but slows steps."""

_LARGEST_GAMMA = 1e30

MIN_RIDGE = 1e-4
"""Where (1 − τ)/γ is smaller, a proximal term makes up for it: a lasso alone has no smooth dual."""

NEWTON_BYTES = 2 * 2**20
"""Bytes of the working sets of one block of Newton steps: every step reads them, so they should stay in cache."""

MAX_NEWTON, MAX_HALVINGS = 100, 30
"""Newton steps on one working set and halvings of one step; about six and one are usual."""


@dataclass(frozen=True)
class _Codes:
    """Hold the codes of one batch as sparse rows, and its largest violation after every oracle test."""

    rows: Sparse
    violation: list[float]
    objective: list[float]
    n_unfinished: int


@dataclass
class Problems:
    """Hold the elastic-net problems of some samples of a batch, one per row.

    They are solved in double precision for any data: rounding grows by γ/(1 − τ) here, and they take little memory.
    """

    rows: Array  # position in the batch
    points: Array  # x, the sample to represent
    weights: Array  # γᵢ
    tolerance: Array  # largest violation allowed
    dual: Array  # δ, in the end γᵢ times the residual
    working: Array  # numbers of the atoms in the working set
    centre: Array  # c̄, the last code over the working set: centre of the proximal term
    proximal: Array  # weight of the proximal term

    def __getitem__(self, index: Array | slice) -> Problems:
        return Problems(*(getattr(self, part.name)[index] for part in fields(self)))


def elastic_net(
    X: Array, *, error_weight: float = 50.0, l1_ratio: float = 0.9, tol: float = 1e-6, max_iter: int = 100
) -> Coefficients:
    r"""Compute elastic-net coefficients of every sample over all others (EnSC; the lasso for ``l1_ratio=1``).

    .. math:: \min_{c_{ii} = 0}\; \tau\|c_i\|_1 + \tfrac{1-\tau}{2}\|c_i\|_2^2
              + \tfrac{\gamma_i}{2}\bigl\|x_i - \textstyle\sum_j c_{ji} x_j\bigr\|_2^2,
              \qquad \gamma_i = \gamma\,\tau / \max_{j \ne i} |x_j^\top x_i|

    Parameters
    ----------
    X : array of shape (n, m)
        Samples as rows, usually of unit length. A factor common to all of X changes nothing.
    error_weight : float, default=50.0
        Weight of the fit γ, in units of the weight at which the first coefficient leaves zero; above 1, usually 5
        to 500. Larger gives a closer fit and more coefficients.
    l1_ratio : float, default=0.9
        Share τ of the l1 norm in the penalty, in (0, 1]; 1 is the lasso. Smaller gives a better connected graph.
    tol : float, default=1e-6
        Largest violation of the optimality conditions, over all samples and coefficients, relative to τ; at least
        about 50 γ times the machine precision.
    max_iter : int, default=100
        Largest number of oracle tests for a sample; two to six are usual.

    Returns
    -------
    Coefficients
        Sparse, with zero diagonal; the column of a sample that is zero or orthogonal to all others is zero. In the
        trace, after each oracle test, ``primal`` is the largest relative violation and ``objective`` the sum over all
        samples.

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
    with one_thread("blas"):  # the threads are those of the batches
        codes = map_blocks(
            lambda lo, hi: _solve_batch(atoms, lo, hi, error_weight, l1_ratio, tol, max_iter),
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


def batches(n_samples: int, itemsize: int) -> list[tuple[int, int]]:
    """Return ranges of samples whose correlations with all others take about `BATCH_BYTES`."""
    return row_blocks(n_samples, 1, min(MAX_BATCH, max(MIN_BATCH, BATCH_BYTES // (n_samples * itemsize))))


def check_rows(X: Array) -> None:
    """Refuse anything but a finite two-dimensional array of samples."""
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

    The problems involve inner products only, so samples with more features than samples (texts, genes) are replaced
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
    """Join the traces of all batches; a batch that has finished stays at its last values."""
    n_iter = max(len(part.violation) for part in codes)
    rounds = [[min(step, len(part.violation) - 1) for part in codes] for step in range(n_iter)]
    violation = [max(part.violation[k] for part, k in zip(codes, ks, strict=True)) for ks in rounds]
    objective = [sum(part.objective[k] for part, k in zip(codes, ks, strict=True)) for ks in rounds]
    return Trace(converged, n_iter, primal=violation, objective=objective)


def _solve_batch(
    atoms: Array, start: int, stop: int, error_weight: float, l1_ratio: float, tol: float, max_iter: int
) -> _Codes:
    """Solve the samples ``start:stop``: solve on the working sets, test all atoms, change the sets, repeat."""
    problems = _first_problems(atoms, start, stop, error_weight, l1_ratio, tol)
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
    """Set up the problems of the samples ``start:stop`` that have a code, on their most coherent atoms."""
    points = atoms[start:stop]
    rows = np.arange(stop - start)
    correlations = np.abs(points @ atoms[:-1].T)
    correlations[rows, rows + start] = -1
    coherence = correlations.max(axis=1)
    lengths = np.sqrt(np.vecdot(points, points))
    eps = np.finfo(atoms.dtype).eps
    # Correlations at the level of rounding carry no information: such a sample gets no code.
    rows = np.flatnonzero(coherence > 4 * eps * lengths)
    points, lengths = points[rows].astype(np.float64), lengths[rows]
    # At this weight the first coefficient leaves zero (Proposition 1 of the paper).
    threshold = l1_ratio / coherence[rows].astype(np.float64)
    tolerance = np.maximum(tol * l1_ratio, 32 * eps * error_weight * threshold * lengths)
    working = _largest(correlations[rows], min(WORKING_SET, atoms.shape[0] - 2))
    dual, centre, proximal = points * threshold[:, None], np.zeros(working.shape), np.zeros(rows.shape)
    return Problems(rows, points, error_weight * threshold, tolerance, dual, working, centre, proximal)


def _proximal_weights(weights: Array, l1_ratio: float, n_iter: int) -> Array:
    """Return the curvature that 1 − τ lacks; it decreases, as a constant one slows moves between near-equal codes."""
    ridge = max(1e-10, MIN_RIDGE * 0.1 ** max(0, n_iter - 6))
    return np.maximum(0, ridge * weights - (1 - l1_ratio))


def _largest(scores: Array, size: int) -> Array:
    """Return the columns of the `size` largest entries of each row."""
    first = scores.shape[1] - size
    return np.argpartition(scores, min(first, scores.shape[1] - 1), axis=1)[:, first:]


def _objective(values: Array, problems: Problems, l1_ratio: float) -> Array:
    """Return the objective of every problem; the dual variable is the residual times the weight."""
    penalty = l1_ratio * np.abs(values) + (1 - l1_ratio) / 2 * values**2
    return penalty.sum(axis=1) + np.vecdot(problems.dual, problems.dual) / (2 * problems.weights)


def _oracle_test(correlations: Array, codes: Array, problems: Problems, start: int, l1_ratio: float) -> Array:
    """Return the largest violation of the optimality conditions of every problem over all atoms.

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


# ------------------------------------------------------------------ the small problems, by Newton's method


def excess_of(correlations: Array, codes: Array, l1_ratio: float) -> Array:
    """Return the violation of u_j = τ sign(c_j) + (1 − τ) c_j, or of |u_j| ≤ τ where c_j = 0."""
    on = np.abs(correlations - (1 - l1_ratio) * codes - l1_ratio * np.sign(codes))
    return np.where(codes != 0, on, np.maximum(on - l1_ratio, 0))


def _soft(values: Array, threshold: float) -> Array:
    """Return the entries moved towards zero by `threshold`, those below it set to zero."""
    return values - np.clip(values, -threshold, threshold)


def solve_working_sets(atoms: Array, problems: Problems, l1_ratio: float) -> Array:
    """Return codes over the working sets, block by block; leaves γ times the residuals in ``problems.dual``."""
    values = np.empty(problems.working.shape)
    bytes_per_problem = problems.working.shape[1] * atoms.shape[1] * values.itemsize
    for start, stop in row_blocks(len(values), bytes_per_problem, NEWTON_BYTES):
        block = problems[start:stop]
        solve = _polished if block.proximal.any() else _newton
        values[start:stop], problems.dual[start:stop] = solve(atoms, block, l1_ratio)
    return values


def _polished(atoms: Array, problems: Problems, l1_ratio: float) -> tuple[Array, Array]:
    """Return the better codes and duals: with the proximal term, or without it on the support and signs found."""
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
    """Solve all problems over their working sets W by a semismooth Newton method on the dual; return codes and duals.

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
    """Return the atoms of every problem in double precision, (problem, atom, feature)."""
    return atoms[numbers].astype(np.float64, copy=False)


def _packed(chosen: Array, atoms: Array, padding: int) -> tuple[Array, Array]:
    """Move the chosen atoms of each row to the left, padded to the longest list; also return which slots are filled."""
    counts = np.count_nonzero(chosen, axis=1)
    slots = np.arange(counts.max()) < counts[:, None]
    packed = np.full(slots.shape, padding, dtype=atoms.dtype)
    packed[slots] = atoms[chosen]
    return packed, slots


def _times(matrices: Array, vectors: Array) -> Array:
    """Multiply every matrix with its vector."""
    return (matrices @ vectors[:, :, None])[:, :, 0]


def _combine(codes: Array, local: Array) -> Array:
    """Combine the atoms of every problem by its code."""
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
