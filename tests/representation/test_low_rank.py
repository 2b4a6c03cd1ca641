"""LRR, LatLRR and KLRR against CVXPY, against their closed forms, and on data whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from low_rank_data import (
    ITERATIVE,
    TIGHT,
    independent_subspaces,
    latent_objective,
    linear_klrr,
    lrr1,
    lrr2,
    nuclear,
    objective,
    subspaces_with_noise,
)
from solved import dense_and_trace, latent_dense
from subspaces.representation import _nuclear
from subspaces.representation.kernel_low_rank import kernel_lrr, metric_shrinkage
from subspaces.representation.low_rank import lrr
from subspaces.utils.types import Array


def rbf(X: Array) -> Array:
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    return np.exp(-squared / squared.mean())


def square_root(K: Array) -> Array:
    values, vectors = np.linalg.eigh(K)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


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
    for found in (lrr(X, reg=reg, error="fro"), kernel_lrr(X @ X.T, reg=reg, error="fro")):
        Z, trace = dense_and_trace(found)
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


def test_full_rank_kernel_without_errors_is_the_identity(rng):
    K = rbf(rng.normal(size=(20, 3)))
    assert_allclose(kernel_lrr(K, reg=np.inf).dense(), np.eye(20), atol=1e-8)


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
