"""The parts of the entrywise low-rank solvers, each against its definition: sizes, limits, precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.representation import _nuclear
from subspaces.representation._nuclear import (
    SMALLEST_LEVEL,
    Dictionary,
    LowRank,
    entrywise_match,
    error_penalty,
    multipliers_of_errors,
    refitted,
    stage_dictionary,
    working_dtype,
)
from subspaces.utils.types import Array

both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)


def orthonormal(rng: np.random.Generator, n_rows: int, n_columns: int) -> Array:
    return np.linalg.qr(rng.normal(size=(n_rows, n_columns)))[0]


# --- precision, penalties, multipliers --------------------------------------------------------------------------


def test_single_precision_from_its_size_and_tolerance_on():
    small, large = np.zeros((499_999, 1)), np.zeros((500_000, 1))
    assert working_dtype(large, 1e-4) == np.float32
    assert working_dtype(large, 0.01) == np.float32
    assert working_dtype(large, 0.99e-4) == np.float64
    assert working_dtype(small, 1e-4) == np.float64
    assert working_dtype(np.zeros((2, 2), dtype=np.float32), 1e-9) == np.float32
    assert isinstance(working_dtype(large, 1e-4), np.dtype)


def test_error_penalty_is_reg_over_a_third_of_the_root_mean_square(rng):
    X = rng.normal(size=(7, 4))
    assert error_penalty(X, 0.3) == pytest.approx(3 * 0.3 / np.sqrt(np.mean(X**2)), rel=1e-12)
    assert error_penalty(10 * X, 0.3) == pytest.approx(error_penalty(X, 0.3) / 10, rel=1e-12)
    assert type(error_penalty(X.astype(np.float32), 0.3)) is float


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


def test_multipliers_are_ten_times_the_error_up_to_the_threshold():
    errors = np.array([-5.0, -0.201, -0.1, 0.0, 0.05, 0.19, 7.0])
    assert_allclose(multipliers_of_errors(errors, 2.0), [-2, -2, -1, 0, 0.5, 1.9, 2], rtol=1e-15)


# --- directions of a stage --------------------------------------------------------------------------------------


@both_dtypes
def test_leading_directions_are_cut_and_padded(rng, dtype):
    stage = Dictionary(None, np.zeros((5, 3), dtype), np.ones(3, dtype))
    M = rng.normal(size=(4, 6)).astype(dtype)
    part = stage.restrict(M)
    assert_array_equal(part, M[:, :3])
    assert not np.shares_memory(part, M)
    whole = stage.extend(part, 6)
    assert whole.dtype == dtype
    assert_array_equal(whole, np.concatenate([M[:, :3], np.zeros((4, 3))], axis=1))


def test_turned_directions_are_rotated_there_and_back(rng):
    rotation = orthonormal(rng, 6, 3)
    stage = Dictionary(rotation, np.zeros((5, 3)), np.ones(3))
    M = rng.normal(size=(4, 6))
    assert_allclose(stage.restrict(M), M @ rotation, atol=1e-14)
    assert_allclose(stage.extend(M[:, :3], 6), M[:, :3] @ rotation.T, atol=1e-14)


def data(rng: np.random.Generator, n: int, r: int, dtype: Any = np.float64) -> tuple[Array, Array, Array]:
    """Orthonormal basis (n, r), falling singular values and coefficients M (n, r)."""
    basis, singular_values = orthonormal(rng, n, r), np.geomspace(50, 0.02, r)
    return basis.astype(dtype), singular_values.astype(dtype), rng.normal(size=(n, r)).astype(dtype)


@both_dtypes
@pytest.mark.parametrize("n_kept", [3, 49])
def test_last_stage_has_all_directions(rng, dtype, n_kept):
    basis, singular_values, M = data(rng, 60, 50, dtype)
    stage = stage_dictionary("all", basis, singular_values, M, n_kept)
    assert stage is not None
    assert stage.rotation is None
    assert stage.atoms.dtype == stage.singular_values.dtype == dtype
    assert_array_equal(stage.atoms, basis * singular_values)
    assert_array_equal(stage.singular_values, singular_values)
    assert not np.shares_memory(stage.singular_values, singular_values)


def test_stages_take_the_precision_of_the_iterates(rng):
    basis, singular_values, M = data(rng, 60, 50)
    for name in ("leading", "turned", "all"):
        stage = stage_dictionary(name, basis, singular_values, M.astype(np.float32), 4)
        assert stage is not None
        assert {part.dtype for part in stage if part is not None} == {np.dtype(np.float32)}
        assert_allclose(np.linalg.norm(stage.atoms, axis=0), stage.singular_values, rtol=1e-5)


@pytest.mark.parametrize(
    ("stage", "n_kept", "size"),
    [
        *[("leading", 60, 88), ("leading", 62, 90), ("leading", 63, 92), ("leading", 18, 32), ("leading", 19, 33)],
        *[("turned", 60, 76), ("turned", 62, 78), ("turned", 63, 80), ("turned", 22, 33), ("turned", 3, 32)],
    ],
)
def test_room_of_a_stage(rng, stage, n_kept, size):
    basis, singular_values, M = data(rng, 130, 125)
    found = stage_dictionary(stage, basis, singular_values, M, n_kept)
    assert found is not None
    assert found.atoms.shape == (130, size)
    assert found.singular_values.shape == (size,)
    if stage == "leading":
        assert found.rotation is None
        assert_allclose(found.atoms, basis[:, :size] * singular_values[:size], rtol=1e-14)
        assert_array_equal(found.singular_values, singular_values[:size])
    else:
        assert found.rotation is not None
        assert found.rotation.shape == (125, size)


@pytest.mark.parametrize("stage", ["leading", "turned"])
def test_a_stage_of_three_quarters_is_the_largest(rng, stage):
    # 33 directions of 44 are three quarters
    n_kept = 19 if stage == "leading" else 22
    basis, singular_values, M = data(rng, 50, 44)
    found = stage_dictionary(stage, basis, singular_values, M, n_kept)
    assert found is not None
    assert found.atoms.shape[1] == 33
    assert stage_dictionary(stage, basis[:, 1:], singular_values[1:], M[:, 1:], n_kept) is None
    assert stage_dictionary("all", basis[:, 1:], singular_values[1:], M[:, 1:], n_kept) is not None


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


def test_angles_of_turned_atoms_do_not_lose_digits_in_single_precision(rng):
    basis, singular_values, M = data(rng, 90, 60)
    M = (5 * orthonormal(rng, 90, SMALLEST_LEVEL)) @ orthonormal(rng, 60, SMALLEST_LEVEL).T
    stage = stage_dictionary("turned", basis, singular_values, M.astype(np.float32), 10)
    assert stage is not None
    atoms = stage.atoms.astype(np.float64)
    cosines = (atoms / np.linalg.norm(atoms, axis=0)).T @ (atoms / np.linalg.norm(atoms, axis=0))
    assert np.abs(cosines - np.eye(SMALLEST_LEVEL)).max() < 10 * eps(np.float32)


# --- the last step ----------------------------------------------------------------------------------------------


def low_rank(rng: np.random.Generator, n: int, r: int, rank: int, dtype: Any) -> LowRank:
    values = np.linspace(1, 3, rank)
    left, right = orthonormal(rng, n, rank) * values, orthonormal(rng, r, rank)
    return LowRank(left.astype(dtype), right.astype(dtype), values.astype(dtype))


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


def test_refitted_of_nothing_is_nothing(rng):
    low = low_rank(rng, 30, 8, 4, np.float64)
    atoms = Dictionary(None, np.zeros((5, 8)), np.ones(8))
    assert refitted(low, np.zeros((30, 8)), atoms, 8).right.shape == (8, 0)
    none = LowRank(np.zeros((30, 0)), np.zeros((8, 0)), np.zeros(0))
    assert refitted(none, rng.normal(size=(30, 8)), atoms, 8).left.shape == (30, 0)


def test_constants_of_the_stages():
    assert set(_nuclear.SLACK) == set(_nuclear.STAGES)
