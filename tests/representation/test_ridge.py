"""The closed form against n separate ridge problems, against eq. 3.9 as printed, and against hard kernels."""

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

from subspaces.graphs.truncation import truncate, truncate_symmetric
from subspaces.kernels import as_kernel
from subspaces.representation.inverse import IndefiniteKernelWarning
from subspaces.representation.ridge import ridge, ridge_low_rank
from subspaces.utils.packed import packed_copy


def kernel_matrix(name: str, X: np.ndarray) -> np.ndarray:
    return {
        "linear": lambda: X @ X.T,
        "rbf": lambda: np.exp(-(cdist(X, X) ** 2) / 4),
        "quadratic": lambda: (X @ X.T) ** 2,
    }[name]()


def separate_problems(K: np.ndarray, lam: float) -> np.ndarray:
    """Eq. 3.22 for each point: φ(X_i) has a zero column at i, so its Gram matrix a zero row and column."""
    n = len(K)
    C = np.empty((n, n))
    for i in range(n):
        inner = K.copy()
        inner[i, :] = inner[:, i] = 0
        right = K[:, i].copy()
        right[i] = 0
        C[:, i] = np.linalg.solve(inner + lam * np.eye(n), right)
    return C


def separate_least_squares(Z: np.ndarray, lam: float) -> np.ndarray:
    """The same in the feature space: min ‖z_i − Z_iᵀc‖² + λ‖c‖² as one stacked least-squares problem per point."""
    n = len(Z)
    C = np.empty((n, n))
    for i in range(n):
        others = Z.copy()
        others[i] = 0
        stacked = np.vstack([others.T, np.sqrt(lam) * np.eye(n)])
        C[:, i] = np.linalg.lstsq(stacked, np.r_[Z[i], np.zeros(n)], rcond=None)[0]
    return C


def printed(K: np.ndarray, lam: float) -> np.ndarray:
    """Eq. 3.9 column by column, nothing simplified."""
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


@pytest.mark.parametrize("reg", [1e-2, 1.0])
def test_closed_form_is_least_squares_in_the_feature_space(reg, rng):
    X = rng.standard_normal((30, 2))
    a, b = X.T
    for Z, name in ((X, "linear"), (np.c_[a**2, b**2, np.sqrt(2) * a * b], "quadratic")):
        lam = reg * (Z**2).sum() / 30
        expected = separate_least_squares(Z, lam)
        assert_allclose(whole(ridge(kernel_matrix(name, X), reg=reg)), expected, rtol=1e-7, atol=1e-9)
        assert_allclose(whole(ridge_low_rank(Z, reg=reg)), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "rbf", "quadratic"])
