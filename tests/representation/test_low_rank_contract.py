"""What every low-rank solver keeps to: symmetries, iterations, types, shapes and errors."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from low_rank_data import ITERATIVE, independent_subspaces, latent, linear_klrr, lrr1, lrr2, subspaces_with_noise
from solved import dense_and_trace, latent_dense
from subspaces.representation.kernel_low_rank import kernel_lrr
from subspaces.representation.latent_low_rank import latent_lrr
from subspaces.representation.low_rank import lrr
from subspaces.utils.types import Array

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
    return latent_dense(X, start=None if start is None else start[:2], **options)


def warm_lrr(X: Array, *, start: Any = None, **options: Any) -> Any:
    return dense_and_trace(lrr(X, start=None if start is None else start[0], **options))


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
    assert caught[0].filename == inspect.getfile(solver)
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
    assert lrr(X, reg=reg, error=error).dense().dtype == np.float32
    found = latent_dense(X, reg=reg)
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
    Z, trace = dense_and_trace(kernel_lrr(K + noise + noise.T, reg=0.5))
    assert trace.converged
    assert_allclose(Z, kernel_lrr(K, reg=0.5).dense(), atol=1e-6)


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
        lrr(X, reg=1.0, error="l2")
    with pytest.raises(ValueError, match=r"error must be 'l21' or 'fro', got 'l1'"):
        kernel_lrr(X @ X.T, reg=1.0, error="l1")
    with pytest.raises(ValueError, match=r"K must be a square kernel matrix, got shape \(6, 4\)"):
        kernel_lrr(X, reg=1.0)
    with pytest.raises(ValueError, match=r"start must have shape \(6, 6\) for this X, got \(4, 4\)"):
        lrr(X, reg=1.0, start=np.eye(4))
    with pytest.raises(ValueError, match=r"start\[1\] must have shape \(4, 4\)"):
        latent_lrr(X, reg=1.0, start=(np.eye(6), np.eye(6)))
    with pytest.raises(ValueError, match=r"X must have one row per point"):
        lrr(X[0], reg=1.0)
