"""LRR, LatLRR and KLRR against CVXPY, against their closed forms, and on data whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from subspaces._typing import Array
from subspaces.representation import _nuclear
from subspaces.representation._result import Trace
from subspaces.representation.kernel_low_rank import kernel_lrr, metric_shrinkage
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import lrr

TIGHT: dict[str, Any] = {"tol": 1e-6, "max_iter": 50_000}

Solver = Callable[..., tuple[Array, Trace]]


def lrr1(X: Array, **options: Any) -> tuple[Array, Trace]:
    return lrr(X, error="l1", **options)


def lrr2(X: Array, **options: Any) -> tuple[Array, Trace]:
    return lrr(X, error="l21", **options)


def linear_klrr(X: Array, **options: Any) -> tuple[Array, Trace]:
    return kernel_lrr(X @ X.T, **options)


def latent(X: Array, *, start: Array | None = None, **options: Any) -> tuple[Array, Trace]:
    found = latent_lrr(X, start=None if start is None else (start, np.zeros((X.shape[1],) * 2)), **options)
    return found.coefficients, found.trace


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
    """Unit points on independent subspaces, as rows, and their labels."""
    X = np.concatenate([rng.normal(size=(n_each, dim)) @ rng.normal(size=(dim, m)) for _ in range(n_subspaces)])
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(np.arange(n_subspaces), n_each)


def subspaces_with_noise(rng: np.random.Generator, **shape: int) -> Array:
    X, _ = independent_subspaces(rng, **shape)
    return X + 0.2 / np.sqrt(X.shape[1]) * rng.normal(size=X.shape)


def rbf(X: Array) -> Array:
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squared / squared.mean())


def square_root(K: Array) -> Array:
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def nuclear(M: Array) -> float:
    return float(np.linalg.norm(M.astype(float), "nuc"))


def objective(X: Array, Z: Array, reg: float, error: str) -> float:
    E = X - Z.T @ X
    size = {"l1": np.abs(E).sum(), "l21": np.linalg.norm(E, axis=1).sum(), "fro": (E**2).sum() / 2}[error]
    return nuclear(Z) + reg * float(size)


def latent_objective(X: Array, Z: Array, L: Array, reg: float) -> float:
    return nuclear(Z) + nuclear(L) + reg * float(np.abs(X - Z.T @ X - X @ L.T).sum())


def cvxpy_minimum(X: Array, reg: float, error: str, with_latent: bool = False) -> float:
    """The stated problem, unreduced, by a general interior-point method."""
    cp = pytest.importorskip("cvxpy")
    n, m = X.shape
    Z, L = cp.Variable((n, n)), cp.Variable((m, m))
    E = X.T - X.T @ Z
    cost: Any = cp.normNuc(Z)
    if with_latent:
        E, cost = E - L @ X.T, cost + cp.normNuc(L)
    size = cp.sum(cp.abs(E)) if error == "l1" else cp.sum(cp.norm(E, axis=0))
    return float(cp.Problem(cp.Minimize(cost + reg * size)).solve(solver=cp.CLARABEL))


# --- the optimum ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["l1", "l21"])
@pytest.mark.parametrize(("n_each", "m", "reg"), [(4, 7, 0.1), (4, 7, 0.6), (3, 14, 0.2), (3, 14, 1.5)])
def test_lrr_reaches_the_minimum_of_cvxpy(rng, error, n_each, m, reg):
    X = subspaces_with_noise(rng, n_each=n_each, dim=2, m=m)
    Z, trace = lrr(X, reg=reg, error=error, **TIGHT)
    assert trace.converged
    assert_allclose(objective(X, Z, reg, error), cvxpy_minimum(X, reg, error), rtol=1e-5)


@pytest.mark.parametrize(("n_each", "m", "reg"), [(4, 7, 0.1), (3, 10, 0.4)])
def test_latent_lrr_reaches_the_minimum_of_cvxpy(rng, n_each, m, reg):
    X = subspaces_with_noise(rng, n_each=n_each, dim=2, m=m)
    found = latent_lrr(X, reg=reg, **TIGHT)
    reached = latent_objective(X, found.coefficients, found.salient, reg)
    assert_allclose(reached, cvxpy_minimum(X, reg, "l1", with_latent=True), rtol=1e-5)


@pytest.mark.parametrize("reg", [0.2, 1.0, 5.0])
def test_kernel_lrr_reaches_the_minimum_of_cvxpy(rng, reg):
    K = rbf(subspaces_with_noise(rng, n_each=4, m=4, dim=2))
    Z, _ = kernel_lrr(K, reg=reg, **TIGHT)
    features = square_root(K)
    assert_allclose(objective(features, Z, reg, "l21"), cvxpy_minimum(features, reg, "l21"), rtol=1e-5)


@pytest.mark.parametrize("reg", [0.05, 0.2, 1.0, 5.0])
def test_lrr2_closes_its_duality_gap(rng, reg):
    """max <Y, X> over rows |y_i| ≤ reg and ‖Y Xᵀ‖₂ ≤ 1 bounds the minimum from below, at a size beyond CVXPY."""
    X = subspaces_with_noise(rng, n_each=40, m=50, dim=4)
    Z, _ = lrr2(X, reg=reg, tol=1e-9, max_iter=5000)
    E = X - Z.T @ X
    Y = reg * E / np.linalg.norm(E, axis=1, keepdims=True)
    if reg == 5.0:  # every point is represented exactly: the errors are rounding, the multiplier is known
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


def test_levels_end_with_all_directions():
    assert _nuclear.levels(100, 10) == [32, 64, 100]
    assert _nuclear.levels(1000, 100) == [200, 400, 800, 1000]
    assert _nuclear.levels(100, 45) == [100]
    assert _nuclear.levels(1, 0) == [1]


def test_linear_kernel_gives_lrr2(rng):
    X = subspaces_with_noise(rng)
    expected, _ = lrr2(X, reg=0.5, **TIGHT)
    found, _ = linear_klrr(X, reg=0.5, **TIGHT)
    assert_allclose(found, expected, atol=1e-6)


# --- closed forms -----------------------------------------------------------------------------------------------


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
    for Z, trace in (lrr(X, reg=reg, error="fro"), kernel_lrr(X @ X.T, reg=reg, error="fro")):
        assert_allclose(Z, reference, atol=1e-8)
        assert trace.converged
        assert trace.n_iter == 0
    best = objective(X, Z, reg, "fro")
    for size in (1e-4, 1e-2):
        for _ in range(50):
            assert objective(X, Z + size * rng.normal(size=Z.shape), reg, "fro") > best


def test_clean_points_give_the_shape_interaction_matrix(rng):
    X, labels = independent_subspaces(rng)
    V = scipy.linalg.orth(X)
    across = labels[:, None] != labels
    for Z in (lrr(X, reg=np.inf)[0], kernel_lrr(X @ X.T, reg=np.inf)[0]):
        assert_allclose(Z, V @ V.T, atol=1e-8)
        assert_allclose(Z[across], 0, atol=1e-8)
        assert_allclose(np.trace(Z), 9, rtol=1e-8)
    for solver in (lrr1, lrr2, linear_klrr):
        Z, _ = solver(X, reg=100.0, tol=1e-9, max_iter=20_000)
        assert_allclose(Z, V @ V.T, atol=1e-6)
        assert_allclose(Z[across], 0, atol=1e-6)


def test_clean_latent_model(rng):
    X, _ = independent_subspaces(rng)
    for found in (latent_lrr(X, reg=np.inf), latent_lrr(X, reg=100.0, **TIGHT)):
        Z, L = found.coefficients, found.salient
        assert_allclose(Z.T @ X + X @ L.T, X, atol=1e-5)
        assert_allclose(nuclear(Z) + nuclear(L), 9, rtol=1e-5)


def test_full_rank_kernel_without_errors_is_the_identity(rng):
    K = rbf(rng.normal(size=(20, 3)))
    assert_allclose(kernel_lrr(K, reg=np.inf)[0], np.eye(20), atol=1e-8)


@pytest.mark.parametrize(("solver", "_reg"), ITERATIVE)
def test_weightless_errors_leave_nothing_to_represent(rng, solver, _reg):
    Z, trace = solver(subspaces_with_noise(rng), reg=1e-5)
    assert trace.converged
    assert_array_equal(Z, 0)


# --- the error step of KLRR -------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_offset", [False, True])
@pytest.mark.parametrize("reg", [0.1, 1.0, 10.0])
def test_metric_shrinkage_minimises(rng, reg, with_offset):
    spectrum = np.sort(10.0 ** rng.uniform(-6, 2, size=8))[::-1]
    W = rng.normal(size=(40, 8)) * 10.0 ** rng.uniform(-3, 2, size=(40, 1))
    offset = rng.random(40) * with_offset

    def cost(P: Array) -> Array:
        return reg * np.sqrt(P**2 @ spectrum + offset) + ((P - W) ** 2).sum(axis=1) / 2

    P, sizes = metric_shrinkage(W, spectrum, reg, offset)
    assert_allclose(sizes, np.sqrt(P**2 @ spectrum + offset), rtol=1e-8, atol=1e-12)
    best = cost(P)
    for _ in range(300):
        scale = 10.0 ** rng.uniform(-6, 0, size=(40, 1)) * np.linalg.norm(W, axis=1, keepdims=True)
        assert np.all(cost(P + scale * rng.normal(size=W.shape)) >= best * (1 - 1e-12))
    again, _ = metric_shrinkage(W, spectrum, reg, offset, guess=sizes * rng.uniform(0, 3, size=40))
    assert_allclose(again, P, rtol=1e-7, atol=1e-12)


def test_metric_shrinkage_removes_what_is_below_the_threshold(rng):
    spectrum = np.array([4.0, 1.0, 0.25])
    W = rng.normal(size=(30, 3))
    threshold = np.sqrt(W**2 @ (1 / spectrum))
    for share, vanishes in ((1.0001, True), (0.9999, False)):
        for w, limit in zip(W, threshold, strict=True):
            P, sizes = metric_shrinkage(w[None], spectrum, share * limit, np.zeros(1))
            assert np.all((P == 0) == vanishes)
            assert np.all((sizes == 0) == vanishes)


# --- symmetries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_order_of_points_does_not_matter(rng, solver, reg):
    X = subspaces_with_noise(rng)
    order = rng.permutation(len(X))
    Z, _ = solver(X, reg=reg)
    permuted, _ = solver(X[order], reg=reg)
    assert_allclose(permuted, Z[np.ix_(order, order)], atol=1e-8)


@pytest.mark.parametrize("solver", [lrr2, linear_klrr])
def test_rotation_of_features_does_not_matter(rng, solver):
    X = subspaces_with_noise(rng)
    rotation = scipy.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    assert_allclose(solver(X @ rotation, reg=0.3)[0], solver(X, reg=0.3)[0], atol=1e-8)


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_scale_of_data_only_rescales_reg(rng, solver, reg):
    X = subspaces_with_noise(rng)
    Z, trace = solver(X, reg=reg)
    scaled, scaled_trace = solver(200.0 * X, reg=reg / 200)
    assert_allclose(scaled, Z, atol=1e-8)
    assert scaled_trace.n_iter == trace.n_iter


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


# --- iterations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_trace_tells_when_and_why_it_stopped(rng, solver, reg):
    _, trace = solver(subspaces_with_noise(rng), reg=reg, tol=1e-4)
    assert trace.converged
    assert len(trace.primal) == len(trace.dual) == len(trace.objective) == trace.n_iter
    assert max(trace.primal[-1], trace.dual[-1]) <= 1e-4
    assert max(trace.primal[-2], trace.dual[-2]) > 1e-4


def warm_latent(X: Array, *, start: Any = None, **options: Any) -> Any:
    return latent_lrr(X, start=None if start is None else start[:2], **options)


def warm_lrr(X: Array, *, start: Any = None, **options: Any) -> Any:
    return lrr(X, start=None if start is None else start[0], **options)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        pytest.param(warm_lrr, {"error": "l1", "reg": 0.1}, id="LRR1"),
        pytest.param(warm_lrr, {"error": "l21", "reg": 0.3}, id="LRR2"),
        pytest.param(warm_latent, {"reg": 0.1}, id="LatLRR"),
    ],
)
def test_warm_start_saves_iterations(rng, solver, options):
    n_warm = n_cold = 0
    for _ in range(4):
        X = subspaces_with_noise(rng)
        neighbour = solver(X, **options)
        options = options | {"reg": 1.05 * options["reg"]}
        cold, warm = solver(X, **options), solver(X, **options, start=neighbour)
        n_warm, n_cold = n_warm + warm[-1].n_iter, n_cold + cold[-1].n_iter
        assert_allclose(warm[-1].objective[-1], cold[-1].objective[-1], rtol=5e-3)
    assert n_warm < n_cold


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_any_start_leads_to_the_same_minimum(rng, solver, reg):
    X = subspaces_with_noise(rng, n_each=8)
    _, cold = solver(X, reg=reg, tol=1e-6, max_iter=5000)
    _, warm = solver(X, reg=reg, tol=1e-6, max_iter=5000, start=rng.normal(size=(len(X),) * 2))
    assert_allclose(warm.objective[-1], cold.objective[-1], rtol=1e-5)


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_stopping_early_warns_and_stays_finite(rng, solver, reg, max_iter):
    X = subspaces_with_noise(rng, n_each=30, m=60)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=\d+ iterations with relative residuals") as caught:
        Z, trace = solver(X, reg=reg, tol=1e-12, max_iter=max_iter)
    assert caught[0].filename == __file__
    assert not trace.converged
    assert trace.n_iter == max_iter
    assert np.all(np.isfinite(Z))


# --- numbers and shapes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_float32_stays_and_agrees(rng, solver, reg):
    X = subspaces_with_noise(rng)
    Z, _ = solver(X, reg=reg, tol=1e-4)
    single, trace = solver(X.astype(np.float32), reg=np.float64(reg), tol=1e-4)
    assert single.dtype == np.float32
    assert trace.converged
    assert_allclose(single, Z, atol=5e-3 * np.abs(Z).max())


@pytest.mark.parametrize("reg", [0.4, np.inf])
@pytest.mark.parametrize("error", ["l1", "l21", "fro"])
def test_closed_forms_keep_float32(rng, reg, error):
    X = independent_subspaces(rng)[0].astype(np.float32)
    assert lrr(X, reg=reg, error=error)[0].dtype == np.float32
    found = latent_lrr(X, reg=reg)
    assert found.coefficients.dtype == found.salient.dtype == np.float32


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
def test_input_is_left_alone(rng, solver, reg):
    X = subspaces_with_noise(rng)
    start = rng.normal(size=(len(X), len(X)))
    X_before, start_before = X.copy(), start.copy()
    X.flags.writeable = start.flags.writeable = False
    solver(X, reg=reg, start=start)
    assert_array_equal(X, X_before)
    assert_array_equal(start, start_before)


@pytest.mark.parametrize(("solver", "reg"), ITERATIVE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_points_and_duplicates(rng, solver, reg, dtype):
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


def test_slightly_indefinite_kernel_matrix(rng):
    X, _ = independent_subspaces(rng)
    K = X @ X.T
    noise = rng.normal(size=K.shape) * 1e-16
    Z, trace = kernel_lrr(K + noise + noise.T, reg=0.5)
    assert trace.converged
    assert_allclose(Z, kernel_lrr(K, reg=0.5)[0], atol=1e-6)


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
    with pytest.raises(ValueError, match=r"error must be 'l1', 'l21' or 'fro', got 'l2'"):
        lrr(X, reg=1.0, error="l2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"error must be 'l21' or 'fro', got 'l1'"):
        kernel_lrr(X @ X.T, reg=1.0, error="l1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"K must be a square kernel matrix, got shape \(6, 4\)"):
        kernel_lrr(X, reg=1.0)
    with pytest.raises(ValueError, match=r"start must have shape \(6, 6\) for this X, got \(4, 4\)"):
        lrr(X, reg=1.0, start=np.eye(4))
    with pytest.raises(ValueError, match=r"start\[1\] must have shape \(4, 4\)"):
        latent_lrr(X, reg=1.0, start=(np.eye(6), np.eye(6)))
    with pytest.raises(ValueError, match=r"X must have one row per point"):
        lrr(X[0], reg=1.0)
