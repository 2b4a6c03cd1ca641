"""Guarded decompositions: each driver made to fail, to return too little or nonsense, and what comes then."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import LinAlgError

from subspaces.utils.decompositions import (
    cholesky,
    coordinates,
    eigenpairs_above,
    eigh,
    largest_eigenpairs,
    smallest_eigenvalue,
    solve_systems,
    svd,
)

DTYPES = [np.float64, np.float32]
real_eigh, real_svd, real_cholesky = scipy.linalg.eigh, scipy.linalg.svd, scipy.linalg.cholesky


def raises(*_, **__):
    raise LinAlgError("Internal Error.")


def too_few(A, **options):
    found = real_eigh(A, **options)
    return found[1:] if options.get("eigvals_only") else (found[0][1:], found[1][:, 1:])


def without_the_largest(A, **options):
    values, vectors = real_eigh(A, **options)
    return values[:-1], vectors[:, :-1]


def not_a_number(A, **options):
    found = real_eigh(A, **options)
    return found * np.nan if options.get("eigvals_only") else (found[0], found[1] * np.nan)


def infinite(A, **options):
    found = real_eigh(A, **options)
    return found + np.inf if options.get("eigvals_only") else (found[0] + np.inf, found[1])


def not_orthogonal(A, **options):
    values, vectors = real_eigh(A, **options)
    vectors[:, 0] = vectors[:, -1]
    return values, vectors


def not_eigenvectors(A, **options):
    values, vectors = real_eigh(A, **options)
    return values, vectors[::-1]


FAILURES = [raises, not_a_number, infinite]
WRONG = [*FAILURES, not_orthogonal, not_eigenvectors]


def break_calls(monkeypatch, name, option, failure, n_broken):
    """The first calls of `scipy.linalg.<name>` fail; the drivers of all are recorded."""
    used, real = [], {"eigh": real_eigh, "svd": real_svd}[name]

    def patched(A, **options):
        used.append(options.get(option, "gesdd"))
        return (failure if len(used) <= n_broken else real)(A, **options)

    monkeypatch.setattr(scipy.linalg, name, patched)
    return used


def break_eigh(monkeypatch, failure, n_broken):
    return break_calls(monkeypatch, "eigh", "driver", failure, n_broken)


@pytest.fixture
def A(rng):
    B = rng.standard_normal((12, 40))
    return B @ B.T / 10


# ------------------------------------------------------------------ eigenpairs


def check_pairs(A, values, vectors, expected):
    tolerance = 1e-10 if A.dtype == np.float64 else 1e-4
    assert values.dtype == vectors.dtype == A.dtype
    assert_allclose(values, expected, rtol=0, atol=tolerance)
    assert_allclose(A @ vectors, vectors * values, rtol=0, atol=tolerance)
    assert_allclose(vectors.T @ vectors, np.eye(len(values)), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("failure", WRONG)
@pytest.mark.parametrize("n_broken", [0, 1, 2])
def test_all_eigenpairs(A, failure, n_broken, dtype, monkeypatch):
    expected, A = np.linalg.eigvalsh(A), A.astype(dtype)
    before = A.copy()
    used = break_eigh(monkeypatch, failure, n_broken)
    check_pairs(A, *eigh(A), expected)
    assert used == ["evd", "ev", "evd"][: n_broken + 1]  # the last one of the reflected matrix
    assert_array_equal(A, before)


@pytest.mark.parametrize("failure", WRONG)
def test_no_driver_at_all_is_one_sentence(A, failure, monkeypatch):
    break_eigh(monkeypatch, failure, 99)
    for function in (eigh, lambda A: largest_eigenpairs(A, 3), lambda A: eigenpairs_above(A, 1.0)):
        with pytest.raises(LinAlgError, match="no eigenvectors of a symmetric matrix of 12 rows, by none of its"):
            function(A)
    assert issubclass(LinAlgError, ValueError)  # so that the command line says it in one sentence too


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("failure", [*WRONG, too_few])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_largest_eigenpairs(A, failure, k, dtype, monkeypatch):
    expected, A = np.linalg.eigvalsh(A)[::-1][:k], A.astype(dtype)
    for n_broken in (0, 1):
        used = break_eigh(monkeypatch, failure, n_broken)
        check_pairs(A, *largest_eigenpairs(A, k), expected)
        assert used == ["evr", "evd"][: n_broken + 1]


@pytest.mark.parametrize("failure", [*WRONG, without_the_largest])
def test_eigenpairs_above_a_value(A, failure, monkeypatch):
    """That the largest pair is lost is told by nothing but what is left of A."""
    assert eigenpairs_above(A, 1e3)[1].shape == (12, 0)
    assert eigenpairs_above(np.zeros((3, 3)), 1.0)[0].shape == (0,)
    expected = np.linalg.eigvalsh(A)[-4:]
    for n_broken in (0, 1):
        used = break_eigh(monkeypatch, failure, n_broken)
        check_pairs(A, *eigenpairs_above(A, expected[0] - 0.1), expected)
        assert used == ["evr", "evd"][: n_broken + 1]


@pytest.mark.parametrize(
    ("failure", "n_broken"), [(too_few, 1), *((failure, n) for failure in FAILURES for n in (0, 1, 2))]
)
def test_smallest_eigenvalue(A, failure, n_broken, monkeypatch):
    expected = np.linalg.eigvalsh(A)[0]
    used = break_eigh(monkeypatch, failure, n_broken)
    assert_allclose(smallest_eigenvalue(A), expected, atol=1e-12)
    assert used == ["evr", "evd", "evd"][: n_broken + 1]


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-150, 1e150, 1e300])
def test_answers_at_every_scale(A, scale):
    expected = np.linalg.eigvalsh(A) * scale
    values, vectors = eigh(A * scale)
    assert_allclose(values, expected, rtol=1e-9, atol=0)
    assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-12)
    assert_allclose(largest_eigenpairs(A * scale, 2)[0], expected[:-3:-1], rtol=1e-9, atol=0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_said(A, value):
    A[3, 4] = A[4, 3] = value
    functions = (eigh, svd, cholesky, smallest_eigenvalue)
    for function in (*functions, lambda A: largest_eigenpairs(A, 2), lambda A: eigenpairs_above(A, 1.0)):
        with pytest.raises(LinAlgError, match=r"shape \(12, 12\) to be decomposed holds NaN or infinity"):
            function(A)


# ------------------------------------------------------------------ singular values


def nan_parts(A, **options):
    return tuple(part * np.nan for part in real_svd(A, **options))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)])
@pytest.mark.parametrize("failure", [raises, nan_parts])
@pytest.mark.parametrize("n_broken", [0, 1, 2])
def test_singular_values(shape, failure, n_broken, dtype, rng, monkeypatch):
    X = rng.standard_normal(shape).astype(dtype)
    X[:, 1] = X[:, 0]
    used = break_calls(monkeypatch, "svd", "lapack_driver", failure, n_broken)
    U, s, Vt = svd(X)
    assert used == ["gesdd", "gesvd", "gesvd"][: n_broken + 1]  # the last one of the reflected matrix
    assert U.dtype == s.dtype == Vt.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    assert_allclose((U * s) @ Vt, X, atol=tolerance)
    assert_allclose(s, np.linalg.svd(X, compute_uv=False), atol=tolerance)
    for side in (U, Vt.T):
        assert_allclose(side.T @ side, np.eye(min(shape)), atol=tolerance)


def test_a_stack_of_which_one_fails(rng, monkeypatch):
    X = rng.standard_normal((7, 5, 3))
    expected = svd(X)
    monkeypatch.setattr(np.linalg, "svd", raises)
    U, s, Vt = svd(X)
    assert_allclose(s, expected[1])
    assert_allclose((U * s[:, None]) @ Vt, X, atol=1e-12)


# ------------------------------------------------------------------ Cholesky and linear systems


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_adds_what_rounding_took_and_says_how_much(A, dtype):
    A, eps = A.astype(dtype), float(np.finfo(dtype).eps)
    factor, jitter = cholesky(A)
    assert jitter == 0
    assert factor.dtype == dtype
    assert_allclose(factor @ factor.T, A, atol=100 * eps)
    ones = np.ones((30, 30), dtype=dtype) - 4 * eps * np.eye(30, dtype=dtype)
    factor, jitter = cholesky(ones)
    assert 0 < jitter <= eps**0.5
    assert_allclose(factor @ factor.T, ones + jitter * np.eye(30), atol=100 * eps)
    with pytest.raises(LinAlgError, match="not positive definite"):
        cholesky(ones, largest_jitter=0)


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_cholesky_goes_on_until_it_succeeds(A, failures, monkeypatch):
    calls = []

    def patched(matrix, **options):
        calls.append(matrix)
        if len(calls) <= failures:
            return raises() if failures != 2 else real_cholesky(matrix, **options) * np.nan
        return real_cholesky(matrix, **options)

    monkeypatch.setattr(scipy.linalg, "cholesky", patched)
    factor, jitter = cholesky(A)
    relative = 10 * np.finfo(float).eps * 12 * 100.0 ** (failures - 1)
    assert_allclose(jitter, relative * A.diagonal().mean(), rtol=1e-12)
    assert_allclose(factor @ factor.T, A + jitter * np.eye(12), rtol=1e-12)


def test_what_is_not_positive_definite_is_said(A):
    for matrix in (A - 5 * np.eye(12), -A, np.zeros((3, 3))):
        with pytest.raises(LinAlgError, match=r"rows is not positive definite, nor with .* added to its diagonal"):
            cholesky(matrix)


def test_singular_systems_have_their_least_squares_solution(rng):
    systems, right = rng.standard_normal((5, 4, 4)), rng.standard_normal((5, 4, 2))
    assert_array_equal(solve_systems(systems, right), np.linalg.solve(systems, right))
    systems[2] = np.diag([1.0, 2.0, 0.0, 4.0])
    systems[4] = 0
    found = solve_systems(systems, right)
    for i in (0, 1, 3):
        assert_allclose(systems[i] @ found[i], right[i], atol=1e-10)
    assert_allclose(found[2], right[2] / np.array([1, 2, np.inf, 4])[:, None])
    assert_array_equal(found[4], 0)
    assert solve_systems(systems.astype(np.float32), right.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 30), (6, 6), (6, 2)])
def test_coordinates_keep_inner_products(shape, dtype, rng):
    A = rng.standard_normal(shape).astype(dtype)
    A[3] = A[0]  # no full rank
    L = coordinates(A)
    assert L.shape == (6, min(shape))
    assert L.dtype == dtype
    assert_allclose(L @ L.T, A @ A.T, atol=100 * np.finfo(dtype).eps)
    with pytest.raises(ValueError):
        coordinates(np.full((2, 3), np.nan))
