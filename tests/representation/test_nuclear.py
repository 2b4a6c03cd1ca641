"""Shared parts of the low-rank solvers: reduction, shrinkage exact and on a subspace, trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation import _nuclear
from subspaces.representation._nuclear import (
    LowRank,
    Residuals,
    Shrinkage,
    singular_value_shrinkage,
    thin_svd,
)
from subspaces.utils.types import Array

both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def with_singular_values(values: Any, n: int, rng: np.random.Generator) -> Array:
    """Tall, n rows, with the given singular values."""
    left, right = (np.linalg.qr(rng.normal(size=(size, len(values))))[0] for size in (n, len(values)))
    return (left * np.asarray(values)) @ right.T


def shrunk_by_svd(M: Array, threshold: float) -> Array:
    left, values, right = np.linalg.svd(M.astype(np.float64), full_matrices=False)
    return (left * np.maximum(values - threshold, 0)) @ right


def assert_is_shrunk(low: LowRank, M: Array, threshold: float, tolerance: float) -> None:
    values = np.linalg.svd(M.astype(np.float64), compute_uv=False)
    expected = (values - threshold)[values > threshold]
    assert low.left.shape == (M.shape[0], len(expected))
    assert low.right.shape == (M.shape[1], len(expected))
    assert_allclose(low.dense(), shrunk_by_svd(M, threshold), atol=tolerance)
    assert_allclose(np.sort(low.singular_values)[::-1], expected, atol=tolerance)
    assert_allclose(low.right.T @ low.right, np.eye(len(expected)), atol=tolerance)
    assert_allclose(low.left.T @ low.left, np.diag(low.singular_values**2), atol=tolerance)


@both_precisions
@pytest.mark.parametrize(("n", "m"), [(9, 4), (4, 9), (5, 5), (6, 2), (5, 1), (1, 5)])
@pytest.mark.parametrize("deficient", [False, True])
def test_thin_svd(rng, n, m, deficient, dtype):
    values = np.array([3.0, 2.0, 1.0, 0.5, 0.4][: min(n, m)])
    values[-1] *= not deficient
    X = with_singular_values(values, max(n, m), rng).astype(dtype)
    X = X if n >= m else X.T
    V, singular, U = thin_svd(X)
    rank = len(values) - deficient
    assert (V.shape, singular.shape, U.shape) == ((n, rank), (rank,), (m, rank))
    assert V.dtype == singular.dtype == U.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-12
    assert_allclose(singular, values[:rank], atol=tolerance)
    assert_allclose((V * singular) @ U.T, X, atol=tolerance)
    for side in (V, U):
        assert side.flags.c_contiguous
        assert_allclose(side.T @ side, np.eye(rank), atol=tolerance)


@both_precisions
@pytest.mark.parametrize("threshold", [1.0, 0.4])
@pytest.mark.parametrize("expected_rank", [0, 2, 4, 12])
def test_shrinkage_of_singular_values(rng, expected_rank, threshold, dtype):
    M = with_singular_values(threshold * np.r_[3, 2, 1.5, 1.1, 0.9, np.linspace(0.8, 0, 7)], 20, rng).astype(dtype)
    before = M.copy()
    low = singular_value_shrinkage(M, expected_rank, threshold)
    assert {part.dtype for part in low} == {np.dtype(dtype)}
    assert_is_shrunk(low, M, threshold, 1e-5 if dtype == np.float32 else 1e-12)
    assert_array_equal(M, before)
    shrink = Shrinkage(expected_rank, threshold)
    for _ in range(2):
        assert_is_shrunk(shrink(M), M, threshold, 1e-5 if dtype == np.float32 else 1e-12)
        assert shrink.is_exact


# ------------------------------------------------------------------ warm started shrinkage


def matrix_of_rank(rng: np.random.Generator, n: int, r: int, rank: int) -> Array:
    """Return a tall matrix with `rank` singular values from 1.2 to 3 and the others below 0.9."""
    left, right = (np.linalg.qr(rng.normal(size=(size, r)))[0] for size in (n, r))
    values = np.r_[rng.uniform(1.2, 3, size=rank), rng.uniform(0, 0.9, size=r - rank)]
    return (left * values) @ right.T


@pytest.mark.parametrize("threshold", [1.0, 0.5])
def test_shrinkage_follows_a_slowly_changing_matrix(rng, monkeypatch, threshold):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    M = threshold * matrix_of_rank(rng, 60, 40, 8)
    step = 1e-3 * rng.normal(size=M.shape) / np.sqrt(M.size)
    shrink = Shrinkage(8, threshold)
    was_exact = []
    for _ in range(6):
        M = M + step
        low, expected = shrink(M), singular_value_shrinkage(M, 8, threshold)
        was_exact.append(shrink.is_exact)
        assert shrink.rank == len(low.singular_values) == len(expected.singular_values)
        assert_allclose(low.dense(), expected.dense(), atol=1e-4 * threshold)
        assert_allclose(low.right.T @ low.right, np.eye(shrink.rank), atol=1e-10)
        assert_allclose(low.left.T @ low.left, np.diag(low.singular_values**2), atol=1e-10)
    assert was_exact == [True] + [False] * 5
    assert not shrink.confirmed()
    assert_allclose(shrink(M).dense(), expected.dense(), atol=1e-10)
    assert shrink.confirmed()


def test_shrinkage_notices_new_directions(rng, monkeypatch):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    shrink = Shrinkage(5)
    shrink(matrix_of_rank(rng, 60, 50, 5))
    for rank in (5, 12, 30, 0):
        M = matrix_of_rank(rng, 60, 50, rank)
        low = shrink(M)
        assert len(low.singular_values) == rank
        if shrink.is_exact:
            assert_allclose(low.dense(), singular_value_shrinkage(M, rank).dense(), atol=1e-10)


def test_shrinkage_keeps_float32(rng, monkeypatch):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    M = matrix_of_rank(rng, 60, 40, 8).astype(np.float32)
    shrink = Shrinkage(8)
    for _ in range(2):
        assert {part.dtype for part in shrink(M)} == {np.dtype(np.float32)}
    assert not shrink.is_exact


def test_residuals_and_their_trace():
    residuals = Residuals(0.1, 9)
    assert (residuals.budget(True), residuals.budget(False)) == (9, 4)
    assert not residuals.add(0.2, 0.05, 7.0)
    assert not residuals.add(0.05, 0.2, 6.0)
    assert residuals.add(0.1, 0.05, 5.0)
    assert not residuals.add(0.1, 0.05, 5.0, 0.5)
    assert residuals.add(0.05, 0.01, 4.5, 0.5)
    assert residuals.add(0.05, 0.15, 4.0, 1.5)
    assert (residuals.budget(True), residuals.budget(False)) == (3, 1)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=9 .* 5.0e-02 \(primal\) and 1.5e-01 \(dual\) above tol=0.1"):
        assert not residuals.trace().converged
    residuals.add(0.02, 0.1, 3.0)
    trace = residuals.trace()
    assert (trace.converged, trace.n_iter) == (True, 7)
    assert trace.primal == [0.2, 0.05, 0.1, 0.1, 0.05, 0.05, 0.02]
    assert trace.dual == [0.05, 0.2, 0.05, 0.05, 0.01, 0.15, 0.1]
    assert trace.objective == [7.0, 6.0, 5.0, 5.0, 4.5, 4.0, 3.0]
