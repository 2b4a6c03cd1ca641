"""Ridge coefficients at their edges: the forms without c_ii = 0, the evidence, extreme scales, every way to fail."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence

from subspaces.representation import inverse as module
from subspaces.representation.inverse import IndefiniteKernelWarning, above_rounding, penalty, warn_if_indefinite
from subspaces.representation.ridge import (
    _enlarged,
    ridge,
    ridge_low_rank,
    ridge_unconstrained,
    ridge_unconstrained_low_rank,
    whitened,
)
from subspaces.utils import decompositions


@pytest.fixture
def K(rng):
    Z = rng.standard_normal((30, 40))
    return Z @ Z.T


def with_eigenvalues(values, rng) -> np.ndarray:
    basis = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    K = (basis * np.asarray(values)) @ basis.T
    return (K + K.T) / 2


# ------------------------------------------------------------------ the forms beside `ridge`


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("reg", [0.1, 1.0, 20.0])
def test_unconstrained_form_is_the_smoother(K, reg, dtype):
    K = K.astype(dtype)
    before, lam = K.copy(), reg * np.trace(K) / 30
    found = ridge_unconstrained(K, reg=reg)
    assert_array_equal(K, before)
    assert (found.n_samples, found.dtype) == (30, dtype)
    assert_allclose(found.penalty, lam, rtol=1e-6)
    expected = np.linalg.solve(K.astype(np.float64) + lam * np.eye(30), K.astype(np.float64))
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    for start, stop in ((0, 30), (3, 4), (12, 30)):
        assert_allclose(found.columns(start, stop), expected[start:stop], rtol=0, atol=tolerance)
        assert_allclose(found.rows(start, stop), expected[start:stop], rtol=0, atol=tolerance)
    assert found.columns(0, 30).dtype == dtype
    assert_allclose(found.condition, np.linalg.cond(before + lam * np.eye(30), 1), rtol=0.5)
    assert 0 < found.residual < 100 * np.finfo(dtype).eps * found.condition


def test_unconstrained_form_may_take_the_memory(K):
    expected, before = ridge_unconstrained(K, reg=0.5).columns(0, 30), K.copy()
    assert_allclose(ridge_unconstrained(np.asfortranarray(K), reg=0.5).columns(0, 30), expected, atol=1e-12)
    assert_array_equal(ridge_unconstrained(K, reg=0.5, overwrite=True).columns(0, 30), expected)
    assert not np.allclose(K, before)  # what was K is now U
    for whole_numbers in (np.eye(3), np.eye(3, dtype=int)):
        assert_allclose(ridge_unconstrained(whole_numbers).columns(0, 3), np.eye(3) / 2, rtol=1e-12)  # λ = 1


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_unconstrained_low_rank_form_is_the_dense_one(convert, rng):
    Z = rng.standard_normal((40, 6))
    for reg in (0.05, 3.0):
        found, dense = ridge_unconstrained_low_rank(convert(Z), reg=reg), ridge_unconstrained(Z @ Z.T, reg=reg)
        assert_allclose(found.columns(0, 40), dense.columns(0, 40), rtol=0, atol=1e-10)
        assert_array_equal(found.rows(5, 9), found.columns(5, 9))
        assert (found.n_samples, found.dtype) == (40, np.float64)
        assert_allclose(found.penalty, dense.penalty, rtol=1e-12)
        values = np.linalg.eigvalsh(Z @ Z.T)
        assert_allclose(found.condition, (values[-1] + found.penalty) / found.penalty, rtol=1e-8)
        assert found.residual < 1e-12
    assert ridge_unconstrained_low_rank(Z.astype(np.float32)).columns(0, 40).dtype == np.float32
    assert_allclose(ridge_unconstrained_low_rank(np.eye(3)).columns(0, 3), np.eye(3) / 2, rtol=1e-12)


def test_inverse_is_the_inverse(K):
    before = K.copy()
    found = ridge(K, reg=0.2)
    assert_array_equal(K, before)
    assert_allclose(found.penalty, 0.2 * np.trace(K) / 30, rtol=1e-12)
    U = np.linalg.inv(K + found.penalty * np.eye(30))
    assert_allclose(found.dense(), np.eye(30) - U / np.diag(U), atol=1e-10)
    assert ridge(K.astype(np.float32)).dtype == np.float32
    assert ridge(np.diag([1, 3])).penalty == 2  # whole numbers
    assert_allclose(ridge(K, reg=0.2, overwrite=True).dense(), found.dense(), rtol=0, atol=0)
    assert not np.allclose(K, before)  # what was K is now U


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_whitened_points_give_the_smoother(dtype, rng):
    Z = rng.standard_normal((50, 5)).astype(dtype)
    H, lam = whitened(Z, 0.3)
    assert H.dtype == dtype
    assert H.flags.c_contiguous
    K = Z.astype(np.float64) @ Z.T.astype(np.float64)
    assert_allclose(lam, 0.3 * np.trace(K) / 50, rtol=1e-6)
    expected = K @ np.linalg.inv(K + lam * np.eye(50))
    assert_allclose(H @ H.T, expected, atol=1e-12 if dtype == np.float64 else 1e-5)


# ------------------------------------------------------------------ what the graph builders read


def test_core_is_symmetric_and_hollow_and_gives_the_columns(K, rng):
    Z = rng.standard_normal((30, 4))
    for found in (ridge(K, reg=0.3), ridge_low_rank(Z, reg=0.3)):
        M, C = found.core(0, 30), found.columns(0, 30).T
        assert_allclose(M, M.T, atol=1e-14)
        assert (M.diagonal() == 0).all()
        for i in range(30):
            others = np.arange(30) != i
            assert_allclose(C[others, i] / M[others, i], C[i - 1, i] / M[i - 1, i], rtol=1e-9)
        assert_allclose(found.core(4, 9), M[4:9], rtol=1e-12, atol=1e-15)


def test_draft_is_the_core_up_to_a_factor_and_pairs_are_exact(rng):
    Z = 1e-3 * rng.standard_normal((60, 7))
    found = ridge_low_rank(Z, reg=0.5)
    M, draft = found.core(0, 60), found.draft.core(0, 60)
    assert draft.dtype == np.float32
    largest = np.abs(M).argmax()
    factor = draft.flat[largest] / M.flat[largest]
    assert_allclose(draft, factor * M, rtol=0, atol=1e-5 * np.abs(draft).max())
    assert 1e-3 < np.abs(draft).max() < 100  # far from what single precision cannot hold
    rows, columns = np.array([3, 0, 59]), np.array([[5, 7], [1, 2], [4, 0]])
    assert_allclose(found.draft.pairs(rows, columns), M[rows[:, None], columns], rtol=1e-12)
    single = ridge_low_rank(Z.astype(np.float32), reg=0.5)
    assert single.draft is None


def test_points_at_the_origin_have_zero_coefficients():
    found = ridge_low_rank(np.zeros((5, 2)), reg=1.0)
    assert_array_equal(found.columns(0, 5), np.zeros((5, 5)))
    assert_array_equal(found.draft.core(0, 5), np.zeros((5, 5)))
    assert (found.condition, found.residual, found.penalty) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(("rank", "times"), [(1, 1), (39, 1), (40, 2), (159, 7), (160, 8), (5000, 8)])
def test_blocks_grow_with_the_rank(rank, times):
    assert _enlarged(rank) == times


def test_blocks_of_wide_points_are_larger(rng):
    assert ridge_low_rank(rng.standard_normal((3, 60))).enlarge == 3


# ------------------------------------------------------------------ λ and its limits


def test_penalty_is_relative_to_the_mean_diagonal():
    assert penalty(np.array([1.0, 3.0]), 0.5) == 1.0
    assert penalty(np.array([1, 3]), 0.5) == 1.0
    assert penalty(np.zeros(3), 0.5) == 0.5
    assert penalty(np.array([-2.0, 1.0]), 0.5) == 0.5
    assert penalty(np.array([0.5]), 0.0) == 0.0
    assert penalty(np.full(3, 2e38, dtype=np.float32), 1.0) == pytest.approx(2e38)  # whose sum has no value


@pytest.mark.parametrize(
    ("diagonal", "reg", "dtype"),
    [
        (1e30, 1e10, np.float32),
        (1e-10, 1e38, np.float32),
        (1e300, 1e10, np.float64),
        (1e-300, 1 / np.finfo(np.float64).tiny, np.float64),
        (1.0, np.inf, np.float64),
    ],
)
def test_penalty_without_a_value_is_refused(diagonal, reg, dtype):
    with pytest.raises(ValueError, match=f"too large for {np.dtype(dtype)}: take a smaller reg"):
        penalty(np.full(2, diagonal, dtype=dtype), reg)
    assert penalty(np.ones(2, dtype=dtype), 1e30) == 1e30


def test_penalty_below_rounding_is_raised_and_said_so():
    eps = np.finfo(np.float32).eps
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert above_rounding(4 * eps, 4.0, np.float32) == 4 * eps
        assert above_rounding(8 * eps, 4.0, np.float32, 2.0) == 8 * eps
    with pytest.warns(IndefiniteKernelWarning, match="larger reg"):
        assert above_rounding(7 * eps, 4.0, np.float32, 2.0) == 8 * eps
    with pytest.warns(IndefiniteKernelWarning, match="float32"):
        assert above_rounding(0.0, 4.0, np.float32) == 4 * eps


def test_low_rank_form_with_reg_zero_stays_finite(rng):
    Z = rng.standard_normal((20, 3))
    with pytest.warns(IndefiniteKernelWarning, match="rounding"):
        found = ridge_low_rank(Z, reg=0.0)
    assert_allclose(found.penalty, 10 * np.finfo(np.float64).eps * (Z**2).sum(), rtol=1e-12)
    assert_allclose(found.columns(0, 20) @ Z, Z, atol=1e-4)
    with pytest.warns(IndefiniteKernelWarning, match="rounding of the kernel matrix in float32"):
        single = ridge_low_rank(Z.astype(np.float32), reg=1e-12)
    assert_allclose(single.penalty, 10 * np.finfo(np.float32).eps * (Z**2).sum(), rtol=1e-5)


@pytest.mark.parametrize("power", [-201, -101, -60, -30, 30, 60, 101, 201])
def test_extreme_scales_change_neither_coefficients_nor_relative_penalty(K, power):
    expected, found = ridge(K, reg=0.2), ridge(K * 2.0**power, reg=0.2)
    assert_allclose(found.columns(0, 30), expected.columns(0, 30), rtol=1e-12)
    assert_allclose(found.penalty, expected.penalty * 2.0**power, rtol=1e-12)
    assert_allclose(found.condition, expected.condition, rtol=1e-9)
    if abs(power) < 120:
        single = ridge((K * 2.0**power).astype(np.float32), reg=0.2)
        assert_allclose(single.columns(0, 30), expected.columns(0, 30), atol=1e-4)
        assert_allclose(single.penalty, expected.penalty * 2.0**power, rtol=1e-5)


@pytest.mark.parametrize(("power", "expected"), [(0, 0), (39, 0), (40, 40), (41, 42), (-41, 0), (-42, -42), (-43, -42)])
def test_exponent_is_even_and_zero_within_forty(power, expected):
    assert module._exponent_of(np.full(3, 2.0**power), 0.0) == expected
    assert module._exponent_of(np.full(3, -(2.0 ** (power - 1))), 1.0) == expected


# ------------------------------------------------------------------ evidence


def test_condition_number_is_that_of_the_system(rng):
    assert_allclose(ridge(np.eye(4), reg=1e5).condition, 1.0, rtol=1e-12)
    for lam in (1e-6, 1e-2, 10.0):
        K = with_eigenvalues(np.linspace(0, 1, 25), rng)
        system = K + ridge(K, reg=lam).penalty * np.eye(25)
        assert_allclose(ridge(K, reg=lam).condition, np.linalg.cond(system, 1), rtol=0.5)


def test_low_rank_condition_number_is_that_of_the_system(rng):
    Z = rng.standard_normal((40, 3))
    for reg in (1e-8, 1e-3, 1.0):
        found = ridge_low_rank(Z, reg=reg)
        values = np.linalg.eigvalsh(Z.T @ Z)
        assert_allclose(found.condition, (values[-1] + found.penalty) / found.penalty, rtol=1e-4)
        assert found.residual < 100 * np.finfo(np.float64).eps * found.condition


def test_condition_number_stays_positive_where_rounding_is_all():
    H = 1.0000001 * np.eye(4, 2)  # a column of H may be rounded to a norm above one
    condition, _ = module.low_rank_evidence(np.eye(4, 2), H, 1e-17)
    assert condition == 1 / np.finfo(np.float64).eps


def test_error_is_relative():
    assert module._error(np.array([3.0, 4.0]), np.array([3.0, 0.0])) == pytest.approx(4 / 3)
    single = np.array([1.0, 1.0 + 2e-7], dtype=np.float32)
    assert module._error(single, np.ones(2, dtype=np.float32)) == pytest.approx(1.19e-7 * 2 / 2**0.5, rel=0.2)


# ------------------------------------------------------------------ the ladder


def test_penalty_is_raised_by_the_eigenvalue_and_a_margin(rng):
    K = with_eigenvalues(np.linspace(-2, 5, 20), rng)
    with pytest.warns(IndefiniteKernelWarning):
        found = ridge(K, reg=0.1)
    rounding = 10 * np.finfo(np.float64).eps * 20 * np.abs(K.diagonal()).mean()
    assert_allclose(found.penalty, 0.1 * np.trace(K) / 20 + 2 * 1.001 + rounding, rtol=1e-9)
    with pytest.warns(IndefiniteKernelWarning):  # singular, not indefinite: rounding alone
        found = ridge(np.full((2, 2), 4.0), reg=0.0)
    assert_allclose(found.penalty, 10 * np.finfo(np.float64).eps * 2 * 4, rtol=0.2)


def test_eigenvalue_that_lanczos_misses_is_found_by_lapack(monkeypatch, rng):
    K = with_eigenvalues(np.linspace(-3, 9, 40), rng)
    monkeypatch.setattr(module, "_smallest_by_lanczos", lambda K: 0.0)
    with pytest.warns(IndefiniteKernelWarning) as said:
        found = ridge(K, reg=0.1)
    assert len(said) == 2
    assert found.penalty > 3
    system = K + found.penalty * np.eye(40)
    U = np.linalg.inv(system)
    assert_allclose(found.columns(0, 40).T, np.eye(40) - U / U.diagonal(), atol=1e-6 * np.abs(U).max())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_inverted_is_refused(monkeypatch, rng):
    for name in ("_smallest_by_lanczos", "smallest_eigenvalue"):
        monkeypatch.setattr(module, name, lambda K: 0.0)
    with pytest.raises(ValueError, match="cannot be inverted in float64: increase reg, or check the kernel"):
        ridge(with_eigenvalues(np.linspace(-3, 9, 40), rng), reg=0.1)


@pytest.mark.parametrize("n", [20, 99, 100, 150])
def test_smallest_eigenvalue(n, rng):
    K = with_eigenvalues(np.linspace(-3, 9, n), rng)
    assert_allclose(module.smallest_eigenvalue(K), -3, rtol=1e-10)
    assert -3.01 < module._smallest_by_lanczos(K) < -2.999


def test_lanczos_that_does_not_converge_gives_way(monkeypatch, rng):
    def eigsh(*_, **__):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(decompositions, "eigsh", eigsh)
    K = with_eigenvalues(np.linspace(-3, 9, 120), rng)
    assert_allclose(module._smallest_by_lanczos(K), -3, rtol=1e-10)


def test_indefinite_kernel_is_told_from_rounding(rng):
    for lowest, told in ((-1e-2, True), (-1e-7, False), (0.5, False)):
        K = with_eigenvalues(np.linspace(lowest, 1, 30), rng)
        for scale in (1e-5, 1.0, 1e5):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                warn_if_indefinite(scale * K)
            assert [message.category for message in said] == [IndefiniteKernelWarning] * told


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ill_conditioning_is_told_at_a_tenth_of_what_the_precision_holds(dtype):
    limit = 0.1 / np.finfo(dtype).eps
    for condition, told in ((0.8 * limit, False), (1.25 * limit, True)):
        factor = np.array([1.0, condition**-0.5, 0.5], dtype=dtype)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            module._warn_if_ill_conditioned(factor)
        assert len(said) == told
