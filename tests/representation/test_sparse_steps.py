"""The parts of the active-set solver, each against a plain version for one point, and limits of its arguments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from test_sparse import assert_optimal, objective, outlier_objective, rbf, union_of_subspaces

from solved import dense_and_trace
from subspaces.representation import sparse as solver
from subspaces.representation.sparse import data_weight, kssc, kssc_path, outlier_weight, ssc
from subspaces.utils.types import Array

EPS = float(np.finfo(np.float64).eps)
OPTIONS: list[dict[str, Any]] = [{}, {"affine": True}, {"outliers": True, "outlier_penalty": 5.0}]


def random_rows(rng: np.random.Generator, n_rows: int, n: int, share: float = 0.3) -> Any:
    """Sparse rows without stored zeros; some are empty."""
    dense = rng.normal(size=(n_rows, n)) * (rng.random((n_rows, n)) < share)
    dense[0] = 0
    return sparse.csr_array(dense)


# --- weights and arguments --------------------------------------------------------------------------------------


def test_data_weight_over_blocks(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    X = rng.normal(size=(23, 4))
    X[5] = 0
    K = X @ X.T
    off = np.abs(K) * (1 - np.eye(23))
    expected = 7 / np.delete(off.max(axis=1), 5).min()
    assert data_weight(K, 7.0) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(solver, "row_blocks", lambda n, size: [(0, 9), (9, 18), (18, 23)])
    assert data_weight(K, 7.0) == pytest.approx(expected, rel=1e-12)
    assert type(data_weight(K.astype(np.float32), 7.0)) is float


@pytest.mark.parametrize(("multiple", "expected"), [(7.9, 1.0), (8.0, 1.0), (8.1, 1 / (8.1 * EPS))])
def test_products_at_the_level_of_rounding_are_none(multiple: float, expected: float) -> None:
    K = np.eye(2) + multiple * EPS * (1 - np.eye(2))
    assert data_weight(K, 1.0) == pytest.approx(expected)
    assert data_weight(np.diag([1.0, 4.0]) @ K @ np.diag([1.0, 4.0]), 1.0) == 1


def test_outlier_weight_is_of_the_second_largest_norm() -> None:
    assert outlier_weight(np.array([[1.0, -2.0], [-9.0, 9.0], [3.0, -4.0]]), 14.0) == 2
    assert outlier_weight(np.array([[3.0, -4.0]]), 14.0) == 2
    assert outlier_weight(np.zeros((3, 2)), 14.0) == 14
    assert outlier_weight(np.full((3, 2), 3e38, dtype=np.float32), 6.0) == pytest.approx(1e-38)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_numbers_that_are_not_positive(value: float) -> None:
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"^error_weight must be a positive finite number"):
        ssc(X, error_weight=value)
    with pytest.raises(ValueError, match=r"^tol must be a positive finite number"):
        kssc(X @ X.T, tol=value)
    with pytest.raises(ValueError, match=r"^outlier_penalty must be a positive finite number"):
        ssc(X, outliers=True, outlier_penalty=value)
    assert solver._positive("name", 1) == 1
    assert type(solver._positive("name", 1)) is float


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kssc(np.ones((3, 2))), "K must be square"),
        (lambda: kssc(np.full((3, 3), np.nan)), "Input K contains NaN"),
        (lambda: ssc(np.full((3, 3), np.nan)), "Input X contains NaN"),
        (lambda: ssc(np.ones((3, 2)), start=np.ones((3, 2))), r"start must be of shape \(3, 3\)"),
        (lambda: ssc(np.ones((3, 2)), start=np.full((3, 3), np.nan)), "Input start contains NaN"),
        (lambda: ssc(np.ones((1, 2)), affine=True), "affine=True needs at least two points, got 1"),
    ],
)
def test_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_defaults_and_integers(rng: np.random.Generator) -> None:
    X = rng.integers(-4, 5, size=(14, 3))
    C = ssc(X).dense()
    assert C.dtype == np.float64
    same = ssc(X.astype(np.float64), error_weight=20.0, affine=False, outliers=False, tol=1e-4, max_iter=200).dense()
    assert_array_equal(C, same)
    K = (X @ X.T).astype(np.float64)
    assert_array_equal(kssc(K).dense(), same)
    assert_array_equal(next(iter(kssc_path(K, [20.0]))).dense(), same)
    by_alpha = ssc(X, error_weight=3.0, outliers=True, outlier_penalty=3.0).dense()
    assert_array_equal(ssc(X, error_weight=3.0, outliers=True).dense(), by_alpha)


def test_path_passes_its_arguments_on(rng: np.random.Generator) -> None:
    K = rbf(rng.normal(size=(20, 3)))
    (C, first), (_, again) = map(dense_and_trace, kssc_path(K, [5.0, 5.0], affine=True, tol=1e-9))
    assert_allclose(C.sum(axis=0), 1, atol=1e-8)
    assert max(first.dual[-1], first.primal[-1]) <= 1e-9
    assert again.n_iter == 0
    with pytest.warns(ConvergenceWarning, match="after 1 rounds"):
        list(kssc_path(K, [1e4], max_iter=1))


# --- the smooth part --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_loss(rng: np.random.Generator, dtype: Any) -> None:
    X, points = rng.normal(size=(12, 4)), np.array([3, 0, 11, 7, 8])
    rows = random_rows(rng, 5, 12).astype(dtype)
    loss = solver._Squared((X @ X.T).astype(dtype), 1.7)
    slope, value, residual = loss.slopes(points, rows)
    rest, tolerance = X[points] - rows.toarray() @ X, 1e3 * np.finfo(dtype).eps
    assert_allclose(slope, 1.7 * rest @ X.T, atol=tolerance)
    assert_allclose(value, 1.7 / 2 * (rest**2).sum(axis=1), atol=tolerance)
    assert slope.dtype == dtype
    assert residual.shape == (5, 0)
    atoms = rng.integers(0, 12, size=(5, 3))
    curvature = loss.curvature(atoms, residual)
    assert curvature.dtype == np.float64
    assert_allclose(curvature, 1.7 * np.einsum("bim,bjm->bij", X[atoms], X[atoms]), atol=tolerance)
    assert loss.lengths(residual, atoms, *(np.ones((5, 3)) for _ in range(3))) == 1


@pytest.mark.parametrize("threshold", [0.5, 1e3])
def test_huber_loss(rng: np.random.Generator, threshold: float) -> None:
    X, points = rng.normal(size=(12, 6)), np.array([3, 0, 11, 7, 8])
    rows = random_rows(rng, 5, 12)
    loss = solver._Huber(X @ X.T, 1.7, X, threshold)
    slope, value, residual = loss.slopes(points, rows)
    rest = X[points] - rows.toarray() @ X
    E = np.sign(rest) * np.maximum(np.abs(rest) - threshold, 0)
    assert_allclose(residual, rest, atol=1e-12)
    assert_allclose(value, 1.7 * (threshold * np.abs(E) + (rest - E) ** 2 / 2).sum(axis=1), rtol=1e-10)
    assert_allclose(slope, 1.7 * (rest - E) @ X.T, atol=1e-10)
    atoms = rng.integers(0, 12, size=(5, 3))
    residual[0, 2] = threshold  # still quadratic
    residual[1] = 0
    beyond = np.abs(residual) > threshold
    part = np.where(beyond, 0.1 * threshold / np.maximum(np.abs(residual), 1e-9), 1)
    expected = 1.7 * np.einsum("bim,bm,bjm->bij", X[atoms], part, X[atoms])
    assert_allclose(loss.curvature(atoms, residual), expected, atol=1e-10)


def slow_length(loss: Any, residual: Array, motion: Array, before: Array, step: Array, signs: Array) -> float:
    def falls(t: float) -> bool:
        return bool(
            signs @ step < loss.weight * np.clip(residual - t * motion, -loss.threshold, loss.threshold) @ motion
        )

    length, n_halved, n_doubled = 1.0, 0, 0
    while not falls(length) and n_halved < 30:
        length, n_halved = length / 2, n_halved + 1
    limit = min((-b / s for b, s in zip(before, step, strict=True) if b * s < 0), default=np.inf)
    while falls(min(2 * length, limit)) and min(2 * length, limit) > length and n_doubled < 30:
        length, n_doubled = min(2 * length, limit), n_doubled + 1
    return length


def test_lengths_of_huber_steps(rng: np.random.Generator) -> None:
    X = rng.normal(size=(12, 6))
    loss = solver._Huber(X @ X.T, 30.0, X, 0.2)
    atoms = np.array([rng.permutation(12)[:4] for _ in range(60)])
    residual, before = rng.normal(size=(60, 6)), rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.6)
    step = rng.normal(size=(60, 4)) * 10.0 ** rng.uniform(-4, 1, size=(60, 1))
    step[rng.random((60, 4)) < 0.2] = 0
    signs = np.sign(np.where(before != 0, before, step))
    motion = np.einsum("bi,bim->bm", step, X[atoms])
    uphill = (signs * step).sum(axis=1) >= 30 * (np.clip(residual, -0.2, 0.2) * motion).sum(axis=1)
    step[uphill], motion[uphill] = -step[uphill], -motion[uphill]
    step[7], motion[7] = 0, 0
    found = loss.lengths(residual, atoms, before, step, signs)
    expected = [slow_length(loss, *parts) for parts in zip(residual, motion, before, step, signs, strict=True)]
    assert_allclose(found, np.array(expected)[:, None], rtol=1e-12)
    assert min(expected) == 2.0**-30  # the step that is none
    assert max(expected) > 2
    assert len({*expected}) > 10


# --- optimality conditions and supports -------------------------------------------------------------------------


@pytest.mark.parametrize("affine", [False, True])
def test_violations(rng: np.random.Generator, affine: bool) -> None:
    points, rows = np.array([3, 0, 11, 7, 8]), random_rows(rng, 5, 12)
    dense = rows.toarray()
    dense[np.arange(5), points] = 0
    dense[0, 1] = 0.5
    rows, slope = sparse.csr_array(dense), rng.normal(size=(5, 12))
    slope[2] *= 0.1
    shifted = slope.copy()
    primal, dual, excess = solver._violations(points, rows, shifted, affine)
    for i, (c, s) in enumerate(zip(dense, slope, strict=True)):
        on = c != 0
        s = s - (s[on] - np.sign(c[on])).mean() if affine else s
        assert_allclose(shifted[i], s, atol=1e-12)
        assert_allclose(primal[i], abs(c.sum() - 1) if affine else 0, atol=1e-12)
        off = ~on & (np.arange(12) != points[i])
        worst = max(np.abs(s[off]).max() - 1, np.abs(s[on] - np.sign(c[on])).max(initial=0), 0)
        assert_allclose(dual[i], worst, atol=1e-12)
        assert_allclose(excess[i], np.where(off, np.abs(s) - 1, 0), atol=1e-12)


@pytest.mark.parametrize("n", [5, 40])
def test_supports_gain_the_worst_atoms(rng: np.random.Generator, n: int) -> None:
    rows = random_rows(rng, 6, n, 0.5)
    excess = rng.uniform(-1, 1, size=(6, n)) * (rows.toarray() == 0)
    excess[2] = np.minimum(excess[2], 0.1)
    atoms, values, member = solver._supports(rows, excess, 0.1)
    sizes = []
    for i, code in enumerate(rows.toarray()):
        support = np.flatnonzero(code)
        worst = [j for j in np.argsort(-excess[i]) if excess[i, j] > 0.1][: max(8, len(support) // 2)]
        expected = [*support, *worst]
        sizes.append(len(expected))
        assert_array_equal(atoms[i, : len(expected)], expected)
        assert_array_equal(values[i], [*code[support], *[0] * (atoms.shape[1] - len(support))])
        assert_array_equal(member[i], np.arange(atoms.shape[1]) < len(expected))
        assert not atoms[i, len(expected) :].any()
    assert atoms.shape == values.shape == member.shape == (6, max(sizes))
    assert member.dtype == bool


def slow_descent(
    H: Array, ridge: float, slope: Array, values: Array, signs: Array, member: Array, affine: bool
) -> None:
    """The active-set steps for one point, in place."""
    while member.any():
        on = np.flatnonzero(member)
        system = H[np.ix_(on, on)] + ridge * np.eye(len(on))
        step = np.linalg.solve(system, slope[on] - signs[on])
        if affine:
            toward = np.linalg.solve(system, np.ones(len(on)))
            step -= toward / toward.sum() * (values.sum() + step.sum() - 1)
        blocked = (values[on] + step) * signs[on] <= 0
        ways = [abs(v / s) if b and s else 1.0 for v, s, b in zip(values[on], step, blocked, strict=True)]
        length = min(ways)
        new = values.copy()
        new[on] += length * step
        dropped = on[blocked & (np.array(ways) <= length)]
        new[dropped], member[dropped] = 0, False
        slope -= H @ (new - values)
        values[:] = new
        if not blocked.any():
            break


@pytest.mark.parametrize("affine", [False, True])
def test_descent(rng: np.random.Generator, affine: bool) -> None:
    b, k = 40, 6
    factors = rng.normal(size=(b, k, 5 if affine else 8))  # with dependent atoms too
    H = factors @ factors.swapaxes(1, 2)
    member = np.arange(k) < rng.integers(2, k + 1, size=b)[:, None]
    values = np.where(member & (rng.random((b, k)) < 0.6), rng.normal(size=(b, k)), 0)
    if affine:
        values[:, 0] += 1 - values.sum(axis=1)
    slope = 3 * rng.normal(size=(b, k))
    signs = np.sign(np.where(values != 0, values, slope))
    ridge = 1e-3 * rng.uniform(1, 2, size=(b, 1))
    H[0], slope[0], values[0], signs[0], member[0] = np.eye(k), 1.0, 0.0, 1.0, True  # nothing moves
    values[0, 0] = affine
    before = values.copy(), slope.copy()
    expected = [part.copy() for part in (slope, values, member)]
    for i in range(b):
        slow_descent(H[i], ridge[i, 0], expected[0][i], expected[1][i], signs[i], expected[2][i], affine)
    solver._descend(H, ridge, slope, values, signs, member, affine)
    assert_allclose(values, expected[1], atol=1e-9)
    assert_allclose(slope, expected[0], atol=1e-8)
    assert_array_equal(member, expected[2])
    assert_allclose(slope, before[1] - np.einsum("bij,bj->bi", H, values - before[0]), atol=1e-8)
    assert np.all(values * signs >= 0)
    if affine:
        assert_allclose(values.sum(axis=1), 1, atol=1e-12)


# --- starts, rounds, the whole ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_columns(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    monkeypatch.setattr(solver, "row_blocks", lambda n, size: [(0, 3), (3, 6)])
    X = rng.normal(size=(6, 3))
    gram = (X @ X.T).astype(dtype)
    nothing = solver._first_columns(gram, False, None)
    assert nothing.dtype == dtype
    assert_array_equal(nothing, np.zeros((6, 6)))
    distances = ((X[:, None] - X) ** 2).sum(axis=2) + 1e9 * np.eye(6)
    nearest = np.eye(6)[distances.argmin(axis=1)]
    assert_array_equal(solver._first_columns(gram, True, None), nearest)
    start = rng.uniform(0.1, 1, size=(6, 6))
    expected = start.T * (1 - np.eye(6))
    columns = solver._first_columns(gram, False, start)
    assert columns.dtype == dtype
    assert columns.flags.c_contiguous
    assert_allclose(columns, expected, rtol=1e-6)
    start *= np.array([1, 2, 0.499, 0.501, -1, 0.5]) / expected.sum(axis=1)
    columns = solver._first_columns(gram, True, start)
    scaled = expected / expected.sum(axis=1, keepdims=True)
    assert_allclose(columns[[0, 1, 3]], scaled[[0, 1, 3]], rtol=1e-5)
    assert_array_equal(columns[[2, 4]], nearest[[2, 4]])


def test_half_a_sum_is_too_little_to_start_from() -> None:
    start = np.array([[0.0, 0.5, 0.0], [0.25, 0.0, 2.0], [0.25, 0.0, 0.0]])
    columns = solver._first_columns(np.diag([1.0, 2.0, 3.0]), True, start)
    assert_array_equal(columns, [[0, 1, 0], [1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("options", OPTIONS)
def test_trace_tells_of_the_codes_after_every_round(rng: np.random.Generator, options: dict[str, Any]) -> None:
    X, _ = union_of_subspaces(rng, n_each=7)
    X[3] = 0
    affine, weight = "affine" in options, data_weight(X @ X.T, 60.0)
    error_weight = outlier_weight(X, 5.0) if "outliers" in options else 1e9
    C, full = dense_and_trace(ssc(X, error_weight=60.0, tol=1e-6, **options))
    assert full.converged is True
    assert full.n_iter == len(full.dual) - 1 > 2
    for n_iter in range(full.n_iter + 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            C, trace = dense_and_trace(ssc(X, error_weight=60.0, tol=1e-6, max_iter=n_iter, **options))
        assert trace.converged == (n_iter == full.n_iter)
        assert trace.n_iter == n_iter
        assert trace.dual == full.dual[: n_iter + 1]
        clipped = np.clip(X.T - X.T @ C, -error_weight / weight, error_weight / weight)
        points, rows = np.arange(len(X)), sparse.csr_array(C.T)
        primal, dual, _ = solver._violations(points, rows, (weight * X @ clipped).T.copy(), affine)
        assert_allclose(trace.primal[-1], primal.max(), atol=1e-9)
        assert_allclose(trace.dual[-1], dual.max(), atol=1e-8)
        assert_allclose(trace.objective[-1], outlier_objective(C, X, weight, error_weight), rtol=1e-9)
        if n_iter < full.n_iter:
            n_bad, worst = np.count_nonzero(np.maximum(primal, dual) > 1e-6), max(primal.max(), dual.max())
            message = f"{n_bad} of 21 points violate the optimality conditions by up to {worst:.1e} (tol=1.0e-06) after"
            assert str(caught[0].message).startswith(f"{message} {n_iter} rounds.")
    assert_optimal(C, weight * X @ clipped, affine, atol=1e-5)
    assert np.all(np.diff(full.objective) <= 1e-10 * full.objective[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerance_has_a_floor_at_rounding(dtype: Any) -> None:
    K = np.array([[4.0, 1.0], [1.0, 9.0]], dtype=dtype)
    floor = 16 * np.finfo(dtype).eps * 20 * 9
    for tol, shown in [(1e-12 if dtype == np.float32 else 1e-300, floor), (0.5, 0.5)]:
        with pytest.warns(ConvergenceWarning, match=rf"\(tol={shown:.1e}\) after 0 rounds".replace("+", "[+]")):
            C, trace = dense_and_trace(kssc(K, tol=tol, max_iter=0))
        assert not C.any()
        assert C.dtype == dtype
        assert trace.dual == [pytest.approx(19)]


@pytest.mark.parametrize("affine", [False, True])
def test_a_round_improves_the_points_that_fail(rng: np.random.Generator, affine: bool) -> None:
    X, _ = union_of_subspaces(rng, n_each=7)
    K = X @ X.T
    weight = data_weight(K, 60.0)
    loss = solver._Squared(K, weight)
    best = ssc(X, error_weight=60.0, affine=affine, tol=1e-10).dense().T
    columns = solver._first_columns(K, affine, None)
    columns[5] = best[5]
    before, report, points = columns.copy(), np.full((4, 21), -1.0), np.array([9, 5, 2])
    assert_array_equal(solver._round(loss, columns, report, points, affine, 1e-6, False), [9, 2])
    assert_array_equal(columns, before)
    assert_array_equal(report[0, points], np.count_nonzero(columns[points], axis=1))
    rest = (np.eye(21) - columns)[points] @ X
    assert_allclose(report[3, points], weight / 2 * (rest**2).sum(axis=1) + np.abs(columns[points]).sum(axis=1))
    assert np.all(np.delete(report, points, axis=1) == -1)
    assert_array_equal(solver._round(loss, columns, report, points, affine, 1e-6, True), [9, 2])
    changed = np.any(columns != before, axis=1)
    assert_array_equal(np.flatnonzero(changed), [2, 9])
    assert objective(columns.T, K, weight) < objective(before.T, K, weight)
    # at the minimum nothing moves any more, whatever the tolerance
    for _ in range(30):
        points = solver._round(loss, columns, report, points, affine, 1e-300, True)
    assert_allclose(columns[[2, 9]], best[[2, 9]], atol=1e-7)
