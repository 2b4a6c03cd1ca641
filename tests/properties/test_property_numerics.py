"""Numerics: solver routes that agree, evidence that is true, results that repeat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_data import examples, fitted, subspaces

from method_data import quiet
from subspaces import LSR1, LSR2, TRR
from subspaces.kernels import KERNELS, as_kernel
from subspaces.representation import ridge_search as low_rank
from subspaces.representation.ridge import (
    IndefiniteKernelWarning,
    ridge,
    ridge_low_rank,
    ridge_unconstrained,
    ridge_unconstrained_low_rank,
)
from subspaces.representation.two_scale import two_scale

DISTANCE_KERNELS = tuple(name for name, kind in KERNELS.items() if kind.of_distances)
SEEDS = st.integers(0, 2**32 - 1)
REGS = st.sampled_from([1e-4, 1e-2, 1.0, 100.0])


def whole(coefficients):
    return coefficients.columns(0, coefficients.n_samples).T


# ------------------------------------------------------------------ routes


@pytest.mark.parametrize("kernel", ["linear", "cosine", "quadratic", "correntropy"])
@examples(0.2)
@given(points=subspaces(), reg=REGS)
def test_feature_maps_give_the_dense_coefficients(kernel, points, reg):
    X, _ = points
    settled = as_kernel(kernel).fit(X)
    K, Z = settled.gram(X), settled.features(X)
    expected = whole(ridge(K, reg=reg))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(whole(ridge_low_rank(Z, reg=reg)), expected, atol=1e-6 * scale)
    Z2 = whole(ridge_unconstrained_low_rank(Z, reg=reg))
    np.testing.assert_allclose(Z2, whole(ridge_unconstrained(K, reg=reg)), atol=1e-6)
    found = low_rank.ridge_search(Z, reg=reg, n_candidates=len(X) - 1)
    np.testing.assert_allclose(found.matrix.toarray(), expected, atol=1e-6 * scale)


@pytest.mark.parametrize("kernel", DISTANCE_KERNELS)
@examples(0.2)
@given(points=subspaces(), reg=REGS, n_landmarks=st.integers(3, 40))
def test_two_scales_with_all_candidates_are_dense(kernel, points, reg, n_landmarks):
    """Whatever the landmarks carry: the local systems hold the rest."""
    X, _ = points
    settled = as_kernel(kernel).fit(X)
    expected = whole(ridge(settled.gram(X), reg=reg))
    found = two_scale(X, kernel=settled, reg=reg, n_landmarks=n_landmarks, n_candidates=len(X) - 1)
    np.testing.assert_allclose(found.matrix.toarray(), expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("cls", [TRR, LSR1, LSR2])
@examples(0.06)
@given(points=subspaces())
def test_estimators_do_not_show_the_route(cls, points):
    X, k = points
    dense, explicit = (fitted(cls, X, k, solver=solver) for solver in ("dense", "low_rank"))
    W = dense.affinity_matrix_.toarray()
    np.testing.assert_allclose(explicit.affinity_matrix_.toarray(), W, atol=1e-6 * W.max())


# ------------------------------------------------------------------ evidence


@examples(0.5)
@given(
    points=subspaces(), reg=st.sampled_from([1e-10, 1e-6, 1e-2, 1.0]), dtype=st.sampled_from([np.float64, np.float32])
)
def test_condition_and_residual_are_true(points, reg, dtype):
    """The condition number within a factor of n of the true one; the residual no larger than it allows."""
    X, _ = points
    K = as_kernel("rbf").fit(X).gram(X)
    if dtype == np.float32:
        reg = max(reg, 1e-2)
    found = ridge(K.astype(dtype), reg=reg)
    values = np.linalg.eigvalsh(K) + found.penalty
    true = values[-1] / values[0]
    n = len(X)
    assert true / n < found.condition < 10 * n * true
    assert found.residual < 10 * n * np.finfo(dtype).eps * true
    explicit = ridge_low_rank(X.astype(dtype), reg=reg)
    values = np.linalg.eigvalsh(X @ X.T) + explicit.penalty
    assert explicit.condition < 1.01 * values[-1] / explicit.penalty + 1
    assert explicit.residual < 100 * n * np.finfo(dtype).eps * explicit.condition


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@examples(0.5)
@given(seed=SEEDS, rank=st.integers(1, 4), reg=st.sampled_from([1e-300, 1e-20, 1e-12, 1e-6]))
def test_ladder_reproduces_points_of_singular_kernels(dtype, seed, rank, reg):
    """Copies, low rank and hardly any λ: finite coefficients that reproduce each point, by both routes."""
    rng = np.random.default_rng(seed)
    Z = np.repeat(rng.standard_normal((12, rank)), 2, axis=0).astype(dtype)
    K = Z @ Z.T
    with pytest.warns(IndefiniteKernelWarning) if reg < np.finfo(dtype).eps / 100 else quiet():
        routes = [ridge((K + K.T) / 2, reg=reg), ridge_low_rank(Z, reg=reg)]
    for found in routes:
        C = whole(found)
        assert np.isfinite(C).all()
        error = np.linalg.norm(C.T @ Z - Z) / np.linalg.norm(Z)
        assert error < (1e-4 if dtype == np.float64 else 0.2)


# ------------------------------------------------------------------ repetition
