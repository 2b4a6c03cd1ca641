"""LRR, LatLRR and KLRR against CVXPY, their closed forms and known answers; symmetries, precision, errors."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from solved import dense_and_trace, latent_dense
from subspaces.representation import _nuclear
from subspaces.representation.coefficients import Trace
from subspaces.representation.latent_low_rank import latent_lrr, latent_lrr_factors
from subspaces.representation.low_rank import kernel_lrr, lrr, metric_shrinkage
from subspaces.representation.ridge import IndefiniteKernelWarning
from subspaces.utils.types import Array

TIGHT: dict[str, Any] = {"tol": 1e-6, "max_iter": 50_000}


def lrr1(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(lrr(X, error="l1", **options))


def lrr2(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(lrr(X, error="l21", **options))


def linear_klrr(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(kernel_lrr(X @ X.T, **options))


def latent(X: Array, **options: Any) -> tuple[Array, Trace]:
    return dense_and_trace(latent_lrr(X, **options))


# Every solver with a reg at which, on `subspaces_with_noise`, neither the representation nor the errors vanish.
ITERATIVE = [
    pytest.param(lrr1, 0.1, id="LRR1"),
    pytest.param(lrr2, 0.3, id="LRR2"),
    pytest.param(linear_klrr, 0.3, id="KLRR"),
    pytest.param(latent, 0.1, id="LatLRR"),
]


def independent_subspaces(
    rng: np.random.Generator, n_each: int = 12, dim: int = 3, m: int = 15, n_subspaces: int = 3
) -> tuple[Array, Array]:
    """Return unit samples on independent subspaces, as rows, and their labels."""
    X = np.concatenate([rng.normal(size=(n_each, dim)) @ rng.normal(size=(dim, m)) for _ in range(n_subspaces)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(np.arange(n_subspaces), n_each)


def subspaces_with_noise(rng: np.random.Generator, **shape: int) -> Array:
    X, _ = independent_subspaces(rng, **shape)
    return X + 0.2 / np.sqrt(X.shape[1]) * rng.normal(size=X.shape)


def nuclear(M: Array) -> float:
    return float(np.linalg.norm(M.astype(float), "nuc"))


def objective(X: Array, Z: Array, reg: float, error: str) -> float:
    E = X - Z.T @ X
    size = {"l1": np.abs(E).sum(), "l21": np.linalg.norm(E, axis=1).sum(), "fro": (E**2).sum() / 2}[error]
    return nuclear(Z) + reg * float(size)


def latent_objective(X: Array, Z: Array, L: Array, reg: float) -> float:
    return nuclear(Z) + nuclear(L) + reg * float(np.abs(X - Z.T @ X - X @ L.T).sum())


def rbf(X: Array) -> Array:
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squared / squared.mean())


def square_root(K: Array) -> Array:
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def cvxpy_minimum(X: Array, reg: float, error: str, with_latent: bool = False) -> float:
    """Solve the stated problem, unreduced, by a general interior-point method."""
    cp = pytest.importorskip("cvxpy")
    n, m = X.shape
    Z, L = cp.Variable((n, n)), cp.Variable((m, m))
    E = X.T - X.T @ Z
    cost: Any = cp.normNuc(Z)
    if with_latent:
        E, cost = E - L @ X.T, cost + cp.normNuc(L)
    size = cp.sum(cp.abs(E)) if error == "l1" else cp.sum(cp.norm(E, axis=0))
    return float(cp.Problem(cp.Minimize(cost + reg * size)).solve(solver=cp.CLARABEL))


# ------------------------------------------------------------------ the optimum


@pytest.mark.parametrize("error", ["l1", "l21"])
@pytest.mark.parametrize(("n_each", "m", "reg"), [(4, 7, 0.1), (4, 7, 0.6), (3, 14, 0.2), (3, 14, 1.5)])
def test_lrr_reaches_the_minimum_of_cvxpy(rng, error, n_each, m, reg):
    X = subspaces_with_noise(rng, n_each=n_each, dim=2, m=m)
    Z, trace = dense_and_trace(lrr(X, reg=reg, error=error, **TIGHT))
    assert trace.converged
    assert_allclose(objective(X, Z, reg, error), cvxpy_minimum(X, reg, error), rtol=1e-5)


@pytest.mark.parametrize(("n_each", "m", "reg"), [(4, 7, 0.1), (3, 10, 0.4)])
def test_latent_lrr_reaches_the_minimum_of_cvxpy(rng, n_each, m, reg):
    X = subspaces_with_noise(rng, n_each=n_each, dim=2, m=m)
    found = latent_dense(X, reg=reg, **TIGHT)
    reached = latent_objective(X, found.coefficients, found.salient, reg)
    assert_allclose(reached, cvxpy_minimum(X, reg, "l1", with_latent=True), rtol=1e-5)


@pytest.mark.parametrize("reg", [0.2, 1.0, 5.0])
def test_kernel_lrr_reaches_the_minimum_of_cvxpy(rng, reg):
    K = rbf(subspaces_with_noise(rng, n_each=4, m=4, dim=2))
    Z = kernel_lrr(K, reg=reg, **TIGHT).dense()
    features = square_root(K)
    assert_allclose(objective(features, Z, reg, "l21"), cvxpy_minimum(features, reg, "l21"), rtol=1e-5)


@pytest.mark.parametrize("reg", [0.05, 0.2, 1.0, 5.0])
def test_lrr2_closes_its_duality_gap(rng, reg):
    """max <Y, X> over rows |y_i| ≤ reg and ‖Y Xᵀ‖₂ ≤ 1 bounds the minimum from below, at a size beyond CVXPY."""
    X = subspaces_with_noise(rng, n_each=40, m=50, dim=4)
    Z, _ = lrr2(X, reg=reg, tol=1e-9, max_iter=5000)
    E = X - Z.T @ X
    Y = reg * E / np.linalg.norm(E, axis=1, keepdims=True)
    if reg == 5.0:  # every sample is represented exactly: the errors are rounding, the multiplier is known
        Y = scipy.linalg.pinv(X).T
        assert np.linalg.norm(Y, axis=1).max() <= reg
    bound = np.sum(Y * X) / max(1.0, np.linalg.norm(Y @ X.T, 2))
    assert_allclose(objective(X, Z, reg, "l21"), bound, rtol=1e-5)


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_coarse_levels_do_not_move_the_optimum(rng, monkeypatch, solver, reg):
    X = subspaces_with_noise(rng, n_each=20, m=50, dim=2)
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 10**6)
    reference, reference_trace = solver(X, reg=reg, tol=1e-6, max_iter=5000)
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 7)
    found, trace = solver(X, reg=reg, tol=1e-6, max_iter=5000)
    assert_allclose(trace.objective[-1], reference_trace.objective[-1], rtol=1e-5)
    assert_allclose(found, reference, atol=1e-3 * np.abs(reference).max())


def l1_objective(X: Array, reg: float, **options: Any) -> tuple[float, Any]:
    Z, trace = dense_and_trace(lrr(X, reg=reg, error="l1", **options))
    return objective(X, Z, reg, "l1"), trace


def latent_l1_objective(X: Array, reg: float, **options: Any) -> tuple[float, Any]:
    found = latent_dense(X, reg=reg, **options)
    return latent_objective(X, found.coefficients, found.salient, reg), found.trace


both = pytest.mark.parametrize("solve", [l1_objective, latent_l1_objective])


@both
@pytest.mark.parametrize("reg", [0.05, 0.3])
def test_single_precision_is_enough_for_loose_tolerances(rng, monkeypatch, solve, reg):
    X = subspaces_with_noise(rng, n_each=20, m=50, dim=2)
    expected, _ = solve(X, reg, tol=1e-6, max_iter=20_000)
    monkeypatch.setattr(_nuclear, "SINGLE_PRECISION_SIZE", 0)
    assert _nuclear.working_dtype(X, 1e-3) == np.float32
    assert _nuclear.working_dtype(X, 1e-6) == np.float64
    found, trace = solve(X, reg, tol=1e-3)
    assert trace.converged
    assert_allclose(found, expected, rtol=2e-3)


@both
@pytest.mark.parametrize("reg", [0.05, 0.1, 0.3])
def test_tolerance_of_the_estimators(rng, solve, reg):
    X = subspaces_with_noise(rng, n_each=30, m=60, dim=3)
    expected, _ = solve(X, reg, tol=1e-5, max_iter=20_000)
    found, trace = solve(X, reg, tol=0.05)
    assert trace.converged
    assert expected * (1 - 1e-4) < found < 1.02 * expected


# ------------------------------------------------------------------ closed forms


def proximal_gradient(K: Array, reg: float) -> Array:
    """Minimise ‖Z‖_* + reg/2 tr((I − Z)ᵀ K (I − Z)) slowly."""
    Z = np.zeros_like(K)
    step = 1 / (reg * np.linalg.norm(K, 2))
    for _ in range(3000):
        left, values, right = np.linalg.svd(Z + step * reg * (K - K @ Z))
        Z = (left * np.maximum(values - step, 0)) @ right
    return Z


def test_squared_error_closed_form(rng):
    X = rng.normal(size=(12, 6)) + 0.5
    reg = 0.4
    reference = proximal_gradient(X @ X.T, reg)
    Z, trace = dense_and_trace(kernel_lrr(X @ X.T, reg=reg, error="fro"))
    assert_allclose(Z, reference, atol=1e-8)
    assert trace.converged
    assert trace.n_iter == 0
    best = objective(X, Z, reg, "fro")
    for size in (1e-4, 1e-2):
        for _ in range(50):
            assert objective(X, Z + size * rng.normal(size=Z.shape), reg, "fro") > best


def test_clean_samples_give_the_shape_interaction_matrix(rng):
    X, labels = independent_subspaces(rng)
    V = scipy.linalg.orth(X)
    across = labels[:, None] != labels
    for Z in (lrr(X, reg=np.inf).dense(), kernel_lrr(X @ X.T, reg=np.inf).dense()):
        assert_allclose(Z, V @ V.T, atol=1e-8)
        assert_allclose(Z[across], 0, atol=1e-8)
        assert_allclose(np.trace(Z), 9, rtol=1e-8)
    for solver in (lrr1, lrr2, linear_klrr):
        Z, _ = solver(X, reg=100.0, tol=1e-9, max_iter=20_000)
        assert_allclose(Z, V @ V.T, atol=1e-6)
        assert_allclose(Z[across], 0, atol=1e-6)


def test_clean_latent_model(rng):
    X, _ = independent_subspaces(rng)
    for found in (latent_dense(X, reg=np.inf), latent_dense(X, reg=100.0, **TIGHT)):
        Z, L = found.coefficients, found.salient
        assert_allclose(Z.T @ X + X @ L.T, X, atol=1e-5)
        assert_allclose(nuclear(Z) + nuclear(L), 9, rtol=1e-5)


@pytest.mark.parametrize(("solver", "_reg"), ITERATIVE)
def test_weightless_errors_leave_nothing_to_represent(rng, solver, _reg):
    Z, trace = solver(subspaces_with_noise(rng), reg=1e-5)
    assert trace.converged
    assert_array_equal(Z, 0)


# ------------------------------------------------------------------ symmetries, precision, iterations


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
@pytest.mark.parametrize("scale", [2.0**-50, 2.0**50])
def test_float32_at_any_scale(rng, solver, reg, scale):
    X = subspaces_with_noise(rng).astype(np.float32)
    Z, _ = solver(X, reg=reg)
    assert_array_equal(solver(np.float32(scale) * X, reg=reg / scale)[0], Z)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", [lrr1, lrr2, linear_klrr, latent])
def test_large_reg_still_converges(rng, solver, dtype):
    X = subspaces_with_noise(rng).astype(dtype)
    Z, trace = solver(X, reg=1e4)
    assert trace.converged
    if solver is not latent:
        assert_allclose(np.trace(Z), np.linalg.matrix_rank(X), rtol=0.01)


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_stopping_early_warns_and_stays_finite(rng, solver, reg, max_iter):
    X = subspaces_with_noise(rng, n_each=30, m=60)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=\d+ iterations with relative residuals") as caught:
        Z, trace = solver(X, reg=reg, tol=1e-12, max_iter=max_iter)
    assert caught[0].filename == inspect.getfile(solver)
    assert not trace.converged
    assert trace.n_iter == max_iter
    assert np.all(np.isfinite(Z))


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_samples_and_duplicates(rng, solver, reg, dtype):
    X = subspaces_with_noise(rng).astype(dtype)
    X[3] = 0
    X[[7, 20]] = X[5]
    Z, trace = solver(X, reg=reg, tol=1e-4)
    assert trace.converged
    assert_allclose(Z[:, 3], 0, atol=1e-5)
    assert_allclose(Z[3], 0, atol=1e-5)
    assert_allclose(Z[:, 7], Z[:, 5], atol=1e-3)
    assert_allclose(Z[7], Z[5], atol=1e-5)


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
@pytest.mark.parametrize("X", [np.zeros((4, 3)), np.ones((1, 3)), np.ones((5, 1)), np.eye(4, dtype=int)])
def test_smallest_inputs(solver, reg, X):
    Z, trace = solver(X, reg=reg)
    assert Z.shape == (len(X), len(X))
    assert Z.dtype == np.float64
    assert trace.converged
    assert np.all(np.isfinite(Z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues_below_rounding_count_as_zero(dtype):
    limit = 4 * float(np.finfo(dtype).eps)  # the root of 16 samples
    for smallest, rank in ((1.5 * limit, 16), (limit, 15), (0.5 * limit, 15), (-limit, 15)):
        K = np.diag(np.r_[np.full(15, 1.0), smallest]).astype(dtype)
        Z = kernel_lrr(K, reg=np.inf).dense()
        assert_allclose(np.trace(Z), rank, rtol=1e-5)
    for error in ("l21", "fro"):
        Z, trace = dense_and_trace(kernel_lrr(np.zeros((5, 5), dtype), reg=1.0, error=error))
        assert_array_equal(Z, np.zeros((5, 5)))
        assert (Z.dtype, trace.converged, trace.n_iter) == (dtype, True, 0)


@pytest.mark.parametrize(
    ("values", "told"),
    [([1.0, -0.9e-4], False), ([1.0, -1.1e-4], True), ([-1.0, -2.0], True), ([1e-7, -1.0], True), ([0.0, 0.0], False)],
)
def test_warns_of_negative_eigenvalues_and_leaves_them_out(values, told):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Z = kernel_lrr(np.diag(values), reg=np.inf).dense()
    assert [message.category for message in said] == [IndefiniteKernelWarning] * told
    assert_allclose(Z, np.diag(np.array(values) > 0), atol=1e-12)


def test_bad_arguments_are_named(rng):
    X = rng.normal(size=(6, 4))
    with pytest.raises(ValueError, match=r"reg must be positive, got 0"):
        lrr(X, reg=0)
    with pytest.raises(ValueError, match=r"reg must be positive, got nan"):
        latent_lrr(X, reg=np.nan)
    with pytest.raises(ValueError, match=r"tol must be positive, got -1"):
        kernel_lrr(X @ X.T, reg=1.0, tol=-1)
    with pytest.raises(ValueError, match=r"max_iter must be at least 1, got 0"):
        lrr(X, reg=1.0, max_iter=0)
    with pytest.raises(ValueError, match=r"error must be 'l1' or 'l21', got 'l2'"):
        lrr(X, reg=1.0, error="l2")
    with pytest.raises(ValueError, match=r"error must be 'l21' or 'fro', got 'l1'"):
        kernel_lrr(X @ X.T, reg=1.0, error="l1")
    with pytest.raises(ValueError, match=r"K must be a square kernel matrix, got shape \(6, 4\)"):
        kernel_lrr(X, reg=1.0)
    with pytest.raises(ValueError, match=r"X must have one row per point"):
        lrr(X[0], reg=1.0)


# ------------------------------------------------------------------ coefficients as factors


def test_factors_are_singular_value_decompositions(rng):
    X = subspaces_with_noise(rng)
    options: dict[str, Any] = {"tol": 1e-3, "max_iter": 1000}
    Z, L, _ = latent_lrr_factors(X, reg=0.1, **options)
    found = [
        lrr(X, reg=0.1, error="l1", **options),
        lrr(X, reg=0.3, error="l21", **options),
        kernel_lrr(X @ X.T, reg=3.0, error="fro"),
        latent_lrr(X, reg=0.1, **options),
    ]
    assert_array_equal(found[-1].dense(), Z.dense())
    for factors, Z in [*((one.factors, one.dense()) for one in found), (L, L.dense())]:
        rank = len(factors.singular_values)
        assert rank > 0
        assert_allclose(factors.left.T @ factors.left, np.eye(rank), atol=1e-7)
        assert_allclose(factors.right.T @ factors.right, np.eye(rank), atol=1e-7)
        assert_allclose(factors.singular_values.sum(), nuclear(Z), rtol=1e-7)
        assert_array_equal(factors.dense(), Z)


# ------------------------------------------------------------------ the errors of whole samples


def kernel(rng: np.random.Generator, n: int = 24, decay: float = 0.75) -> Array:
    """Return a kernel matrix of full rank with eigenvalues that decay, none of them near one."""
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return 300.0 * (basis * decay ** np.arange(n)) @ basis.T


def by_bisection(W: Array, spectrum: Array, reg: float, offset: Array) -> tuple[Array, Array]:
    """Minimise reg sqrt(pᵀΛp + c) + ½‖p − w‖² by halving the interval that holds its size s = sqrt(pᵀΛp + c)."""
    lower, upper = np.zeros(len(W)), np.sqrt(W**2 @ spectrum + offset)
    for _ in range(80):
        middle = (lower + upper) / 2
        P = W * (middle[:, None] / (middle[:, None] + reg * spectrum))
        is_larger = P**2 @ spectrum + offset > middle**2
        lower, upper = np.where(is_larger, middle, lower), np.where(is_larger, upper, middle)
    sizes = np.where((offset == 0) & (W**2 @ (1 / spectrum) <= reg**2), 0, (lower + upper) / 2)
    return W * (sizes[:, None] / (sizes[:, None] + reg * spectrum)), sizes


def test_samples_without_errors_on_the_first_level(rng, monkeypatch):
    """Samples inside of the leading directions: their errors have no size, and no direction of a multiplier."""
    monkeypatch.setattr(_nuclear, "SMALLEST_LEVEL", 4)
    K = np.zeros((26, 26))
    K[:20, :20] = kernel(rng, n=20, decay=0.8)
    K[20:, 20:] = 1e4 * np.eye(6)
    Z, trace = dense_and_trace(kernel_lrr(K, reg=0.1, tol=1e-4, max_iter=500))
    assert trace.converged
    assert_allclose(Z[20:, 20:], np.eye(6), atol=1e-3)
    assert_allclose(Z[:20, 20:], 0, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("offsets", ["none", "some", "all"])
def test_metric_shrinkage(rng, reg, offsets, dtype):
    spectrum = np.sort(10.0 ** rng.uniform(-3, 2, size=6))[::-1].astype(dtype)
    W = (rng.normal(size=(40, 6)) * 10.0 ** rng.uniform(-3, 2, size=(40, 1))).astype(dtype)
    W[4] = 0
    offset = (rng.random(40) * {"none": 0, "some": np.arange(40) % 2, "all": 1}[offsets]).astype(dtype)
    expected, sizes = by_bisection(*(array.astype(np.float64) for array in (W, spectrum)), reg, offset.astype(float))
    tolerance = {"rtol": 1e-8, "atol": 1e-11} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    for guess in (None, np.zeros(40, dtype), sizes.astype(dtype), (100 * sizes + 1).astype(dtype)):
        found, found_sizes = metric_shrinkage(W, spectrum, reg, offset, guess)
        assert found.dtype == found_sizes.dtype == dtype
        assert_allclose(found, expected, **tolerance)
        assert_allclose(found_sizes, sizes, **tolerance)
