"""Sparse self-expression: SSC and KSSC, solved exactly by an active-set method, and the authors' ADMM.

For every sample i the column c of C solves  min ‖c‖₁ + f(c)  with c_i = 0 and, if `affine`, 1ᵀc = 1, where
f(c) = λ/2 ‖φ(x_i) − φ(X)c‖² or, with outlying entries, the same after the best sparse error e was taken out of
the residual r: min_e λ_e ‖e‖₁ + λ/2 ‖r − e‖², a Huber function of r.

The authors run ADMM on dense n × n matrices. But a column has some ten nonzeros among thousands, so we work on
the supports: a *round* reads the slopes −∇f of all atoms from one sparse product, adds the atoms that break the
optimality conditions most, and solves the small problems on the supports directly, many samples at once. This
lowers the objective of every unfinished sample; a sample leaves once the conditions hold for all atoms:
|slope| ≤ 1, and slope = sign(c_j) where c_j ≠ 0 (after subtracting the multiplier ν of the affine constraint).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from subspaces.representation.coefficients import Coefficients, Trace, from_dense
from subspaces.utils.blocks import map_blocks, row_blocks
from subspaces.utils.decompositions import eigh, solve_systems
from subspaces.utils.types import Array, Labels, Sparse

MIN_ADDED = 8
"""Atoms a sample may gain per round, at least; large supports may grow by half, so rounds stay few."""

ADMM_SQUARES = 7
"""Arrays of n × n numbers that exist at once in :func:`ssc_admm`."""


def ssc(
    X: Array,
    *,
    error_weight: float = 20.0,
    affine: bool = False,
    outliers: bool = False,
    tol: float = 1e-4,
    max_iter: int = 200,
) -> Coefficients:
    """Solve sparse subspace clustering: min ‖C‖₁ (+ λ_e‖E‖₁) + λ/2 ‖X − XC − E‖² with zero diagonal.

    This solves the problem stated by E. Elhamifar and R. Vidal, "Sparse subspace clustering: algorithm, theory,
    and applications", TPAMI 2013. Their program does not: it zeroes the diagonal of the wrong ADMM variable
    and, with `outliers`, drops the quadratic term. Two n × n arrays are held, the Gram matrix and C.

    Parameters
    ----------
    X : array of shape (n, m)
        Samples as rows (the paper's matrix is the transpose).
    error_weight : float
        λ = `error_weight` / μ, see :func:`data_weight`. Up to 1 some columns are zero, above 1 none is. The number of
        nonzeros grows with it and so does the time.
    affine : bool
        Require columns that sum to one (affine subspaces).
    outliers : bool
        Let a sparse error E take the outlying entries of X, with λ_e = `error_weight` / μ_e (:func:`outlier_weight`).
    tol : float
        Largest violation of the optimality conditions, relative to the weight 1 of ‖C‖₁. The objective of
        a sample is then within about 2 `tol` ‖c‖₁ of its minimum.
    max_iter : int
        Largest number of rounds; reaching it gives a :class:`~sklearn.exceptions.ConvergenceWarning`.

    Returns
    -------
    Coefficients
        C is dense, its columns contiguous in memory, the diagonal exactly zero. The trace holds, before each round and
        at the end, the largest violation over all samples of 1ᵀc = 1 (``primal``) and of the slope conditions
        (``dual``), and the objective summed over the samples.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> np.argwhere(ssc(X, error_weight=100.0).dense()).tolist()
    [[0, 1], [1, 0], [2, 3], [3, 2]]
    """
    points = check_array(X, dtype=[np.float64, np.float32], order="C", input_name="X")
    gram = points @ points.T
    if not outliers:
        return kssc(gram, error_weight=error_weight, affine=affine, tol=tol, max_iter=max_iter)
    weight = data_weight(gram, error_weight)
    threshold = outlier_weight(points, error_weight) / weight
    return from_dense(*_solve(_Huber(gram, weight, points, threshold), affine, tol, max_iter))


def kssc(
    K: Array, *, error_weight: float = 20.0, affine: bool = False, tol: float = 1e-4, max_iter: int = 200
) -> Coefficients:
    """Solve kernel SSC: min ‖C‖₁ + λ/2 tr((I − C)ᵀ K (I − C)) with zero diagonal, from K alone.

    `K` (n × n) is symmetric positive semidefinite; the other parameters and the result are those of
    :func:`ssc`, which this is for K = XXᵀ. V. M. Patel, R. Vidal, "Kernel sparse subspace clustering", 2014.
    """
    gram = check_array(K, dtype=[np.float64, np.float32], input_name="K")
    if gram.shape[0] != gram.shape[1]:
        raise ValueError(f"K must be square, got shape {gram.shape}; pass the points to ssc instead.")
    # The products below want C order; a symmetric matrix in Fortran order has it already, transposed.
    gram = gram.T if gram.flags.f_contiguous else np.ascontiguousarray(gram)
    return from_dense(*_solve(_Squared(gram, data_weight(gram, error_weight)), affine, tol, max_iter))


def ssc_admm(
    X: Array, *, error_weight: float = 20.0, affine: bool = False, tol: float = 2e-4, max_iter: int = 200
) -> Coefficients:
    """Run the iterations of the authors' SSC program and stop where it stops.

    The program alternates (ADMM) between Z, a ridge problem, and C, soft thresholding, with multipliers Λ for Z = C
    and, for affine subspaces, δ for 1ᵀZ = 1ᵀ. It zeroes the diagonal of Z after the ridge problem instead of in it, and
    stops as soon as Z and C agree to 2·10⁻⁴, a few per cent above the minimum that :func:`ssc` reaches. On tracks of
    moving objects its columns have 60 to 170 entries instead of six or seven. The small ones hold the graph of a motion
    together, and published figures rest on them.

    Parameters are those of :func:`ssc`; `error_weight` is ρ of the multipliers too, and `tol` the largest difference
    between Z and C, and between the sums and one, at which to stop.

    Notes
    -----
    With A = [√λ X, √ρ 1] the ridge problem is (AAᵀ + ρI)Z = AAᵀ + ρC − Λ − 1δᵀ. By Woodbury, with
    H = A(AᵀA + ρI)^(−1/2), Z = P + H(Hᵀ − HᵀP), P = C − (Λ + 1δᵀ)/ρ: O(n² m) per step.
    """
    n = len(X)
    _check_affine(affine, n)
    weight = data_weight(X @ X.T, error_weight)
    A = np.sqrt(X.dtype.type(weight)) * X
    if affine:
        A = np.column_stack([A, np.full(n, np.sqrt(error_weight), dtype=X.dtype)])
    values, vectors = eigh((A.T @ A).astype(np.float64))
    H = A @ (vectors / np.sqrt(np.maximum(values, 0) + error_weight)).astype(X.dtype)
    C, scaled, sums = np.zeros((n, n), X.dtype), np.zeros((n, n), X.dtype), np.zeros(n, X.dtype)
    differences: list[float] = []
    while len(differences) < max_iter and (not differences or differences[-1] > tol):
        Z = C - scaled
        Z -= sums
        Z += H @ (H.T - H.T @ Z)
        np.fill_diagonal(Z, 0)
        scaled += Z  # Λ/ρ, of which C is taken away once it is known
        C = np.sign(scaled) * np.maximum(np.abs(scaled) - X.dtype.type(1 / error_weight), 0)
        scaled -= C
        missing = Z.sum(axis=0) - 1 if affine else sums
        sums = sums + missing if affine else sums  # δ/ρ
        Z -= C
        differences.append(max(float(Z.max()), -float(Z.min()), float(np.abs(missing).max()) if affine else 0.0))
    return from_dense(C, Trace(differences[-1] <= tol, len(differences), differences))


def data_weight(K: Array, error_weight: float) -> float:
    """Return λ = `error_weight` / μ with μ = min_i max_{j≠i} |K_ij|: above 1, every column of C is nonzero.

    Samples orthogonal to all others do not enter the minimum: their column is zero whatever λ is.
    """
    largest = np.zeros(len(K))
    for start, stop in row_blocks(len(K), K.itemsize * len(K)):
        magnitude = np.abs(K[start:stop])
        magnitude[np.arange(stop - start), np.arange(start, stop)] = 0
        largest[start:stop] = magnitude.max(axis=1)
    related = largest[largest > 8 * np.finfo(K.dtype).eps * np.diagonal(K).max()]
    return _positive("error_weight", error_weight) / (float(related.min()) if len(related) else 1.0)


def outlier_weight(X: Array, error_weight: float) -> float:
    """Return λ_e = `error_weight` / μ_e with μ_e = min_i max_{j≠i} ‖x_j‖₁: the second largest of these norms."""
    norms = np.sort(np.abs(X).sum(axis=1, dtype=np.float64))
    return _positive("error_weight", error_weight) / (float(norms[-2:][0]) or 1.0)


@dataclass(frozen=True)
class _Squared:
    """Compute the smooth part f(c) = λ/2 (e_i − c)ᵀ K (e_i − c) of the objective, for b samples at once."""

    gram: Array
    weight: float

    def slopes(self, points: Labels, rows: Sparse) -> tuple[Array, Array, Array]:
        """Return −∇f for all atoms (b, n), f (b,) and the residuals (b, m), empty if the methods below need none."""
        b, slope, target = len(points), rows @ self.gram, self.gram[points]
        np.subtract(target, slope, out=slope)
        at, atom = np.repeat(np.arange(b), np.diff(rows.indptr)), rows.indices
        fitted = np.bincount(at, rows.data * (target[at, atom] + slope[at, atom]), b)
        slope *= self.weight
        return slope, self.weight / 2 * (target[np.arange(b), points] - fitted), target[:, :0]

    def curvature(self, atoms: Labels, residual: Array) -> Array:
        """Return the second derivatives (b, k, k) of f along the given atoms (b, k), in double precision."""
        flat = atoms[:, :, None] * len(self.gram) + atoms[:, None, :]
        return self.weight * self.gram.ravel().take(flat).astype(np.float64, copy=False)

    def lengths(self, residual: Array, atoms: Labels, before: Array, step: Array, signs: Array) -> Array | float:
        """Return how far (b, 1) to go along `step` (b, k), from `before` to the minimum of the model."""
        return 1.0


@dataclass(frozen=True)
class _Huber(_Squared):
    """Compute f(c) = λ Σ_t h(r_t), r = x_i − Xᵀc; h is quadratic up to the threshold λ_e/λ and linear beyond.

    E is not stored: given C it is the part of the residual beyond the threshold.
    """

    data: Array
    threshold: float

    def slopes(self, points: Labels, rows: Sparse) -> tuple[Array, Array, Array]:
        residual = self.data[points] - rows @ self.data
        clipped = np.clip(residual, -self.threshold, self.threshold)
        value = self.weight * np.einsum("ij,ij->i", clipped, residual - clipped / 2)
        return self.weight * (clipped @ self.data.T), value, residual

    def curvature(self, atoms: Labels, residual: Array) -> Array:
        """Return the curvature without the entries beyond the threshold, where h is linear.

        All but a tenth of what a quadratic majoriser of h has there: pure Newton steps (none) stall in the
        line search when few entries are left below the threshold, the majoriser (all) needs none but crawls.
        """
        linear = 1 - 0.1 * self.threshold / np.maximum(np.abs(residual), self.threshold)
        linear[np.abs(residual) <= self.threshold] = 0
        entries = np.argsort(linear == 0, axis=1, kind="stable")[:, : int(np.count_nonzero(linear, axis=1).max())]
        vectors = self.data.ravel().take(atoms[:, :, None] * self.data.shape[1] + entries[:, None, :])
        vectors *= np.sqrt(np.take_along_axis(linear, entries, axis=1))[:, None, :]
        return super().curvature(atoms, residual) - self.weight * (vectors @ vectors.transpose(0, 2, 1))

    def lengths(self, residual: Array, atoms: Labels, before: Array, step: Array, signs: Array) -> Array | float:
        """Halve or double the step until the objective stops falling, at most until a value changes its sign."""
        at, slot = np.nonzero(step)
        entries = step[at, slot].astype(self.data.dtype), (at, atoms[at, slot])
        motion = sparse.csr_array(entries, shape=(len(step), len(self.data))) @ self.data
        penalty = np.einsum("ij,ij->i", signs, step)  # derivative of ‖c‖₁
        limit = np.full_like(step, np.inf)
        np.divide(-before, step, out=limit, where=before * step < 0)

        def falls(length: Array) -> Array:
            clipped = np.clip(residual - length * motion, -self.threshold, self.threshold)
            return (penalty < self.weight * np.einsum("ij,ij->i", clipped, motion))[:, None]

        length = np.ones((len(step), 1))
        for _ in range(30):
            rises = ~falls(length)
            if not rises.any():
                break
            length[rises] /= 2
        for _ in range(30):
            longer = np.minimum(2 * length, limit.min(axis=1, keepdims=True))
            further = falls(longer) & (longer > length)
            if not further.any():
                break
            length[further] = longer[further]
        return length


def _solve(loss: _Squared, affine: bool, tol: float, max_iter: int) -> tuple[Array, Trace]:
    """Run rounds over the unfinished samples until none is left."""
    columns = _first_columns(loss.gram, affine)  # row i is column i of C
    n, rounding = len(columns), 16 * float(np.finfo(columns.dtype).eps)
    tol = max(_positive("tol", tol), rounding * loss.weight * float(np.diagonal(loss.gram).max()))
    report = np.zeros((4, n))
    size, primal, dual, objective = report
    trace, unfinished = Trace(False, 0), np.arange(n)
    for n_iter in range(max_iter + 1):

        def one_block(begin: int, end: int, points: Labels = unfinished, update: bool = n_iter < max_iter) -> Labels:
            return _round(loss, columns, report, points[begin:end], affine, tol, update)

        left = map_blocks(one_block, row_blocks(len(unfinished), columns.itemsize * n))
        trace.primal.append(float(primal.max()))
        trace.dual.append(float(dual.max()))
        trace.objective.append(float(objective.sum()))
        unfinished = np.concatenate(left)
        if not len(unfinished):
            break
        # The supports of a block are padded to the largest among them, so like goes with like.
        unfinished = unfinished[np.argsort(size[unfinished], kind="stable")]
    worst = np.maximum(primal, dual)
    if worst.max() > tol:
        warnings.warn(
            f"{np.count_nonzero(worst > tol)} of {n} points violate the optimality conditions by up to "
            f"{worst.max():.1e} (tol={tol:.1e}) after {n_iter} rounds. Raise max_iter or tol, or lower error_weight.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return columns.T, replace(trace, converged=bool(worst.max() <= tol), n_iter=n_iter)


def _round(
    loss: _Squared, columns: Array, report: Array, points: Labels, affine: bool, tol: float, update: bool
) -> Labels:
    """Check the given samples, improve those that fail and return them; a sample that cannot move leaves."""
    rows = sparse.csr_array(columns[points])
    slope, value, residual = loss.slopes(points, rows)
    primal, dual, excess = _violations(points, rows, slope, affine)
    report[:, points] = np.diff(rows.indptr), primal, dual, value + abs(rows).sum(axis=1)
    failing = np.flatnonzero(np.maximum(primal, dual) > tol)
    if not (update and len(failing)):
        return points[failing]
    points, rows, slope, residual = points[failing], rows[failing], slope[failing], residual[failing]
    atoms, values, member = _supports(rows, excess[failing], tol)
    if affine:  # stored values sum to one up to rounding, but a step that mends the sum need not go downhill
        values /= values.sum(axis=1, keepdims=True)
    slope = np.take_along_axis(slope, atoms, axis=1).astype(np.float64, copy=False)
    signs = np.sign(np.where(values != 0, values, slope))
    before, k = values.copy(), atoms.shape[1]
    eps = float(np.finfo(columns.dtype).eps)
    norms = loss.weight * np.diagonal(loss.gram)[atoms].max(axis=1, keepdims=True)
    ridge = np.maximum(eps**0.75 * norms, 1e-290)  # the bound is for atoms that are all zero
    for begin, end in row_blocks(len(points), 8 * k * (k + residual.shape[1])):
        part = np.s_[begin:end, : int(member[begin:end].sum(axis=1).max())]
        curvature = loss.curvature(atoms[part], residual[begin:end])
        _descend(curvature, ridge[begin:end], slope[part], values[part], signs[part], member[part], affine)
    step = values - before
    values = before + step * loss.lengths(residual, atoms, before, step, signs)
    values[values * signs < 0] = 0
    at, slot = np.nonzero(values)
    columns[points] = 0
    columns[points[at], atoms[at, slot]] = values[at, slot]
    moved = np.abs(values - before).max(axis=1) > eps * np.abs(values).max(axis=1)
    return points[moved]


def _violations(points: Labels, rows: Sparse, slope: Array, affine: bool) -> tuple[Array, Array, Array]:
    """Return the violations of 1ᵀc = 1 and of the slope conditions per sample, and |slope| − 1 off the support.

    For affine columns the multiplier ν is subtracted from `slope` in place.
    """
    b = len(points)
    at, atom, sign = np.repeat(np.arange(b), np.diff(rows.indptr)), rows.indices, np.sign(rows.data)
    primal = np.zeros(b)
    if affine:
        primal = np.abs(np.bincount(at, rows.data, b) - 1)
        multiplier = np.bincount(at, slope[at, atom] - sign, b) / np.diff(rows.indptr)
        slope -= multiplier.astype(slope.dtype)[:, None]
    excess = np.abs(slope) - 1
    excess[np.arange(b), points] = 0
    excess[at, atom] = np.abs(slope[at, atom] - sign)
    dual = np.maximum(excess.max(axis=1), 0)
    excess[at, atom] = 0
    return primal, dual, excess


def _supports(rows: Sparse, excess: Array, tol: float) -> tuple[Labels, Array, Array]:
    """Return the atoms (b, k) of each support and of the worst violators, their values, and which slots are used."""
    (b, n), size = excess.shape, np.diff(rows.indptr)
    room = np.maximum(MIN_ADDED, size // 2)
    n_best = min(n, int(room.max()))
    best = np.argpartition(excess, n - n_best, axis=1)[:, n - n_best :]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(excess, best, axis=1), axis=1), axis=1)
    added = (np.take_along_axis(excess, best, axis=1) > tol) & (np.arange(n_best) < room[:, None])
    member = np.arange(n) < (size + added.sum(axis=1))[:, None]
    member = member[:, : int(member.sum(axis=1).max())]
    atoms, values = np.zeros(member.shape, dtype=np.intp), np.zeros(member.shape)
    at = np.repeat(np.arange(b), size)
    slot = np.arange(len(at)) - rows.indptr[at]
    atoms[at, slot], values[at, slot] = rows.indices, rows.data
    at, rank = np.nonzero(added)
    atoms[at, size[at] + rank] = best[at, rank]
    return atoms, values, member


def _descend(
    curvature: Array, ridge: Array, slope: Array, values: Array, signs: Array, member: Array, affine: bool
) -> None:
    """Minimise ‖c‖₁ + f(c) on each support, in place, by Newton steps that stop at the first change of sign.

    An atom whose value would change its sign is dropped, as in Lawson and Hanson's active-set method for
    nonnegative least squares. Among newly added atoms at least one enters with the sign of its slope, so
    the objective falls. `slope` is −∇f at `values` and kept so. `ridge` keeps the systems of dependent
    atoms regular; as we solve for the step, not for the values, it does not bias the result.
    """
    busy = np.arange(len(values))
    while len(busy):  # each turn finishes a sample or drops an atom from its support
        inside, sign, old, hessian = member[busy], signs[busy], values[busy], curvature[busy]
        system = hessian * (inside[:, :, None] & inside[:, None, :])
        np.einsum("bii->bi", system)[:] += np.where(inside, ridge[busy], 1.0)
        right = np.where(inside, slope[busy] - sign, 0.0)[:, :, None]
        if affine:
            right = np.concatenate([right, inside[:, :, None]], axis=2)
        solution = solve_systems(system, right)
        step = solution[:, :, 0]
        if affine:
            toward = solution[:, :, 1] / solution[:, :, 1].sum(axis=1, keepdims=True)
            for _ in range(2):  # once more, as the first subtraction may cancel many digits
                step -= toward * ((old + step).sum(axis=1, keepdims=True) - 1)
        blocked = inside & ((old + step) * sign <= 0)
        fraction = np.ones_like(step)
        np.divide(np.abs(old), np.abs(step), out=fraction, where=blocked & (step != 0))
        length = fraction.min(axis=1, keepdims=True)
        dropped = blocked & (fraction <= length)
        new = np.where(dropped, 0.0, old + length * step)
        values[busy], member[busy] = new, inside & ~dropped
        slope[busy] -= (hessian @ (new - old)[:, :, None])[:, :, 0]
        busy = busy[blocked.any(axis=1)]


def _first_columns(gram: Array, affine: bool) -> Array:
    """Return columns of C (as rows) to start from: zero, or for affine ones the nearest sample, which is feasible."""
    n, square = len(gram), np.diagonal(gram)
    _check_affine(affine, n)
    columns = np.zeros((n, n), dtype=gram.dtype)
    for begin, end in row_blocks(n, gram.itemsize * n) if affine else []:
        distance = square - 2 * gram[begin:end]
        distance[np.arange(end - begin), np.arange(begin, end)] = np.inf
        columns[np.arange(begin, end), distance.argmin(axis=1)] = 1
    return columns


def _check_affine(affine: bool, n: int) -> None:
    if affine and n < 2:
        raise ValueError(f"affine=True needs at least two points, got {n}: a column must sum to one.")


def _positive(name: str, value: float) -> float:
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}.")
    return float(value)
