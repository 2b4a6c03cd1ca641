"""Shared parts of the low-rank solvers: reduction, shrinkage exact and on a subspace, levels, stages, trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from subspaces.representation import _nuclear
from subspaces.representation._nuclear import (
    SMALLEST_LEVEL,
    Dictionary,
    LowRank,
    Residuals,
    Shrinkage,
    entrywise_match,
    refitted,
    singular_value_shrinkage,
    stage_dictionary,
    thin_svd,
)
from subspaces.utils.types import Array

both_precisions = both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


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


# ------------------------------------------------------------------ start, levels, residuals


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


# ------------------------------------------------------------------ stages of the entrywise solvers


def eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)


def orthonormal(rng: np.random.Generator, n_rows: int, n_columns: int) -> Array:
    return np.linalg.qr(rng.normal(size=(n_rows, n_columns)))[0]


def data(rng: np.random.Generator, n: int, r: int, dtype: Any = np.float64) -> tuple[Array, Array, Array]:
    """Orthonormal basis (n, r), falling singular values and coefficients M (n, r)."""
    basis, singular_values = orthonormal(rng, n, r), np.geomspace(50, 0.02, r)
    return basis.astype(dtype), singular_values.astype(dtype), rng.normal(size=(n, r)).astype(dtype)


def low_rank(rng: np.random.Generator, n: int, r: int, rank: int, dtype: Any) -> LowRank:
    values = np.linspace(1, 3, rank)
    left, right = orthonormal(rng, n, rank) * values, orthonormal(rng, r, rank)
    return LowRank(left.astype(dtype), right.astype(dtype), values.astype(dtype))


def test_start_keeps_what_two_and_a_half_times_the_size_of_errors_leaves():
    singular_values, reg, n_entries = np.array([9.0, 4.0, 2.0, 0.3]), 0.3, 40
    kept, slopes = entrywise_match(singular_values, reg, n_entries)
    size = 1.0
    for _ in range(500):  # errors of one common size, from their definition
        share = np.maximum(0, 1 - size / (reg * singular_values**2))
        size = float(np.sqrt(np.sum((singular_values * (1 - share)) ** 2) / n_entries))
    expected = np.maximum(0, 1 - 2.5 * size / (reg * singular_values**2))
    assert np.count_nonzero(expected) in (1, 2, 3)
    assert_allclose(kept, expected, rtol=1e-6)
    # the multiplier reg/size times the errors: s (1 - kept) reg/size
    assert_allclose(slopes, reg / (2.5 * size) * singular_values * (1 - expected), rtol=1e-6)


@both_dtypes
def test_turned_stage_is_the_data_in_the_leading_singular_vectors(rng, dtype):
    basis, singular_values, M = data(rng, 90, 60, dtype)
    leading = orthonormal(rng, 60, SMALLEST_LEVEL)
    M[:, :] = 0.01 * M + (5 * orthonormal(rng, 90, SMALLEST_LEVEL)) @ leading.T
    before = M.copy()
    stage = stage_dictionary("turned", basis, singular_values, M, 10)
    assert stage is not None
    assert stage.rotation is not None
    assert_array_equal(M, before)
    vectors = np.linalg.svd(M.astype(np.float64))[2][:SMALLEST_LEVEL].T
    assert stage.rotation.shape == (60, SMALLEST_LEVEL)
    assert_allclose(stage.rotation @ stage.rotation.T, vectors @ vectors.T, atol=100 * eps(dtype))
    assert_allclose(stage.rotation.T @ stage.rotation, np.eye(SMALLEST_LEVEL), atol=100 * eps(dtype))
    assert_allclose(stage.atoms, (basis * singular_values) @ stage.rotation, atol=1e4 * eps(dtype))
    gram = stage.atoms.astype(np.float64).T @ stage.atoms.astype(np.float64)
    off = gram - np.diag(np.diagonal(gram))
    assert np.abs(off).max() < 100 * eps(dtype) * gram.max()
    assert_allclose(stage.singular_values, np.sqrt(np.diagonal(gram)), rtol=10 * eps(dtype))
    assert np.all(np.diff(stage.singular_values) <= 0)
    for part in stage:
        assert part is not None
        assert part.flags.c_contiguous
        assert part.dtype == dtype


@both_dtypes
@pytest.mark.parametrize("turned", [False, True])
def test_refitted_is_the_projection_on_the_right_singular_vectors(rng, dtype, turned):
    low = low_rank(rng, 30, 8, 4, dtype)
    coefficients = rng.normal(size=(30, 8)).astype(dtype)
    rotation = orthonormal(rng, 12, 8).astype(dtype) if turned else None
    atoms = Dictionary(rotation, np.zeros((5, 8), dtype), np.ones(8, dtype))
    before = coefficients.copy()
    found = refitted(low, coefficients, atoms, 12)
    expected = atoms.extend((coefficients @ low.right @ low.right.T), 12)
    tolerance = 100 * eps(dtype)
    assert_allclose(found.dense(), expected, atol=10 * tolerance)
    assert_allclose(found.right.T @ found.right, np.eye(4), atol=tolerance)
    assert_allclose(found.left.T @ found.left, np.diag(found.singular_values**2), atol=100 * tolerance)
    assert_allclose(np.sort(found.singular_values)[::-1], np.linalg.svd(expected)[1][:4], rtol=tolerance)
    assert {part.dtype for part in found} == {np.dtype(dtype)}
    assert found.right.flags.c_contiguous
    assert found.right.shape == (12, 4)
    assert_array_equal(coefficients, before)


def test_refitted_drops_directions_without_coefficients(rng):
    low = low_rank(rng, 30, 8, 4, np.float64)
    atoms = Dictionary(None, np.zeros((5, 8)), np.ones(8))
    left, right = orthonormal(rng, 30, 4), low.right @ orthonormal(rng, 4, 4)
    # squares of singular values are compared with the machine precision
    values = np.array([3.0, 1.0, 1e-4, 1e-9])
    found = refitted(low, (left * values) @ right.T, atoms, 8)
    assert_allclose(np.sort(found.singular_values), [1e-4, 1, 3], rtol=1e-6)
    scaled = refitted(low, 1e-9 * (left * values) @ right.T, atoms, 8)
    assert_allclose(np.sort(scaled.singular_values), [1e-13, 1e-9, 3e-9], rtol=1e-6)
    single = LowRank(*(part.astype(np.float32) for part in low))
    found = refitted(single, ((left * [3, 1, 0, 1e-5]) @ right.T).astype(np.float32), atoms, 8)
    assert_allclose(np.sort(found.singular_values), [1, 3], rtol=1e-5)
