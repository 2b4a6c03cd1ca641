"""Ridge representations against n separate problems and eq. 3.9 as printed; kernels that are hard to invert."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from subspaces.graphs.rules import truncate, truncate_symmetric
from subspaces.kernels import as_kernel
from subspaces.representation import ridge as module
from subspaces.representation.ridge import (
    IndefiniteKernelWarning,
    above_rounding,
    penalty,
    ridge,
    ridge_low_rank,
    ridge_unconstrained,
    ridge_unconstrained_low_rank,
    warn_if_indefinite,
    whitened,
)
from subspaces.utils.packed import packed_copy


def kernel_matrix(name: str, X: np.ndarray) -> np.ndarray:
    return {
        "linear": lambda: X @ X.T,
        "rbf": lambda: np.exp(-(cdist(X, X) ** 2) / 4),
        "quadratic": lambda: (X @ X.T) ** 2,
    }[name]()


def separate_problems(K: np.ndarray, lam: float) -> np.ndarray:
    """Solve eq. 3.22 for each sample: φ(X_i) has a zero column at i, so its Gram matrix a zero row and column."""
    n = len(K)
    C = np.empty((n, n))
    for i in range(n):
        inner = K.copy()
        inner[i, :] = inner[:, i] = 0
        right = K[:, i].copy()
        right[i] = 0
        C[:, i] = np.linalg.solve(inner + lam * np.eye(n), right)
    return C


def printed(K: np.ndarray, lam: float) -> np.ndarray:
    """Evaluate eq. 3.9 column by column, nothing simplified."""
    n = len(K)
    U = np.linalg.inv(K + lam * np.eye(n))
    C = np.empty((n, n))
    for i in range(n):
        v, e = U @ K[:, i], np.eye(n)[i]
        C[:, i] = v - U @ ((e @ v) * e / (e @ U @ e))
    return C


def whole(coefficients) -> np.ndarray:
    n = coefficients.n_samples
    C = coefficients.columns(0, n).T
    assert_array_equal(coefficients.rows(0, n), C)
    assert (C.diagonal() == 0).all()
    assert C.dtype == coefficients.dtype
    return C


def with_eigenvalues(values, rng) -> np.ndarray:
    basis = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    K = (basis * np.asarray(values)) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("reg", [1e-3, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("name", ["linear", "rbf", "quadratic"])
def test_closed_form_is_n_ridge_problems(name, reg, rng):
    K = kernel_matrix(name, rng.standard_normal((40, 5)))
    coefficients = ridge(K, reg=reg)
    lam = reg * np.trace(K) / 40
    assert_allclose(coefficients.penalty, lam, rtol=1e-12)
    C = whole(coefficients)
    assert_allclose(C, separate_problems(K, lam), rtol=1e-7, atol=1e-10)
    assert_allclose(C, printed(K, lam), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("reg", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize(("n", "r"), [(50, 4), (50, 49), (20, 40), (2, 1)])
def test_low_rank_form_is_the_dense_form(n, r, reg, rng):
    Z = rng.standard_normal((n, r)) * (rng.random((n, r)) < 0.6)
    Z[0], Z[1, 0] = 0, 1  # a point at the origin, and one that is not
    expected = separate_problems(Z @ Z.T, reg * (Z**2).sum() / n)
    dense = ridge_low_rank(Z, reg=reg)
    assert_allclose(dense.penalty, ridge(Z @ Z.T, reg=reg).penalty, rtol=1e-12)
    assert_allclose(whole(dense), expected, rtol=1e-6, atol=1e-8)
    for convert in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix):
        assert_allclose(whole(ridge_low_rank(convert(Z), reg=reg)), expected, rtol=1e-6, atol=1e-8)
    single = whole(ridge_low_rank(Z.astype(np.float32), reg=max(reg, 0.1)))
    assert single.dtype == np.float32
    assert_allclose(single, whole(ridge_low_rank(Z, reg=max(reg, 0.1))), rtol=1e-3, atol=1e-4)


def test_low_rank_form_of_rank_deficient_float32(rng):
    """Zero eigenvalues of ZᵀZ are rounding, below or above zero."""
    Z = (rng.standard_normal((400, 3)) @ rng.standard_normal((3, 60))).astype(np.float32)
    Z64 = Z.astype(np.float64)
    for reg in (1e-2, 1.0):
        expected = whole(ridge(Z64 @ Z64.T, reg=reg))
        assert_allclose(whole(ridge_low_rank(Z, reg=reg)), expected, rtol=0, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("reg", [0.1, 1.0, 20.0])
def test_unconstrained_form_is_the_smoother(reg, dtype, rng):
    Z = rng.standard_normal((30, 40))
    K = (Z @ Z.T).astype(dtype)
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


def test_tiny_cases():
    assert_array_equal(whole(ridge(np.array([[2.0]]))), [[0.0]])
    assert_allclose(whole(ridge(np.array([[1.0, 0.5], [0.5, 1.0]]), reg=1.0)), [[0, 0.25], [0.25, 0]], rtol=1e-12)
    assert_array_equal(whole(ridge(np.zeros((4, 4)))), np.zeros((4, 4)))


# ------------------------------------------------------------------ blocks for the graph builders


def test_core_is_symmetric_and_hollow_and_gives_the_columns(rng):
    Z = rng.standard_normal((30, 4))
    for found in (ridge(Z @ Z.T, reg=0.3), ridge_low_rank(Z, reg=0.3)):
        M, C = found.core(0, 30), found.columns(0, 30).T
        assert_allclose(M, M.T, atol=1e-14)
        assert (M.diagonal() == 0).all()
        columns = np.tile(np.arange(30), (30, 1))
        assert_allclose(found.of_core(M, columns), C, rtol=1e-12, atol=1e-14)
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


def test_draft_of_negative_samples_of_very_different_sizes():
    """The draft is divided by the largest magnitude: by the smallest, squares would overflow."""
    for sign in (1, -1):
        found = ridge_low_rank(sign * np.array([[1.0], [1e-30], [0.5]]), reg=1.0)
        draft = found.draft.core(0, 3)
        assert np.isfinite(draft).all()
        assert_allclose(draft[0, 2], 0.5, rtol=1e-6)


def test_zero_samples_and_no_features():
    found = ridge_low_rank(np.zeros((5, 2)), reg=1.0)
    assert_array_equal(found.columns(0, 5), np.zeros((5, 5)))
    assert_array_equal(found.draft.core(0, 5), np.zeros((5, 5)))
    assert (found.condition, found.residual, found.penalty) == (1.0, 0.0, 1.0)
    assert_array_equal(ridge_unconstrained_low_rank(np.zeros((5, 0)), reg=1.0).dense(), np.zeros((5, 5)))


# ------------------------------------------------------------------ λ, condition number and residual


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


def test_penalty_below_rounding_is_raised_with_a_warning():
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


def test_penalty_of_whitened_samples_is_summed_in_double(rng):
    """Each feature has a sum of squares in single precision, all of them together have none."""
    Z = rng.standard_normal((60, 40)).astype(np.float32)
    expected, lam = whitened(Z, 0.1)
    H, scaled_lam = whitened(np.ldexp(Z, 60), 0.1)
    assert np.ldexp(np.square(Z, dtype=np.float64).sum(), 120) > np.finfo(np.float32).max
    assert_allclose(scaled_lam, np.ldexp(lam, 120), rtol=1e-6)
    assert_allclose(H @ H.T, expected @ expected.T, atol=1e-4)


@pytest.mark.parametrize("power", [-201, -101, -60, -30, 30, 60, 101, 201])
def test_extreme_scales_change_neither_coefficients_nor_relative_penalty(power, rng):
    Z = rng.standard_normal((30, 40))
    K = Z @ Z.T
    expected, found = ridge(K, reg=0.2), ridge(K * 2.0**power, reg=0.2)
    assert_allclose(found.columns(0, 30), expected.columns(0, 30), rtol=1e-12)
    assert_allclose(found.penalty, expected.penalty * 2.0**power, rtol=1e-12)
    assert_allclose(found.condition, expected.condition, rtol=1e-9)
    if abs(power) < 120:
        single = ridge((K * 2.0**power).astype(np.float32), reg=0.2)
        assert_allclose(single.columns(0, 30), expected.columns(0, 30), atol=1e-4)
        assert_allclose(single.penalty, expected.penalty * 2.0**power, rtol=1e-5)


def test_condition_number_is_that_of_the_system(rng):
    assert_allclose(ridge(np.eye(4), reg=1e5).condition, 1.0, rtol=1e-12)
    for lam in (1e-6, 1e-2, 10.0):
        K = with_eigenvalues(np.linspace(0, 1, 25), rng)
        system = K + ridge(K, reg=lam).penalty * np.eye(25)
        assert_allclose(ridge(K, reg=lam).condition, np.linalg.cond(system, 1), rtol=0.5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_warns_of_ill_conditioning_at_a_tenth_of_what_the_precision_holds(dtype):
    limit = 0.1 / np.finfo(dtype).eps
    for condition, told in ((0.8 * limit, False), (1.25 * limit, True)):
        factor = np.array([1.0, condition**-0.5, 0.5], dtype=dtype)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            module._warn_if_ill_conditioned(factor)
        assert len(said) == told


# ------------------------------------------------------------------ kernels that are not positive definite


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [30, 99, 100, 400])
def test_indefinite_kernel_is_shifted_with_a_warning(n, dtype, overwrite, rng):
    K = with_eigenvalues(np.linspace(-3, 10, n), rng).astype(dtype)
    K = (K + K.T) / 2
    before = K.copy()
    with pytest.warns(IndefiniteKernelWarning, match="smallest eigenvalue"):
        coefficients = ridge(K, reg=0.1, overwrite=overwrite)
    if not overwrite:
        assert_array_equal(K, before)
    C = whole(coefficients)
    assert np.isfinite(C).all()
    lam = 0.1 * np.trace(before.astype(np.float64)) / n
    assert lam + 3 < coefficients.penalty < lam + 3 * 1.02
    expected = printed(before.astype(np.float64), coefficients.penalty)
    tolerance = 1e-7 if dtype == np.float64 else 2e-3
    assert_allclose(C, expected, rtol=0, atol=tolerance * np.abs(expected).max())


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


def test_indefinite_kernel_is_told_from_rounding(rng):
    for lowest, told in ((-1e-2, True), (-1e-7, False), (0.5, False)):
        K = with_eigenvalues(np.linspace(lowest, 1, 30), rng)
        for scale in (1e-5, 1.0, 1e5):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                warn_if_indefinite(scale * K)
            assert [message.category for message in said] == [IndefiniteKernelWarning] * told


def test_definite_kernel_gives_no_warning(rng):
    K = kernel_matrix("rbf", rng.standard_normal((150, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ridge(K, reg=0.01)
        ridge(with_eigenvalues(np.linspace(-3, 10, 60), rng), reg=5.0)  # λ alone makes it definite


@pytest.mark.parametrize("n", [20, 200])
def test_nan_in_the_kernel_is_an_error(n):
    K = np.eye(n)
    K[3, 5] = K[5, 3] = np.nan
    with pytest.raises(ValueError, match="kernel"):
        ridge(K)


@given(
    arrays(np.float64, st.integers(2, 9).map(lambda n: (n, n)), elements=st.floats(-4, 4, width=16)),
    st.sampled_from([1e-6, 0.1, 1.0]),
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_symmetric_matrix_gives_finite_coefficients(A, reg):
    K = A + A.T
    before = K.copy()
    C = whole(ridge(K, reg=reg))
    assert np.isfinite(C).all()
    assert_array_equal(K, before)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("n", [60, 61, 140])
def test_packed_kernels_go_every_way_of_whole_ones(n, affine, rng):
    """Check definite, indefinite (λ is raised) and extreme kernels; overwritten or not."""
    Z = rng.standard_normal((n, 5))
    for K in (Z @ Z.T, 1 - Z @ Z.T, 2.0**90 * (Z @ Z.T)):
        half = packed_copy(K)
        before = half.half.copy()
        expected, found = ridge(K, reg=0.3, affine=affine), ridge(half, reg=0.3, affine=affine)
        assert_array_equal(half.half, before)
        taken = ridge(half, reg=0.3, affine=affine, overwrite=True)
        assert not np.array_equal(half.half, before)
        for other in (found, taken):
            assert_array_equal(other.dense(), expected.dense())
            assert (other.penalty, other.condition) == (expected.penalty, expected.condition)


# ------------------------------------------------------------------ memory


def peak_of(compute) -> int:
    tracemalloc.start()
    compute()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("affine", [False, True])
def test_overwrite_needs_no_second_square_array(affine, rng):
    n = 1500
    A = rng.standard_normal((n, n))
    for K in (kernel_matrix("linear", rng.standard_normal((n, 4))), A + A.T):  # definite and not
        assert peak_of(lambda K=K: ridge(K, reg=1.0, affine=affine, overwrite=True)) < 0.3 * 8 * n**2


@pytest.mark.parametrize("affine", [False, True])
def test_low_rank_form_needs_no_square_array(affine, rng):
    Z = rng.standard_normal((3000, 5))
    assert peak_of(lambda: ridge_low_rank(Z, reg=1.0, affine=affine).columns(0, 10)) < 0.05 * 8 * 3000**2


@pytest.mark.parametrize("cut", [truncate, truncate_symmetric])
def test_kernel_to_sparse_coefficients_in_half_a_square_array(cut, rng):
    n = 1500
    X = rng.standard_normal((n, 10))
    kernel = as_kernel("rbf").fit(X)
    with threadpool_limits(1):  # every thread holds blocks of its own
        peak = peak_of(lambda: cut(ridge(kernel.packed_gram(X), reg=1.0, overwrite=True), 5))
    assert peak < 0.9 * 8 * n**2  # blocks of a fixed size are 0.3 at this one, 0.03 at 5,000 samples
