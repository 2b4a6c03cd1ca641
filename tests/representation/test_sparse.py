"""SSC and KSSC against CVXPY, scikit-learn and their optimality conditions; the authors' ADMM as printed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from solved import dense_and_trace
from subspaces import SSC
from subspaces.representation import sparse as solver
from subspaces.representation.sparse import data_weight, kssc, outlier_weight, ssc, ssc_admm
from subspaces.utils import blocks
from subspaces.utils.blocks import row_blocks
from subspaces.utils.types import Array

EPS = float(np.finfo(np.float64).eps)
TIGHT = {"tol": 1e-9, "max_iter": 500}
OPTIONS: list[dict[str, Any]] = [{}, {"affine": True}, {"outliers": True}]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=["plain", "affine", "outliers"])


def union_of_subspaces(
    rng: np.random.Generator, n_each: int = 9, m: int = 10, dim: int = 3, noise: float = 0.1
) -> tuple[Array, Array]:
    """Unit points on three random subspaces, with noise, as rows; and their labels."""
    bases = rng.normal(size=(3, dim, m))
    X = np.concatenate([rng.normal(size=(n_each, dim)) @ basis for basis in bases])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X + noise / np.sqrt(m) * rng.normal(size=X.shape), np.repeat(np.arange(3), n_each)


def rbf(X: Array) -> Array:
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squared / squared.mean())


def objective(C: Array, K: Array, weight: float) -> float:
    rest = np.eye(len(K)) - C
    return float(np.abs(C).sum() + weight / 2 * np.sum(rest * (K @ rest)))


def outlier_objective(C: Array, X: Array, weight: float, weight_of_errors: float) -> float:
    residual = X.T - X.T @ C
    E = np.sign(residual) * np.maximum(np.abs(residual) - weight_of_errors / weight, 0)
    return float(np.abs(C).sum() + weight_of_errors * np.abs(E).sum() + weight / 2 * ((residual - E) ** 2).sum())


def cvxpy_minimum(features: Array, weight: float, affine: bool, weight_of_errors: float | None = None) -> float:
    """Solve the stated problem by a general interior-point method; `features` has samples as columns."""
    cp = pytest.importorskip("cvxpy")
    n = features.shape[1]
    C = cp.Variable((n, n))
    residual = features - features @ C
    cost: Any = cp.sum(cp.abs(C))
    if weight_of_errors is not None:
        E = cp.Variable(features.shape)
        residual = residual - E
        cost = cost + weight_of_errors * cp.sum(cp.abs(E))
    constraints = [cp.diag(C) == 0] + ([cp.sum(C, axis=0) == 1] if affine else [])
    problem = cp.Problem(cp.Minimize(cost + weight / 2 * cp.sum_squares(residual)), constraints)
    return float(problem.solve(solver=cp.CLARABEL))


def assert_optimal(C: Array, slope: Array, affine: bool, atol: float) -> None:
    """Check the subgradient conditions: slope_j − ν = sign(c_j) on the support, within [−1, 1] elsewhere."""
    assert_array_equal(np.diag(C), 0)
    for i, (c, s) in enumerate(zip(C.T, slope.T, strict=True)):
        support = c != 0
        multiplier = (s[support] - np.sign(c[support]))[0] if affine else 0.0
        assert_allclose(s[support] - multiplier, np.sign(c[support]), atol=atol)
        assert np.abs(np.delete(s, i) - multiplier).max() <= 1 + atol
        if affine:
            assert_allclose(c.sum(), 1, atol=atol)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("error_weight", [2.0, 20.0, 800.0])
def test_ssc_minimises_the_stated_objective(rng, error_weight, affine):
    X, _ = union_of_subspaces(rng)
    C, trace = dense_and_trace(ssc(X, error_weight=error_weight, affine=affine, **TIGHT))
    weight = data_weight(X @ X.T, error_weight)
    found = objective(C, X @ X.T, weight)
    assert trace.converged
    assert_allclose(trace.objective[-1], found, rtol=1e-9)
    assert_optimal(C, weight * X @ (X.T - X.T @ C), affine, atol=1e-6)
    assert_allclose(found, cvxpy_minimum(X.T, weight, affine), rtol=1e-6)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("error_weight", [3.0, 50.0])
def test_kssc_minimises_the_stated_objective(rng, error_weight, affine):
    K = rbf(union_of_subspaces(rng)[0])
    C, trace = dense_and_trace(kssc(K, error_weight=error_weight, affine=affine, **TIGHT))
    weight = data_weight(K, error_weight)
    assert trace.converged
    assert_optimal(C, weight * (K - K @ C), affine, atol=1e-6)
    minimum = cvxpy_minimum(np.linalg.cholesky(K).T, weight, affine)
    assert_allclose(objective(C, K, weight), minimum, rtol=1e-6)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("error_weight", [3.0, 20.0, 800.0])
def test_outliers_minimise_the_stated_objective(rng, error_weight, affine):
    X, _ = union_of_subspaces(rng)
    X[rng.random(X.shape) < 0.1] += 2
    C, trace = dense_and_trace(ssc(X, error_weight=error_weight, outliers=True, affine=affine, tol=1e-6, max_iter=500))
    weight = data_weight(X @ X.T, error_weight)
    weight_of_errors = outlier_weight(X, error_weight)
    found = outlier_objective(C, X, weight, weight_of_errors)
    assert trace.converged
    assert_allclose(trace.objective[-1], found, rtol=1e-9)
    clipped = np.clip(X.T - X.T @ C, -weight_of_errors / weight, weight_of_errors / weight)
    assert_optimal(C, weight * X @ clipped, affine, atol=1e-5)
    assert_allclose(found, cvxpy_minimum(X.T, weight, affine, weight_of_errors), rtol=1e-5)


def test_error_weight_above_one_leaves_no_zero_column(rng):
    X, _ = union_of_subspaces(rng)
    assert not np.count_nonzero(ssc(X, error_weight=0.99).dense(), axis=0).all()
    assert np.count_nonzero(ssc(X, error_weight=1.01).dense(), axis=0).all()


@pytest.mark.parametrize("affine", [False, True])
def test_duplicates_and_zero_samples(rng, affine):
    X, _ = union_of_subspaces(rng, n_each=6, noise=0.0)
    X = np.concatenate([X, X[:7], X[:3], np.zeros((2, X.shape[1]))])
    weight = data_weight(X @ X.T, 100.0)
    C, trace = dense_and_trace(ssc(X, error_weight=100.0, affine=affine, tol=1e-7))
    assert trace.converged
    if not affine:
        assert not C[:, -2:].any()
    assert_optimal(C, weight * X @ (X.T - X.T @ C), affine, atol=1e-5)
    assert_allclose(objective(C, X @ X.T, weight), cvxpy_minimum(X.T, weight, affine), rtol=1e-5)


def test_zero_first_sample(rng):
    """Supports are padded with the first sample; that it is orthogonal to all others must not matter."""
    X, _ = union_of_subspaces(rng, n_each=5)
    C = ssc(X, tol=1e-7).dense()
    padded, trace = dense_and_trace(ssc(np.vstack([np.zeros(X.shape[1]), X]), tol=1e-7))
    assert trace.converged
    assert not padded[0].any()
    assert not padded[:, 0].any()
    assert_allclose(padded[1:, 1:], C, atol=1e-9)


@every_option
def test_trace_matches_the_coefficients_after_every_round(rng, options):
    X, _ = union_of_subspaces(rng, n_each=7)
    X[3] = 0
    affine, weight = "affine" in options, data_weight(X @ X.T, 60.0)
    error_weight = outlier_weight(X, 60.0) if "outliers" in options else 1e9
    C, full = dense_and_trace(ssc(X, error_weight=60.0, tol=1e-6, **options))
    assert full.converged is True
    assert full.n_iter == len(full.dual) - 1 > 2
    for n_iter in range(full.n_iter + 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            C, trace = dense_and_trace(ssc(X, error_weight=60.0, tol=1e-6, max_iter=n_iter, **options))
        assert trace.converged == (n_iter == full.n_iter) == (not caught)
        assert trace.n_iter == n_iter
        assert trace.dual == full.dual[: n_iter + 1]
        slope = weight * X @ np.clip(X.T - X.T @ C, -error_weight / weight, error_weight / weight)
        assert_allclose(trace.objective[-1], outlier_objective(C, X, weight, error_weight), rtol=1e-9)
        if not affine:
            violation = np.where(C != 0, np.abs(slope - np.sign(C)), np.maximum(np.abs(slope) - 1, 0))
            np.fill_diagonal(violation, 0)
            assert_allclose(trace.dual[-1], violation.max(), atol=1e-8)
            if caught:
                n_bad = np.count_nonzero(violation.max(axis=0) > 1e-6)
                assert str(caught[0].message).startswith(f"{n_bad} of 21 points violate the optimality conditions by")
    assert_optimal(C, slope, affine, atol=1e-5)
    assert np.all(np.diff(full.objective) <= 1e-10 * full.objective[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tolerance_has_a_floor_at_rounding(dtype):
    K = np.array([[4.0, 1.0], [1.0, 9.0]], dtype=dtype)
    floor = 16 * np.finfo(dtype).eps * 20 * 9
    for tol, shown in [(1e-12 if dtype == np.float32 else 1e-300, floor), (0.5, 0.5)]:
        with pytest.warns(ConvergenceWarning, match=rf"\(tol={shown:.1e}\) after 0 rounds".replace("+", "[+]")):
            C, trace = dense_and_trace(kssc(K, tol=tol, max_iter=0))
        assert not C.any()
        assert C.dtype == dtype
        assert trace.dual == [pytest.approx(19)]


@every_option
def test_blocks_and_threads_change_nothing(rng, options, monkeypatch):
    X, _ = union_of_subspaces(rng)
    C = ssc(X, tol=1e-7, max_iter=500, **options).dense()
    monkeypatch.setattr(solver, "row_blocks", lambda n_rows, n_bytes: row_blocks(n_rows, n_bytes, 10 * n_bytes))
    monkeypatch.setattr(blocks, "_openmp_effective_n_threads", lambda: 3)
    assert_allclose(ssc(X, tol=1e-7, max_iter=500, **options).dense(), C, atol=1e-5)


def test_weights():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 3.0], [0.0, 0.0]])
    # Largest products with another point: 2, 2, 3 and, for the zero point, none.
    assert data_weight(X @ X.T, 10.0) == pytest.approx(10 / 2)
    assert outlier_weight(X, 10.0) == pytest.approx(10 / 2)
    assert data_weight(np.eye(3), 10.0) == pytest.approx(10.0)


@pytest.mark.parametrize(("multiple", "expected"), [(7.9, 1.0), (8.0, 1.0), (8.1, 1 / (8.1 * EPS))])
def test_products_at_the_level_of_rounding_are_none(multiple, expected):
    K = np.eye(2) + multiple * EPS * (1 - np.eye(2))
    assert data_weight(K, 1.0) == pytest.approx(expected)
    assert data_weight(np.diag([1.0, 4.0]) @ K @ np.diag([1.0, 4.0]), 1.0) == 1


def test_samples_that_no_other_represents():
    assert_array_equal(ssc(np.eye(4)).dense(), np.zeros((4, 4)))
    assert_array_equal(ssc(np.zeros((3, 2))).dense(), np.zeros((3, 3)))
    assert_array_equal(ssc(np.ones((1, 2))).dense(), [[0.0]])
    assert_allclose(ssc(np.zeros((3, 2)), affine=True).dense().sum(axis=0), 1)
    assert_allclose(ssc(np.array([[1.0], [5.0]]), affine=True).dense(), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ssc(np.ones((3, 2)), error_weight=0), "error_weight must be .* got 0"),
        (lambda: ssc(np.ones((3, 2)), tol=-1), "tol must be .* got -1"),
        (lambda: ssc(np.ones((3, 2)), error_weight=np.inf), "error_weight must be .* got inf"),
        (lambda: ssc_admm(np.ones((1, 2)), affine=True), "affine=True needs at least two points, got 1"),
        (lambda: ssc(np.ones((1, 2)), affine=True), "affine=True needs at least two points, got 1"),
        (lambda: kssc(np.ones((3, 2))), r"K must be square, got shape \(3, 2\)"),
        (lambda: ssc(np.array([[1.0, np.nan]])), "X contains NaN"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ------------------------------------------------------------------ the authors' ADMM


def as_printed(X: np.ndarray, error_weight: float, affine: bool, n_steps: int) -> np.ndarray:
    """Update Z, C, Λ and δ in turn, with the whole inverse."""
    n, K = len(X), X @ X.T
    weight, rho, ones = data_weight(K, error_weight), error_weight, np.ones((n, n)) * affine
    inverse = np.linalg.inv(weight * K + rho * np.eye(n) + rho * ones)
    C, multipliers, sums = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for _ in range(n_steps):
        Z = inverse @ (weight * K + rho * C - multipliers + rho * ones - affine * sums)
        np.fill_diagonal(Z, 0)
        moved = Z + multipliers / rho
        C = np.sign(moved) * np.maximum(np.abs(moved) - 1 / rho, 0)
        multipliers = multipliers + rho * (Z - C)
        sums = sums + rho * (Z.sum(axis=0) - 1)
    return C


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(30, 6), (10, 25)])
@pytest.mark.parametrize("n_steps", [1, 7, 40])
def test_admm_takes_the_printed_steps(affine, shape, n_steps, rng):
    X = rng.standard_normal(shape)
    found = ssc_admm(X, error_weight=50.0, affine=affine, tol=0, max_iter=n_steps)
    assert_allclose(found.dense(), as_printed(X, 50.0, affine, n_steps), atol=1e-9)
    assert found.trace.n_iter == n_steps
    assert not found.trace.converged
    assert (found.dense().diagonal() == 0).all()


def test_admm_stops_above_the_minimum_with_more_entries(rng):
    X = np.concatenate([rng.normal(size=(30, 3)) @ rng.normal(size=(3, 20)) + rng.normal(size=20) for _ in range(2)])
    X += 0.01 * rng.normal(size=X.shape)
    early, exact = ssc_admm(X, error_weight=800.0, affine=True), ssc(X, error_weight=800.0, affine=True)
    assert early.trace.converged
    weight = data_weight(X @ X.T, 800.0)
    values = [objective(found.dense(), X @ X.T, weight) for found in (early, exact)]
    assert values[1] < values[0] < 1.2 * values[1]
    assert np.count_nonzero(early.dense()) > 1.5 * np.count_nonzero(exact.dense())
    assert_allclose(early.dense().sum(axis=0), 1, atol=0.05)


def test_admm_has_no_outliers(rng):
    X = rng.normal(size=(20, 4))
    with pytest.raises(ValueError, match='outliers=True needs solver="exact"; got solver="admm"'):
        SSC(2, solver="admm", outliers=True).fit(X)
    assert SSC(2, solver="admm", error_weight=20, max_iter=2000).fit(X).n_iter_ > 1
