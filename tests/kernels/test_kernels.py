"""Kernels against cdist and the formulas as written, evaluated in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform

from subspaces import kernels
from subspaces.kernels import DISTANCE_KERNELS, KERNELS, additive, cross, features, fit_kernel, gram, n_features_out

COMPUTED = [name for name in KERNELS if name != "precomputed"]
SIGMA = 1.7

MAPPED = ("linear", "cosine", "quadratic", "cubic", "polynomial", "correntropy")


def reference(name: str, X: np.ndarray, Y: np.ndarray, sigma: float = SIGMA) -> np.ndarray:
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    distance, product = cdist(X, Y), np.einsum("if,jf->ij", X, Y)
    lengths = np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))
    return {
        "rbf": lambda: np.exp(-((distance / sigma) ** 2)),
        "exponential": lambda: np.exp(-distance / sigma),
        "inverse_square": lambda: 1 / (1 + (distance / sigma) ** 2),
        "inverse_distance": lambda: 1 / (1 + distance / sigma),
        "linear": lambda: product,
        "cosine": lambda: product / lengths,
        "quadratic": lambda: product**2,
        "cubic": lambda: product**3,
        "polynomial": lambda: (0.5 * product + 2) ** 4,
        "correntropy": lambda: np.exp(-((X[:, None] - Y[None]) ** 2) / sigma**2).mean(axis=2),
    }[name]()


def fitted(name: str, X: np.ndarray, sigma: float | str = SIGMA) -> kernels.Kernel:
    params = {"degree": 4, "gamma": 0.5, "coef0": 2.0} if name == "polynomial" else None
    return fit_kernel(X, name, sigma, params)


def close(actual: np.ndarray, expected: np.ndarray, name: str) -> None:
    eps = np.finfo(actual.dtype).eps
    # d comes from d²: near zero it has half the digits; the cosine series is accurate to 1e-6 by promise
    floor = {"exponential": np.sqrt(eps), "inverse_distance": np.sqrt(eps), "correntropy": 1e-6}.get(name, 0)
    scale = max(1.0, float(np.abs(expected).max()))
    assert_allclose(actual, expected, rtol=0, atol=scale * max(floor, 200 * eps))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COMPUTED)
def test_gram_is_the_formula(name, dtype, rng):
    X = rng.standard_normal((40, 6)).astype(dtype)
    before = X.copy()
    X.flags.writeable = False
    K = gram(X, fitted(name, X))
    assert K.dtype == dtype
    assert K.flags.c_contiguous
    assert_array_equal(K, K.T)
    close(K, reference(name, X, X), name)
    assert_array_equal(X, before)
    if name in DISTANCE_KERNELS:
        assert (K.diagonal() == 1).all()


@pytest.mark.parametrize("name", ["rbf", "inverse_distance", "quadratic", "cosine"])
@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 530])
def test_gram_over_several_tiles(name, n, rng):
    X = rng.standard_normal((n, 3))
    K = gram(X, fitted(name, X))
    assert_array_equal(K, K.T)
    close(K, reference(name, X, X), name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COMPUTED)
def test_cross_is_a_block_of_gram(name, dtype, rng, monkeypatch):
    X = rng.standard_normal((50, 6)).astype(dtype)
    kernel = fitted(name, X)
    real = kernels.row_blocks
    monkeypatch.setattr(kernels, "row_blocks", lambda n, size, *_: real(n, size, 3 * size))
    K = cross(X[:20], X[20:], kernel)
    assert K.dtype == dtype
    close(K, gram(X, kernel)[:20, 20:].astype(np.float64), name)
    close(K, reference(name, X[:20], X[20:]), name)


@pytest.mark.parametrize("name", COMPUTED)
def test_sparse_input_gives_the_same(name, rng):
    X = rng.standard_normal((60, 8)) * (rng.random((60, 8)) < 0.5)
    X[:, 0] = 1.0  # no zero rows
    for convert in (sparse.csr_array, sparse.csc_matrix):
        S = convert(X)
        kernel = fitted(name, S, "rms")
        if kernel.bandwidth is not None:
            assert_allclose(kernel.bandwidth, fitted(name, X, "rms").bandwidth, rtol=1e-10)
        K = gram(S, kernel)
        assert isinstance(K, np.ndarray)
        assert_array_equal(K, K.T)
        close(K, gram(X, fitted(name, X, "rms")), name)
    expected = gram(X, kernel)[:10, 10:]
    S = sparse.csr_array(X)
    for new, train in ((S[:10], S[10:]), (S[:10], X[10:]), (X[:10], S[10:])):
        close(np.asarray(cross(new, train, kernel)), expected, name)


@pytest.mark.parametrize("name", COMPUTED)
def test_memory_order_does_not_matter(name, rng):
    X = rng.standard_normal((30, 5))
    kernel = fitted(name, X)
    close(gram(np.asfortranarray(X), kernel), gram(X, kernel), name)
    close(gram(np.repeat(X, 2, axis=1)[:, ::2], kernel), gram(X, kernel), name)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-8, 8).map(float)),
    st.sampled_from(sorted(DISTANCE_KERNELS)),
)
def test_gram_of_anything_small(X, name):
    """Duplicates, constant columns, single points: still symmetric, within [0, 1], 1 on the diagonal."""
    K = gram(X, fit_kernel(X, name, SIGMA))
    assert_array_equal(K, K.T)
    assert ((K >= 0) & (K <= 1)).all()
    assert (K.diagonal() == 1).all()
    close(K, reference(name, X, X), name)


# ------------------------------------------------------------------ bandwidths


def brute_force_bandwidth(X: np.ndarray, rule: str) -> float:
    pairs = pdist(X.astype(np.float64))
    square = squareform(pairs)
    return float({"rms": np.sqrt((square**2).mean()), "mean": square.mean(), "median": np.median(pairs)}[rule])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rule", ["rms", "mean", "median"])
def test_bandwidth_rules_are_exact(rule, dtype, rng, monkeypatch):
    X = (rng.standard_normal((70, 4)) + 3).astype(dtype)
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    expected = brute_force_bandwidth(X, rule)
    assert_allclose(fit_kernel(X, "rbf", rule).bandwidth, expected, rtol=tolerance)
    assert_allclose(fit_kernel(sparse.csr_array(X), "rbf", rule).bandwidth, expected, rtol=10 * tolerance)
    assert_allclose(fit_kernel(X, "correntropy", rule).bandwidth, expected / 2, rtol=tolerance)
    real = kernels.row_blocks
    monkeypatch.setattr(kernels, "row_blocks", lambda n, size, *_: real(n, size, 7 * size))
    assert_allclose(fit_kernel(X, "rbf", rule).bandwidth, expected, rtol=tolerance)


def test_median_of_many_points_is_close(rng):
    X = rng.standard_normal((2500, 3))
    assert_allclose(fit_kernel(X, "rbf", "median").bandwidth, brute_force_bandwidth(X, "median"), rtol=0.05)


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "inverse_square", "inverse_distance", "correntropy"])
@pytest.mark.parametrize("bandwidth", [0, -1.0, np.nan, np.inf, "medain"])
def test_bandwidth_must_be_a_rule_or_positive(kernel, bandwidth, rng):
    with pytest.raises(ValueError, match=r"bandwidth.*(median|-1|0|nan|inf)"):
        fit_kernel(rng.random((5, 2)), kernel, bandwidth)


@pytest.mark.parametrize("rule", ["rms", "mean", "median"])
@pytest.mark.parametrize("kernel", ["rbf", "correntropy"])
def test_bandwidth_of_equal_points(rule, kernel):
    X = np.full((6, 3), 0.5)
    with pytest.raises(ValueError, match="bandwidth"):
        fit_kernel(X, kernel, rule)
    K = gram(X, fit_kernel(X, kernel, 2.0))
    assert_allclose(K, 1, atol=1e-6)


# ------------------------------------------------------------------ stability


@pytest.mark.parametrize("name", DISTANCE_KERNELS)
def test_offset_of_1e8_is_harmless(name, rng):
    X = rng.integers(-200, 200, (50, 5)) / 64  # X + 1e8 is exact in float64
    far = X + 1e8
    for rule in ("rms", "mean", "median"):
        near_sigma, far_sigma = fit_kernel(X, name, rule).bandwidth, fit_kernel(far, name, rule).bandwidth
        assert_allclose(far_sigma, near_sigma, rtol=1e-7)
    kernel = fit_kernel(far, name)
    assert_allclose(gram(far, kernel), gram(X, kernel), rtol=0, atol=1e-6)
    assert_allclose(cross(far[:20], far, kernel), cross(X[:20], X, kernel), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", DISTANCE_KERNELS)
def test_one_outlier_does_not_spoil_the_other_distances(name, rng):
    X = rng.integers(-64, 64, (50, 3)) / 64
    X[17] = 2.0**30
    kernel = fit_kernel(X, name, SIGMA)
    assert_allclose(gram(X, kernel), reference(name, X, X), rtol=0, atol=1e-6)
    assert_allclose(cross(X[:9], X, kernel), reference(name, X[:9], X), rtol=0, atol=1e-6)


def test_cosine_of_zero_rows_is_zero(rng):
    X = rng.standard_normal((6, 3))
    X[2] = 0
    K = gram(X, fit_kernel(X, "cosine"))
    assert (K[2] == 0).all()
    assert (K[:, 2] == 0).all()


# ------------------------------------------------------------------ explicit maps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MAPPED)
def test_features_reproduce_the_kernel(name, dtype, rng):
    X = rng.standard_normal((30, 5)).astype(dtype)
    kernel = fitted(name, X)
    Z = features(X, kernel)
    assert Z.dtype == dtype
    assert Z.shape == (30, n_features_out(kernel, 5))
    close(Z @ Z.T, reference(name, X, X), name)


def test_quadratic_is_the_paper_s_two_maps(rng):
    """Eq. 3.23, both of them."""
    X = rng.standard_normal((20, 2))
    a, b = X.T
    K = gram(X, fit_kernel(X, "quadratic"))
    for Z in (np.c_[a**2, b**2, np.sqrt(2) * a * b], np.c_[a**2, b**2, a * b, b * a]):
        assert_allclose(K, Z @ Z.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 4, 5])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 0.0), (0.3, 0.0), (0.5, 2.0)])
def test_monomials_of_any_polynomial(degree, gamma, coef0, rng):
    X = rng.standard_normal((12, 3))
    kernel = fit_kernel(X, "polynomial", params={"degree": degree, "gamma": gamma, "coef0": coef0})
    Z = features(X, kernel)
    assert Z.shape == (12, n_features_out(kernel, 3))
    assert_allclose(Z @ Z.T, (gamma * X @ X.T + coef0) ** degree, rtol=1e-10, atol=1e-10)
    negative = fit_kernel(X, "polynomial", params={"degree": degree, "gamma": gamma, "coef0": -1.0})
    assert features(X, negative) is None


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in MAPPED])
def test_no_features_where_there_is_no_finite_map(name, rng):
    X = rng.random((4, 3))
    kernel = fit_kernel(X, name)
    assert features(X, kernel) is None
    assert n_features_out(kernel, 3) is None


# ------------------------------------------------------------------ correntropy


@pytest.mark.parametrize("s", [0.003, 0.01, 0.03, 0.3, 3.0, 100.0])
def test_correntropy_for_narrow_and_wide_bandwidths(s, rng):
    X = rng.random((40, 4))
    K = gram(X, fit_kernel(X, "correntropy", s))
    assert_allclose(K, reference("correntropy", X, X, s), rtol=0, atol=1e-6)


def test_correntropy_with_features_of_different_ranges(rng):
    X = rng.standard_normal((60, 5)) * np.array([1, 2, 5, 0.1, 0])
    X[3, 0] = 30
    kernel = fit_kernel(X, "correntropy")
    K = gram(X, kernel)
    assert_allclose(K, reference("correntropy", X, X, kernel.bandwidth), rtol=0, atol=1e-6)
    assert np.linalg.eigvalsh(K).min() > -1e-12


def test_correntropy_of_new_points_outside_the_range(rng):
    X = rng.random((30, 4))
    kernel = fit_kernel(X, "correntropy")
    K = cross(np.array([[1e3, -1e3, 0.5, 0.5], [1e30, 1e30, 1e30, 1e30], [0.5, 0.5, 0.5, 0.5]]), X, kernel)
    assert np.isfinite(K).all()
    assert ((K > -1e-6) & (K < 1 + 1e-6)).all()
    assert_allclose(K[2], reference("correntropy", np.full((1, 4), 0.5), X, kernel.bandwidth)[0], atol=1e-6)


def test_correntropy_does_not_depend_on_chunks(rng, monkeypatch):
    X = rng.random((30, 7))
    kernel = fit_kernel(X, "correntropy")
    K, block = gram(X, kernel), cross(X[:4], X, kernel)
    monkeypatch.setattr(additive, "_CHUNK_BYTES", 1)
    assert_allclose(gram(X, kernel), K, rtol=1e-12)
    assert_allclose(cross(X[:4], X, kernel), block, rtol=1e-12)


# ------------------------------------------------------------------ callables, precomputed, names


def shifted_product(X, Y, shift=0.0):
    return X @ Y.T + shift


def test_callable_gets_its_params_and_leaves_them(rng):
    X = rng.standard_normal((8, 3))
    params = {"shift": 2.0}
    kernel = fit_kernel(X, shifted_product, params=params)
    assert_allclose(gram(X, kernel), X @ X.T + 2, rtol=1e-12)
    assert_allclose(cross(X[:2], X, kernel), X[:2] @ X.T + 2, rtol=1e-12)
    assert params == {"shift": 2.0}
    single = X.astype(np.float32)
    assert gram(single, kernel).dtype == np.float32


def test_callable_faults_name_the_callable(rng):
    X = rng.standard_normal((8, 3))

    def wrong_shape(X, Y):
        return np.ones((3, 3))

    def returns_nothing(X, Y):
        return None

    def raising(X, Y):
        raise KeyError("inside")

    def lopsided(X, Y):
        return np.arange(64.0).reshape(8, 8)

    def not_a_number(X, Y):
        return np.full((8, 8), np.nan)

    for function in (wrong_shape, returns_nothing, raising, lopsided, not_a_number):
        with pytest.raises(ValueError, match=function.__name__) as caught:
            gram(X, fit_kernel(X, function))
        if function is raising:
            assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r"wrong_shape.*\(2, 8\).*\(3, 3\)"):
        cross(X[:2], X, fit_kernel(X, wrong_shape))


def test_precomputed_faults(rng, monkeypatch):
    real = kernels.row_blocks
    monkeypatch.setattr(kernels, "row_blocks", lambda n, size, *_: real(n, size, 3 * size))
    A = rng.standard_normal((10, 10))
    K = A @ A.T
    kernel = fit_kernel(K, "precomputed")
    with pytest.raises(ValueError, match=r"square.*\(9, 10\)"):
        gram(K[:9], kernel)
    for value in (np.nan, np.inf, -np.inf):
        bad = K.copy()
        bad[7, 2] = bad[2, 7] = value
        with pytest.raises(ValueError, match="NaN or infinity"):
            gram(bad, kernel)
    for dtype in (np.float64, np.float32):
        lopsided = K.astype(dtype)
        lopsided[8, 1] += 1e-3 * np.abs(K).max()
        with pytest.raises(ValueError, match="symmetric"):
            gram(lopsided, kernel)


def test_precomputed_is_copied_and_symmetrised(rng):
    A = rng.standard_normal((10, 10))
    K = A @ A.T
    K[3, 4] *= 1 + 1e-15
    before = K.copy()
    out = gram(K, fit_kernel(K, "precomputed"))
    assert_array_equal(out, out.T)
    assert not np.shares_memory(out, K)
    assert_array_equal(K, before)
    assert_allclose(out, K, rtol=1e-12)
    rank_one = np.outer(np.arange(5), np.arange(5))
    assert_array_equal(gram(rank_one, fit_kernel(rank_one, "precomputed")), rank_one.astype(float))


@pytest.mark.parametrize(("wrong", "right"), [("rbff", "rbf"), ("quadratc", "quadratic"), ("Cosine", "cosine")])
def test_unknown_kernel_suggests_the_nearest(wrong, right):
    with pytest.raises(ValueError, match=f"kernel='{wrong}'.*Did you mean '{right}'"):
        fit_kernel(np.eye(3), wrong)


def test_params_are_checked_and_never_changed(rng):
    X = rng.standard_normal((6, 3))
    params = {"degree": 2}
    kernel = fit_kernel(X, "polynomial", params=params)
    assert params == {"degree": 2}
    assert_allclose(gram(X, kernel), (X @ X.T + 1) ** 2, rtol=1e-12)
    with pytest.raises(ValueError, match=r"polynomial.*power"):
        fit_kernel(X, "polynomial", params={"power": 2})
    with pytest.raises(ValueError, match=r"rbf.*gamma"):
        fit_kernel(X, "rbf", params={"gamma": 2})