def test_float32_follows_float64(name, rng):
    K = kernel_matrix(name, rng.standard_normal((60, 5))).astype(np.float32)
    C = whole(ridge(K, reg=0.5))
    assert C.dtype == np.float32
    K = K.astype(np.float64)
    expected = separate_problems(K, 0.5 * np.trace(K) / 60)
    assert_allclose(C, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


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
    """Features far outnumber the dimension: the zero eigenvalues of ZᵀZ are rounding, below or above zero."""
    Z = (rng.standard_normal((400, 3)) @ rng.standard_normal((3, 60))).astype(np.float32)
    Z64 = Z.astype(np.float64)
    for reg in (1e-2, 1.0):
        expected = whole(ridge(Z64 @ Z64.T, reg=reg))
        assert_allclose(whole(ridge_low_rank(Z, reg=reg)), expected, rtol=0, atol=2e-3 * np.abs(expected).max())


def test_low_rank_form_needs_no_square_array(rng):
    n = 3000
    Z = rng.standard_normal((n, 5))
    tracemalloc.start()
    coefficients = ridge_low_rank(Z, reg=1.0)
    coefficients.columns(0, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * 8 * n**2


@pytest.mark.parametrize("make", ["dense", "low rank"])
def test_blocks_agree_with_the_whole_and_are_fresh(make, rng):
    Z = rng.standard_normal((23, 4))
    coefficients = ridge(Z @ Z.T, reg=0.3) if make == "dense" else ridge_low_rank(Z, reg=0.3)
    C = whole(coefficients).copy()
    for start, stop in ((0, 1), (5, 12), (22, 23), (0, 23)):
        columns, rows = coefficients.columns(start, stop), coefficients.rows(start, stop)
        assert_allclose(columns, C[:, start:stop].T, rtol=1e-12, atol=1e-14)
        assert_allclose(rows, C[start:stop], rtol=1e-12, atol=1e-14)
        columns[:], rows[:] = np.nan, np.nan
    assert_array_equal(coefficients.columns(0, 23).T, C)


def test_optimality_condition(rng):
    """(K + λI)C − K must vanish off the diagonal: only there the constraint c_ii = 0 may push."""
    K = kernel_matrix("rbf", rng.standard_normal((80, 3)))
    coefficients = ridge(K, reg=0.01)
    C = whole(coefficients)
    gradient = (K + coefficients.penalty * np.eye(80)) @ C - K
    np.fill_diagonal(gradient, 0)
    assert np.abs(gradient).max() < 1e-10


def test_large_reg_gives_the_kernel_itself(rng):
    K = kernel_matrix("rbf", rng.standard_normal((30, 3)))
    off = K - np.diag(K.diagonal())
    for reg in (1e7, 1e12, 1e100):
        coefficients = ridge(K, reg=reg)
        # λC = K − K²/λ + …: the next term is below n/λ
        assert_allclose(whole(coefficients) * coefficients.penalty, off, rtol=1e-10, atol=2 * 30 / reg)
    assert np.isfinite(whole(ridge(K, reg=1e300))).all()
    single = ridge(K.astype(np.float32), reg=1e5)
    assert_allclose(whole(single) * single.penalty, off, rtol=1e-5, atol=2 * 30 / 1e5)


def test_scale_and_order_of_points_do_not_matter(rng):
    K = kernel_matrix("rbf", rng.standard_normal((40, 3)))
    C = whole(ridge(K, reg=0.2))
    for power in (-200, -100, 100, 200):
        assert_array_equal(whole(ridge(K * 2.0**power, reg=0.2)), C)
    order = rng.permutation(40)
    assert_allclose(whole(ridge(K[np.ix_(order, order)], reg=0.2)), C[np.ix_(order, order)], rtol=1e-8, atol=1e-12)
    assert_allclose(whole(ridge(np.asfortranarray(K), reg=0.2)), C, rtol=1e-12)
    assert_allclose(whole(ridge(np.asfortranarray(K), reg=0.2, overwrite=True)), C, rtol=1e-12)


def test_integer_kernel_matrix():
    X = np.array([[1, 0], [2, 0], [0, 1], [0, 3]])
    assert_allclose(whole(ridge(X @ X.T, reg=0.01)), whole(ridge((X @ X.T).astype(float), reg=0.01)), rtol=1e-12)


def test_tiny_cases():
    assert_array_equal(whole(ridge(np.array([[2.0]]))), [[0.0]])
    assert_allclose(whole(ridge(np.array([[1.0, 0.5], [0.5, 1.0]]), reg=1.0)), [[0, 0.25], [0.25, 0]], rtol=1e-12)
    assert_array_equal(whole(ridge(np.zeros((4, 4)))), np.zeros((4, 4)))


# ------------------------------------------------------------------ kernels that are not positive definite


def indefinite(n: int, rng: np.random.Generator, lowest: float = -3.0) -> np.ndarray:
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    K = (basis * np.linspace(lowest, 10, n)) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [30, 99, 100, 400])
def test_indefinite_kernel_is_shifted_and_said_so(n, dtype, overwrite, rng):
    K = indefinite(n, rng).astype(dtype)
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


def test_negative_definite_kernel(rng):
    A = rng.standard_normal((20, 20))
    with pytest.warns(IndefiniteKernelWarning):
        coefficients = ridge(-A @ A.T, reg=1.0)
    assert np.isfinite(whole(coefficients)).all()


def test_definite_kernel_gives_no_warning(rng):
    K = kernel_matrix("rbf", rng.standard_normal((150, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ridge(K, reg=0.01)
        ridge(indefinite(60, rng), reg=5.0)  # λ alone makes it definite


@pytest.mark.parametrize("reg", [0.0, 1e-300, 1e-20, 1e-14])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "rank"), [(40, 1), (40, 5), (200, 1), (200, 7)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_singular_kernel_with_tiny_reg_stays_finite(n, rank, dtype, reg, rng):
    Z = rng.standard_normal((n, rank)).astype(dtype)
    K = Z @ Z.T
    K = (K + K.T) / 2
    C = whole(ridge(K, reg=reg))
    assert np.isfinite(C).all()
    # each point lies in the span of the others, so it must be reproduced well
    error = np.linalg.norm(Z - C.T @ Z) / np.linalg.norm(Z)
    assert error < (1e-6 if dtype == np.float64 else 3e-2)


def test_hopeless_conditioning_is_reported(rng):
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    K = np.diag(np.logspace(0, -14, 30))
    with pytest.warns(UserWarning, match="condition number"):
        ridge(K.astype(np.float32), reg=1e-15)
    K = (basis * np.logspace(0, -3, 30)) @ basis.T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ridge((K + K.T) / 2, reg=1e-3)


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


# ------------------------------------------------------------------ memory


def peak_over(base: int) -> int:
    return tracemalloc.get_traced_memory()[1] - base


def test_overwrite_needs_no_second_square_array(rng):
    n = 1500
    K = kernel_matrix("linear", rng.standard_normal((n, 4)))
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    coefficients = ridge(K, reg=1.0, overwrite=True)
    extra = peak_over(base)
    tracemalloc.stop()
    assert extra < 0.3 * 8 * n**2
    assert np.isfinite(coefficients.columns(0, 5)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_indefinite_kernel_needs_no_second_square_array(rng):
    n = 1500
    K = rng.standard_normal((n, n))
    K += K.T.copy()
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    ridge(K, reg=1.0, overwrite=True)
    extra = peak_over(base)
    tracemalloc.stop()
    assert extra < 0.3 * 8 * n**2


@pytest.mark.parametrize("graph", ["column", "symmetric"])
def test_kernel_to_sparse_coefficients_in_half_a_square_array(graph, rng):
    n = 1500
    X = rng.standard_normal((n, 10))
    with threadpool_limits(1):  # every thread holds blocks of its own
        tracemalloc.start()
        kernel = as_kernel("rbf").fit(X)
        found = ridge(kernel.packed_gram(X), reg=1.0, overwrite=True)
        truncate_symmetric(found, 5) if graph == "symmetric" else truncate(found, 5)
        peak = peak_over(0)
        tracemalloc.stop()
    assert peak < 0.9 * 8 * n**2  # blocks of a fixed size are 0.3 at this one, 0.03 at 5,000 points


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("n", [60, 61, 140])
def test_packed_kernels_go_every_way_of_whole_ones(n, affine, rng):
    """Definite, indefinite (λ is raised), of extreme size; overwritten or not."""
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
