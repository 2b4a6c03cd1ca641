"""The parts of the low-rank solvers one by one: reduction, shrinkage whole and on a subspace, start, levels, trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.representation import _nuclear as module
from subspaces.representation._nuclear import (
    LowRank,
    Shrinkage,
    scaled_copy,
    singular_value_shrinkage,
    squared_norm,
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


# --- factors, scales, reduction ---------------------------------------------------------------------------------


@both_precisions
def test_low_rank_matrix_and_what_it_represents(dtype, rng):
    right, basis = (np.linalg.qr(rng.normal(size=(size, 3)))[0] for size in (3, 9))
    values = np.array([3.0, 2.0, 0.5])
    low = LowRank(np.linalg.qr(rng.normal(size=(7, 3)))[0] * values, right, values)
    assert_allclose(low.dense(), low.left @ right.T, rtol=1e-12)
    found = low.represented_by(basis.astype(dtype))
    assert {part.dtype for part in found} == {np.dtype(dtype)}
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert_allclose(found.dense(), basis @ low.dense().T, atol=tolerance)
    assert_allclose(found.singular_values, values, rtol=tolerance)
    for side in (found.left, found.right):
        assert_allclose(side.T @ side, np.eye(3), atol=tolerance)


@pytest.mark.parametrize(
    ("entries", "scale"),
    [
        ([3.0, -1.0], 4.0),
        ([-3.0, 1.0], 4.0),
        ([4.0], 8.0),
        ([0.1], 0.125),
        ([0.75], 1.0),
        ([0.0, 0.0], 1.0),
        ([np.inf, 5.0], 1.0),
        ([np.nan, 5.0], 1.0),
    ],
)
@both_precisions
def test_scaled_copy_divides_by_a_power_of_two(entries, scale, dtype):
    X = np.array(entries, dtype=dtype)
    before = X.copy()
    found, power = scaled_copy(X)
    assert power == scale
    assert isinstance(power, float)
    assert found.dtype == dtype
    assert_array_equal(found, before / scale)
    assert_array_equal(X, before)
    assert not np.shares_memory(found, X)


def test_scaled_copy_of_other_types():
    found, scale = scaled_copy([[1, -6]])
    assert (found.dtype, scale) == (np.float64, 8.0)
    assert_array_equal(found, [[0.125, -0.75]])
    assert scaled_copy(np.array([2.0**-100], dtype=np.float32))[0] == 0.5
    assert scaled_copy(np.ones(3, dtype=np.float16))[0].dtype == np.float64
    assert scaled_copy(np.zeros((0, 3)))[1] == 1.0


def test_squared_norm(rng):
    M = rng.normal(size=(3, 4))
    assert squared_norm(M) == pytest.approx((M**2).sum(), rel=1e-12)
    assert isinstance(squared_norm(M.astype(np.float32)), float)


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
@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_gram_matrix_replaces_the_svd_down_to_the_root_of_rounding(rng, monkeypatch, shape, dtype):
    """Of the squares of the singular values: below, the factors would lose more than half of the digits."""
    limit = float(np.finfo(dtype).eps) ** 0.25
    calls, svd = [], scipy.linalg.svd
    monkeypatch.setattr(scipy.linalg, "svd", lambda *args, **options: calls.append(1) or svd(*args, **options))
    for scale in (1.0, 0.01):  # both relative to the largest
        for smallest, n_calls in ((2 * limit, 0), (0.5 * limit, 1)):
            calls.clear()
            X = with_singular_values(scale * np.r_[1, np.full(5, smallest)], 30, rng).astype(dtype)
            V, singular, U = thin_svd(X if shape == (30, 6) else X.T)
            assert (len(calls), len(singular)) == (n_calls, 6)
            for side in (V, U):
                assert_allclose(side.T @ side, np.eye(6), atol=20 * np.finfo(dtype).eps ** 0.5)


@both_precisions
@pytest.mark.parametrize("is_tall", [False, True])
def test_rank_ends_at_rounding_times_the_longer_side(dtype, is_tall):
    limit = float(np.finfo(dtype).eps) * 50
    for smallest, rank in ((3 * limit, 3), (0.3 * limit, 2)):
        X = np.zeros((50, 3), dtype=dtype)
        X[:3] = np.diag([2.0, 0.01, 2 * smallest])
        assert len(thin_svd(X if is_tall else X.T)[1]) == rank
    V, singular, U = thin_svd(np.zeros((4, 3), dtype=dtype))
    assert (V.shape, singular.shape, U.shape) == ((4, 0), (0,), (3, 0))


# --- shrinkage --------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("expected_rank", [0, 4])
def test_shrinkage_at_the_threshold_and_below(expected_rank):
    for shrink in (lambda M: singular_value_shrinkage(M, expected_rank), Shrinkage(expected_rank)):
        low = shrink(np.diag([2.0, 1.0, 0.5, 0.25]))
        assert_allclose(low.singular_values, [1.0], rtol=1e-12)  # one is not above one
        assert shrink(np.eye(4)).left.shape == (4, 0)
        assert_array_equal(shrink(np.zeros((5, 4))).dense(), np.zeros((5, 4)))


@pytest.mark.parametrize(("expected_rank", "driver"), [(0, "evr"), (3, "evr"), (4, "evd"), (12, "evd")])
def test_few_singular_values_are_found_without_the_others(rng, monkeypatch, expected_rank, driver):
    used, eigh = [], scipy.linalg.eigh
    monkeypatch.setattr(
        scipy.linalg, "eigh", lambda *args, **options: used.append(options["driver"]) or eigh(*args, **options)
    )
    singular_value_shrinkage(rng.normal(size=(20, 12)), expected_rank)
    assert used == [driver]


def test_values_at_the_threshold_are_not_above_it():
    low = Shrinkage(0, 0.5)._shrunk(np.diag([0.25, 0.5, 2.0]), np.array([0.0625, 0.25, 4.0]), np.eye(3))
    assert_allclose(low.singular_values, [1.5])
    assert_allclose(low.dense(), np.diag([0, 0, 1.5]))


def warm(monkeypatch: pytest.MonkeyPatch, size: int = 10, share: float = 0.6) -> None:
    monkeypatch.setattr(module, "SUBSPACE_SIZE", size)
    monkeypatch.setattr(module, "SUBSPACE_SHARE", share)


@pytest.mark.parametrize(
    ("n_directions", "rank", "size", "share", "room"),
    [
        (40, 8, 40, 0.6, 17),
        (39, 8, 40, 0.6, None),
        (40, 16, 10, 0.65, 26),
        (40, 16, 10, 0.64, None),
        (40, 7, 10, 0.6, 15),
        (40, 0, 10, 0.2, 8),
        (40, 0, 10, 0.19, None),
    ],
)
def test_subspace_has_room_for_a_few_more(rng, monkeypatch, n_directions, rank, size, share, room):
    warm(monkeypatch, size, share)
    M = with_singular_values(np.r_[np.full(rank, 2.0), np.linspace(0.9, 0.1, n_directions - rank)], 50, rng)
    shrink = Shrinkage(rank)
    assert shrink.basis is None
    assert_is_shrunk(shrink(M), M, 1.0, 1e-10)
    if room is None:
        assert shrink.basis is None
    else:
        leading = np.linalg.svd(M)[2][:room]
        assert shrink.basis.shape == (n_directions, room)
        assert_allclose(np.linalg.norm(leading @ shrink.basis, axis=0), 1, atol=1e-10)
    shrink(M)
    assert shrink.is_exact == (room is None)


def ritz_shrunk(M: Array, basis: Array, threshold: float) -> Array:
    """The step on the span of MᵀM times the basis, plainly."""
    Q = scipy.linalg.orth(M.T @ M @ basis)
    left, values, right = np.linalg.svd(M @ Q, full_matrices=False)
    return (left * np.maximum(values - threshold, 0)) @ right @ Q.T


@both_precisions
@pytest.mark.parametrize("threshold", [1.0, 0.5])
def test_step_on_a_subspace(rng, monkeypatch, threshold, dtype):
    warm(monkeypatch)
    values = threshold * np.r_[np.linspace(3, 1.5, 6), np.linspace(0.8, 0, 34)]
    M = with_singular_values(values, 50, rng).astype(dtype)
    shrink = Shrinkage(6, threshold)
    shrink(M)
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    for _ in range(3):
        M = M + (0.02 * threshold * rng.normal(size=M.shape) / 7).astype(dtype)
        expected = ritz_shrunk(M, shrink.basis, threshold)
        before = M.copy()
        low = shrink(M)
        assert not shrink.is_exact
        assert shrink.rank == len(low.singular_values) == 6
        assert {part.dtype for part in low} == {np.dtype(dtype)}
        assert_allclose(low.dense(), expected, atol=tolerance)
        assert_allclose(low.left.T @ low.left, np.diag(low.singular_values**2), atol=10 * tolerance)
        assert_allclose(shrink.basis.T @ shrink.basis, np.eye(14), atol=tolerance)
        assert_array_equal(M, before)
    assert shrink.basis.dtype == dtype


@pytest.mark.parametrize("threshold", [1.0, 0.3])
@pytest.mark.parametrize(("outside", "notices"), [(1.1, True), (0.9, False)])
def test_direction_the_subspace_misses(rng, monkeypatch, outside, notices, threshold):
    """A singular vector orthogonal to all the basis stays outside of the step; above the threshold it is noticed."""
    warm(monkeypatch)
    left, right = (np.linalg.qr(rng.normal(size=(size, 40)))[0] for size in (50, 40))
    values = threshold * np.r_[np.linspace(3, 1.5, 6), np.linspace(0.7, 0.6, 8), np.full(26, 0.2)]
    shrink = Shrinkage(6, threshold)
    shrink((left * values) @ right.T)
    assert shrink.basis.shape == (40, 14)
    values[20] = outside * threshold
    M = (left * values) @ right.T
    low = shrink(M)
    assert shrink.is_exact == notices
    assert_is_shrunk(low, M, threshold, 1e-10)


@pytest.mark.parametrize(("smallest", "is_enough"), [(1.05, False), (0.95, True)])
def test_subspace_that_is_all_above_the_threshold_is_too_small(rng, monkeypatch, smallest, is_enough):
    warm(monkeypatch)
    left, right = (np.linalg.qr(rng.normal(size=(size, 40)))[0] for size in (50, 40))
    values = np.r_[np.linspace(3, 1.5, 6), np.linspace(0.7, 0.6, 8), np.full(26, 0.2)]
    shrink = Shrinkage(6)
    shrink((left * values) @ right.T)
    values[6:14] = np.linspace(1.4, smallest, 8)
    M = (left * values) @ right.T
    assert_is_shrunk(shrink(M), M, 1.0, 1e-10)
    assert shrink.is_exact != is_enough


def test_search_outside_of_the_subspace_is_the_same_every_time(rng, monkeypatch):
    warm(monkeypatch)
    M = with_singular_values(np.r_[np.linspace(3, 1.5, 6), np.linspace(0.8, 0, 34)], 50, rng)
    seeds, default_rng = [], np.random.default_rng
    monkeypatch.setattr(module.np.random, "default_rng", lambda seed=None: seeds.append(seed) or default_rng(seed))
    shrink = Shrinkage(6)
    for _ in range(3):
        shrink(M)
    assert len(seeds) == 2
    assert seeds[0] == seeds[1]
    assert seeds[0] is not None


def test_confirmation_makes_all_that_follow_exact(rng, monkeypatch):
    warm(monkeypatch)
    M = with_singular_values(np.r_[np.linspace(3, 1.5, 6), np.linspace(0.8, 0, 34)], 50, rng)
    shrink = Shrinkage(6)
    assert (shrink.threshold, shrink.rank, shrink.calls, shrink.is_exact) == (1.0, 6, 0, True)
    was_exact = [shrink(M) is not None and shrink.is_exact for _ in range(3)]
    assert was_exact == [True, False, False]
    assert shrink.confirmed() is False
    for _ in range(2):
        assert_is_shrunk(shrink(M), M, 1.0, 1e-10)
        assert shrink.confirmed() is True
    assert shrink.basis is None
    assert (shrink.calls, shrink.rank) == (5, 6)
