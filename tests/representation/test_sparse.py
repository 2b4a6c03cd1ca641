"""SSC and KSSC against CVXPY, against their optimality conditions, and on data whose answer is known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from solved import dense_and_trace
from subspaces.representation import sparse as solver
from subspaces.representation.sparse import data_weight, kssc, kssc_path, outlier_weight, ssc
from subspaces.utils import blocks
from subspaces.utils.blocks import row_blocks
from subspaces.utils.types import Array

TIGHT = {"tol": 1e-9, "max_iter": 500}


@pytest.fixture(params=[0, 1, 2])
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


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
    """The stated problem, solved by a general interior-point method; `features` has points as columns."""
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
    """Subgradient conditions: slope_j − ν = sign(c_j) on the support, within [−1, 1] elsewhere."""
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
def test_ssc_minimises_the_stated_objective(rng: np.random.Generator, error_weight: float, affine: bool) -> None:
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
def test_kssc_minimises_the_stated_objective(rng: np.random.Generator, error_weight: float, affine: bool) -> None:
    K = rbf(union_of_subspaces(rng)[0])
    C, trace = dense_and_trace(kssc(K, error_weight=error_weight, affine=affine, **TIGHT))
    weight = data_weight(K, error_weight)
    assert trace.converged
    assert_optimal(C, weight * (K - K @ C), affine, atol=1e-6)
    minimum = cvxpy_minimum(np.linalg.cholesky(K).T, weight, affine)
    assert_allclose(objective(C, K, weight), minimum, rtol=1e-6)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(("error_weight", "outlier_penalty"), [(20.0, None), (20.0, 3.0), (800.0, 20.0)])
def test_outliers_minimise_the_stated_objective(
    rng: np.random.Generator, error_weight: float, outlier_penalty: float | None, affine: bool
) -> None:
    X, _ = union_of_subspaces(rng)
    X[rng.random(X.shape) < 0.1] += 2
    C, trace = dense_and_trace(
        ssc(
            X,
            error_weight=error_weight,
            outliers=True,
            outlier_penalty=outlier_penalty,
            affine=affine,
            tol=1e-6,
            max_iter=500,
        )
    )
    weight = data_weight(X @ X.T, error_weight)
    weight_of_errors = outlier_weight(X, outlier_penalty or error_weight)
    found = outlier_objective(C, X, weight, weight_of_errors)
    assert trace.converged
    assert_allclose(trace.objective[-1], found, rtol=1e-9)
    clipped = np.clip(X.T - X.T @ C, -weight_of_errors / weight, weight_of_errors / weight)
    assert_optimal(C, weight * X @ clipped, affine, atol=1e-5)
    assert_allclose(found, cvxpy_minimum(X.T, weight, affine, weight_of_errors), rtol=1e-5)


def test_columns_are_lassos(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng)
    C = ssc(X, error_weight=20.0, **TIGHT).dense()
    weight = data_weight(X @ X.T, 20.0)
    for i in range(len(X)):
        lasso = Lasso(alpha=1 / (weight * X.shape[1]), fit_intercept=False, tol=1e-12, max_iter=10**6)
        lasso.fit(np.delete(X, i, axis=0).T, X[i])
        assert_allclose(np.delete(C[:, i], i), lasso.coef_, atol=1e-5)


def test_ssc_is_kssc_of_the_gram_matrix(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng)
    for affine in (False, True):
        C = ssc(X, affine=affine).dense()
        assert_array_equal(C, kssc(X @ X.T, affine=affine).dense())
    # Errors too dear to be used leave the plain problem.
    C = ssc(X, **TIGHT).dense()
    assert_allclose(ssc(X, outliers=True, outlier_penalty=1e6, **TIGHT).dense(), C, atol=1e-6)


def test_independent_subspaces_give_blocks(rng: np.random.Generator) -> None:
    X, labels = union_of_subspaces(rng, noise=0.0)
    between = labels[:, None] != labels
    C = ssc(X, error_weight=1e5, tol=1e-6).dense()
    assert np.abs(C[between]).sum() <= 1e-3 * np.abs(C).sum()
    assert np.all(np.count_nonzero(C, axis=0) >= 1)
    assert_allclose(X.T @ C, X.T, atol=1e-3)


def test_orthogonal_subspaces_give_exact_blocks(rng: np.random.Generator) -> None:
    X = np.zeros((24, 9))
    labels = np.repeat(np.arange(3), 8)
    for label in range(3):
        X[np.ix_(labels == label, range(3 * label, 3 * label + 3))] = rng.normal(size=(8, 3))
    for affine in (False, True):
        C = ssc(X, error_weight=50.0, affine=affine).dense()
        if not affine:  # a sum of one may be reached more cheaply with points of another subspace
            assert not C[labels[:, None] != labels].any()
        assert np.all(np.count_nonzero(C, axis=0) >= 1)


def test_alpha_above_one_leaves_no_zero_column(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng)
    assert not np.count_nonzero(ssc(X, error_weight=0.99).dense(), axis=0).all()
    assert np.count_nonzero(ssc(X, error_weight=1.01).dense(), axis=0).all()


def test_scaling_the_data_changes_nothing(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng)
    assert_allclose(ssc(1e3 * X, **TIGHT).dense(), ssc(X, **TIGHT).dense(), atol=1e-7)
    options = {"outliers": True, "outlier_penalty": 5.0, "tol": 1e-7, "max_iter": 500}
    assert_allclose(ssc(1e3 * X, **options).dense(), ssc(X, **options).dense(), atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"affine": True}, {"outliers": True, "outlier_penalty": 5.0}])
def test_permuting_points_permutes_coefficients(rng: np.random.Generator, options: dict[str, Any]) -> None:
    X, _ = union_of_subspaces(rng)
    order = rng.permutation(len(X))
    C = ssc(X, tol=1e-7, max_iter=500, **options).dense()
    permuted = ssc(X[order], tol=1e-7, max_iter=500, **options).dense()
    assert_allclose(permuted, C[np.ix_(order, order)], atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"affine": True}, {"outliers": True, "outlier_penalty": 5.0}])
def test_single_precision(rng: np.random.Generator, options: dict[str, Any]) -> None:
    X, _ = union_of_subspaces(rng)
    C = ssc(X, **options).dense()
    single = ssc(X.astype(np.float32), **options).dense()
    assert single.dtype == np.float32
    K, weight = X @ X.T, data_weight(X @ X.T, 20.0)
    if "outliers" in options:
        weight_of_errors = outlier_weight(X, 5.0)
        found, expected = (outlier_objective(A, X, weight, weight_of_errors) for A in (single.astype(float), C))
    else:
        found, expected = (objective(A, K, weight) for A in (single.astype(float), C))
    assert_allclose(found, expected, rtol=2e-3)
    assert_allclose(single, C, atol=2e-2)
    assert kssc(K.astype(np.float32)).dense().dtype == np.float32


@pytest.mark.parametrize("affine", [False, True])
def test_duplicates_and_zero_points(rng: np.random.Generator, affine: bool) -> None:
    X, _ = union_of_subspaces(rng, n_each=6, noise=0.0)
    X = np.concatenate([X, X[:7], X[:3], np.zeros((2, X.shape[1]))])
    weight = data_weight(X @ X.T, 100.0)
    C, trace = dense_and_trace(ssc(X, error_weight=100.0, affine=affine, tol=1e-7))
    assert trace.converged
    if not affine:
        assert not C[:, -2:].any()
    assert_optimal(C, weight * X @ (X.T - X.T @ C), affine, atol=1e-5)
    assert_allclose(objective(C, X @ X.T, weight), cvxpy_minimum(X.T, weight, affine), rtol=1e-5)


def test_low_rank_affine_data_at_a_large_weight(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 12)) + rng.normal(size=12)
    C, trace = dense_and_trace(ssc(X, error_weight=1e4, affine=True, tol=1e-5))
    assert trace.converged
    assert_allclose(C.sum(axis=0), 1, atol=1e-5)
    assert_allclose(X.T @ C, X.T, atol=1e-2 * np.abs(X).max())


def test_start_saves_rounds_and_does_not_change_the_result(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng, n_each=15, m=20, dim=5)
    for options in ({}, {"affine": True}):
        near = ssc(X, error_weight=30.0, **options).dense()
        cold, cold_trace = dense_and_trace(ssc(X, error_weight=33.0, **options, **TIGHT))
        warm, warm_trace = dense_and_trace(ssc(X, error_weight=33.0, start=near, **options, **TIGHT))
        assert warm_trace.n_iter < cold_trace.n_iter
        assert_allclose(warm, cold, atol=1e-7)
        assert ssc(X, error_weight=33.0, start=cold, **options, **TIGHT).trace.n_iter == 0
    # Any start will do, even a dense one with a diagonal that sums to anything.
    wild = ssc(X, error_weight=33.0, start=rng.normal(size=(45, 45)), **TIGHT).dense()
    assert_allclose(wild, ssc(X, error_weight=33.0, **TIGHT).dense(), atol=1e-7)


def test_path_agrees_with_single_runs(rng: np.random.Generator) -> None:
    K = rbf(union_of_subspaces(rng)[0])
    alphas = [5.0, 10.0, 20.0]
    for error_weight, found in zip(alphas, kssc_path(K, alphas, **TIGHT), strict=True):
        C, trace = dense_and_trace(found)
        assert trace.converged
        assert_allclose(C, kssc(K, error_weight=error_weight, **TIGHT).dense(), atol=1e-7)


@pytest.mark.parametrize("outliers", [False, True])
def test_running_out_of_rounds_warns_and_still_returns(rng: np.random.Generator, outliers: bool) -> None:
    X, _ = union_of_subspaces(rng)
    with pytest.warns(ConvergenceWarning, match=r"of 27 points .* after 1 rounds"):
        C, trace = dense_and_trace(ssc(X, error_weight=100.0, outliers=outliers, max_iter=1))
    assert C.shape == (27, 27)
    assert np.isfinite(C).all()
    assert not trace.converged
    assert trace.n_iter == 1
    assert len(trace.dual) == len(trace.primal) == len(trace.objective) == 2


@pytest.mark.parametrize("options", [{}, {"affine": True}, {"outliers": True, "outlier_penalty": 5.0}])
def test_every_round_lowers_the_objective(rng: np.random.Generator, options: dict[str, Any]) -> None:
    X, _ = union_of_subspaces(rng, n_each=20, m=25, dim=5)
    trace = ssc(X, error_weight=200.0, max_iter=500, **options).trace
    assert np.all(np.diff(trace.objective) <= 1e-10 * trace.objective[0])


def test_a_tolerance_below_rounding_is_met_as_far_as_it_can_be(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ssc(X, tol=1e-300).trace.converged


def test_input_is_left_alone_in_any_layout(rng: np.random.Generator) -> None:
    X, _ = union_of_subspaces(rng)
    start = ssc(X, error_weight=5.0).dense()
    for array in (X, start):
        array.setflags(write=False)
    expected = X.copy(), start.copy()
    reference = ssc(X, start=start).dense()
    for outliers in (False, True):
        ssc(X, outliers=outliers, start=start)
    assert_array_equal(X, expected[0])
    assert_array_equal(start, expected[1])
    assert_allclose(ssc(np.asfortranarray(X)).dense(), reference, atol=1e-7)
    assert_allclose(ssc(np.repeat(X, 2, axis=0)[::2]).dense(), reference, atol=1e-7)
    ssc(np.asfortranarray(X), outliers=True)


@pytest.mark.parametrize("options", [{}, {"affine": True}, {"outliers": True, "outlier_penalty": 5.0}])
def test_blocks_and_threads_change_nothing(
    rng: np.random.Generator, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = union_of_subspaces(rng)
    C = ssc(X, tol=1e-7, max_iter=500, **options).dense()
    monkeypatch.setattr(solver, "row_blocks", lambda n_rows, n_bytes: row_blocks(n_rows, n_bytes, 10 * n_bytes))
    monkeypatch.setattr(blocks, "_openmp_effective_n_threads", lambda: 3)
    assert_allclose(ssc(X, tol=1e-7, max_iter=500, **options).dense(), C, atol=1e-5)


def test_weights() -> None:
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 3.0], [0.0, 0.0]])
    # Largest products with another point: 2, 2, 3 and, for the zero point, none.
    assert data_weight(X @ X.T, 10.0) == pytest.approx(10 / 2)
    assert outlier_weight(X, 10.0) == pytest.approx(10 / 2)
    assert data_weight(np.eye(3), 10.0) == pytest.approx(10.0)


def test_points_without_company() -> None:
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
        (lambda: ssc(np.ones((3, 2)), outliers=True, outlier_penalty=-1), "outlier_penalty must be .* got -1"),
        (lambda: ssc(np.ones((3, 2)), start=np.ones((2, 2))), r"start must be of shape \(3, 3\)"),
        (lambda: ssc(np.ones((3, 2)), start=np.full((3, 3), np.nan)), "start contains NaN"),
        (lambda: ssc(np.ones((1, 2)), affine=True), "affine=True needs at least two points, got 1"),
        (lambda: kssc(np.ones((3, 2))), r"K must be square, got shape \(3, 2\)"),
        (lambda: ssc(np.array([[1.0, np.nan]])), "X contains NaN"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
