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

from subspaces.kernels import KERNELS, Kernel, as_kernel, correntropy, profiles
from subspaces.kernels import base as base_kernels
from subspaces.utils import distances

DISTANCE_KERNELS = [name for name, kind in KERNELS.items() if kind.of_distances]
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


def fitted(name: str, X: np.ndarray, sigma: float | str = SIGMA) -> Kernel:
    params = {"degree": 4, "gamma": 0.5, "coef0": 2.0} if name == "polynomial" else None
    return as_kernel(name, sigma, params).fit(X)


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
    K = fitted(name, X).gram(X)
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
    K = fitted(name, X).gram(X)
    assert_array_equal(K, K.T)
    close(K, reference(name, X, X), name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COMPUTED)
def test_cross_is_a_block_of_gram(name, dtype, rng, monkeypatch):
    X = rng.standard_normal((50, 6)).astype(dtype)
    kernel = fitted(name, X)
    real = profiles.row_blocks
    monkeypatch.setattr(profiles, "row_blocks", lambda n, size, *_: real(n, size, 3 * size))
    K = kernel.cross(X[:20], X[20:])
    assert K.dtype == dtype
    close(K, kernel.gram(X)[:20, 20:].astype(np.float64), name)
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
        K = kernel.gram(S)
        assert isinstance(K, np.ndarray)
        assert_array_equal(K, K.T)
        close(K, fitted(name, X, "rms").gram(X), name)
    expected = kernel.gram(X)[:10, 10:]
    S = sparse.csr_array(X)
    for new, train in ((S[:10], S[10:]), (S[:10], X[10:]), (X[:10], S[10:])):
        close(np.asarray(kernel.cross(new, train)), expected, name)


@pytest.mark.parametrize("name", COMPUTED)
def test_memory_order_does_not_matter(name, rng):
    X = rng.standard_normal((30, 5))
    kernel = fitted(name, X)
    close(kernel.gram(np.asfortranarray(X)), kernel.gram(X), name)
    close(kernel.gram(np.repeat(X, 2, axis=1)[:, ::2]), kernel.gram(X), name)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-8, 8).map(float)),
    st.sampled_from(sorted(DISTANCE_KERNELS)),
)
def test_gram_of_anything_small(X, name):
    """Duplicates, constant columns, single points: still symmetric, within [0, 1], 1 on the diagonal."""
    K = as_kernel(name, SIGMA).fit(X).gram(X)
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
    assert_allclose(as_kernel("rbf", rule).fit(X).bandwidth, expected, rtol=tolerance)
    assert_allclose(as_kernel("rbf", rule).fit(sparse.csr_array(X)).bandwidth, expected, rtol=10 * tolerance)
    assert_allclose(as_kernel("correntropy", rule).fit(X).bandwidth, expected / 2, rtol=tolerance)
    real = distances.row_blocks
    monkeypatch.setattr(distances, "row_blocks", lambda n, size, *_: real(n, size, 7 * size))
    assert_allclose(as_kernel("rbf", rule).fit(X).bandwidth, expected, rtol=tolerance)


def test_median_of_many_points_is_close(rng):
    X = rng.standard_normal((2500, 3))
    assert_allclose(as_kernel("rbf", "median").fit(X).bandwidth, brute_force_bandwidth(X, "median"), rtol=0.05)


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "inverse_square", "inverse_distance", "correntropy"])
@pytest.mark.parametrize("bandwidth", [0, -1.0, np.nan, np.inf, "medain"])
def test_bandwidth_must_be_a_rule_or_positive(kernel, bandwidth, rng):
    with pytest.raises(ValueError, match=r"bandwidth.*(median|-1|0|nan|inf)"):
        as_kernel(kernel, bandwidth).fit(rng.random((5, 2)))


@pytest.mark.parametrize("rule", ["rms", "mean", "median"])
@pytest.mark.parametrize("kernel", ["rbf", "correntropy"])
def test_bandwidth_of_equal_points(rule, kernel):
    X = np.full((6, 3), 0.5)
    with pytest.raises(ValueError, match="bandwidth"):
        as_kernel(kernel, rule).fit(X)
    K = as_kernel(kernel, 2.0).fit(X).gram(X)
    assert_allclose(K, 1, atol=1e-6)


# ------------------------------------------------------------------ stability


@pytest.mark.parametrize("name", DISTANCE_KERNELS)
def test_offset_of_1e8_is_harmless(name, rng):
    X = rng.integers(-200, 200, (50, 5)) / 64  # X + 1e8 is exact in float64
    far = X + 1e8
    for rule in ("rms", "mean", "median"):
        near_sigma, far_sigma = as_kernel(name, rule).fit(X).bandwidth, as_kernel(name, rule).fit(far).bandwidth
        assert_allclose(far_sigma, near_sigma, rtol=1e-7)
    kernel = as_kernel(name).fit(far)
    assert_allclose(kernel.gram(far), kernel.gram(X), rtol=0, atol=1e-6)
    assert_allclose(kernel.cross(far[:20], far), kernel.cross(X[:20], X), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", DISTANCE_KERNELS)
def test_one_outlier_does_not_spoil_the_other_distances(name, rng):
    X = rng.integers(-64, 64, (50, 3)) / 64
    X[17] = 2.0**30
    kernel = as_kernel(name, SIGMA).fit(X)
    assert_allclose(kernel.gram(X), reference(name, X, X), rtol=0, atol=1e-6)
    assert_allclose(kernel.cross(X[:9], X), reference(name, X[:9], X), rtol=0, atol=1e-6)


def test_cosine_of_zero_rows_is_zero(rng):
    X = rng.standard_normal((6, 3))
    X[2] = 0
    K = as_kernel("cosine").fit(X).gram(X)
    assert (K[2] == 0).all()
    assert (K[:, 2] == 0).all()


# ------------------------------------------------------------------ explicit maps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MAPPED)
def test_features_reproduce_the_kernel(name, dtype, rng):
    X = rng.standard_normal((30, 5)).astype(dtype)
    kernel = fitted(name, X)
    Z = kernel.features(X)
    assert Z.dtype == dtype
    assert Z.shape == (30, kernel.n_features_out(5))
    close(Z @ Z.T, reference(name, X, X), name)


def test_quadratic_is_the_paper_s_two_maps(rng):
    """Eq. 3.23, both of them."""
    X = rng.standard_normal((20, 2))
    a, b = X.T
    K = as_kernel("quadratic").fit(X).gram(X)
    for Z in (np.c_[a**2, b**2, np.sqrt(2) * a * b], np.c_[a**2, b**2, a * b, b * a]):
        assert_allclose(K, Z @ Z.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 4, 5])
@pytest.mark.parametrize(("gamma", "coef0"), [(1.0, 0.0), (0.3, 0.0), (0.5, 2.0)])
def test_monomials_of_any_polynomial(degree, gamma, coef0, rng):
    X = rng.standard_normal((12, 3))
    kernel = as_kernel("polynomial", params={"degree": degree, "gamma": gamma, "coef0": coef0}).fit(X)
    Z = kernel.features(X)
    assert Z.shape == (12, kernel.n_features_out(3))
    assert_allclose(Z @ Z.T, (gamma * X @ X.T + coef0) ** degree, rtol=1e-10, atol=1e-10)
    negative = as_kernel("polynomial", params={"degree": degree, "gamma": gamma, "coef0": -1.0}).fit(X)
    assert negative.features(X) is None


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in MAPPED])
def test_no_features_where_there_is_no_finite_map(name, rng):
    X = rng.random((4, 3))
    kernel = as_kernel(name).fit(X)
    assert kernel.features(X) is None
    assert kernel.n_features_out(3) is None


# ------------------------------------------------------------------ correntropy


@pytest.mark.parametrize("s", [0.003, 0.01, 0.03, 0.3, 3.0, 100.0])
def test_correntropy_for_narrow_and_wide_bandwidths(s, rng):
    X = rng.random((40, 4))
    K = as_kernel("correntropy", s).fit(X).gram(X)
    assert_allclose(K, reference("correntropy", X, X, s), rtol=0, atol=1e-6)


def test_correntropy_with_features_of_different_ranges(rng):
    X = rng.standard_normal((60, 5)) * np.array([1, 2, 5, 0.1, 0])
    X[3, 0] = 30
    kernel = as_kernel("correntropy").fit(X)
    K = kernel.gram(X)
    assert_allclose(K, reference("correntropy", X, X, kernel.bandwidth), rtol=0, atol=1e-6)
    assert np.linalg.eigvalsh(K).min() > -1e-12


def test_correntropy_of_new_points_outside_the_range(rng):
    X = rng.random((30, 4))
    kernel = as_kernel("correntropy").fit(X)
    K = kernel.cross(np.array([[1e3, -1e3, 0.5, 0.5], [1e30, 1e30, 1e30, 1e30], [0.5, 0.5, 0.5, 0.5]]), X)
    assert np.isfinite(K).all()
    assert ((K > -1e-6) & (K < 1 + 1e-6)).all()
    assert_allclose(K[2], reference("correntropy", np.full((1, 4), 0.5), X, kernel.bandwidth)[0], atol=1e-6)


def test_correntropy_does_not_depend_on_chunks(rng, monkeypatch):
    X = rng.random((30, 7))
    kernel = as_kernel("correntropy").fit(X)
    K, block = kernel.gram(X), kernel.cross(X[:4], X)
    monkeypatch.setattr(correntropy, "_CHUNK_BYTES", 1)
    assert_allclose(kernel.gram(X), K, rtol=1e-12)
    assert_allclose(kernel.cross(X[:4], X), block, rtol=1e-12)


# ------------------------------------------------------------------ callables, precomputed, names


def shifted_product(X, Y, shift=0.0):
    return X @ Y.T + shift


def test_callable_gets_its_params_and_leaves_them(rng):
    X = rng.standard_normal((8, 3))
    params = {"shift": 2.0}
    kernel = as_kernel(shifted_product, params=params).fit(X)
    assert_allclose(kernel.gram(X), X @ X.T + 2, rtol=1e-12)
    assert_allclose(kernel.cross(X[:2], X), X[:2] @ X.T + 2, rtol=1e-12)
    assert params == {"shift": 2.0}
    single = X.astype(np.float32)
    assert kernel.gram(single).dtype == np.float32


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
            as_kernel(function).fit(X).gram(X)
        if function is raising:
            assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r"wrong_shape.*\(2, 8\).*\(3, 3\)"):
        as_kernel(wrong_shape).fit(X).cross(X[:2], X)


def test_precomputed_faults(rng, monkeypatch):
    real = base_kernels.row_blocks
    monkeypatch.setattr(base_kernels, "row_blocks", lambda n, size, *_: real(n, size, 3 * size))
    A = rng.standard_normal((10, 10))
    K = A @ A.T
    kernel = as_kernel("precomputed").fit(K)
    with pytest.raises(ValueError, match=r"square.*\(9, 10\)"):
        kernel.gram(K[:9])
    for value in (np.nan, np.inf, -np.inf):
        bad = K.copy()
        bad[7, 2] = bad[2, 7] = value
        with pytest.raises(ValueError, match="NaN or infinity"):
            kernel.gram(bad)
    for dtype in (np.float64, np.float32):
        lopsided = K.astype(dtype)
        lopsided[8, 1] += 1e-3 * np.abs(K).max()
        with pytest.raises(ValueError, match="symmetric"):
            kernel.gram(lopsided)


def test_precomputed_is_copied_and_symmetrised(rng):
    A = rng.standard_normal((10, 10))
    K = A @ A.T
    K[3, 4] *= 1 + 1e-15
    before = K.copy()
    out = as_kernel("precomputed").fit(K).gram(K)
    assert_array_equal(out, out.T)
    assert not np.shares_memory(out, K)
    assert_array_equal(K, before)
    assert_allclose(out, K, rtol=1e-12)
    rank_one = np.outer(np.arange(5), np.arange(5))
    assert_array_equal(as_kernel("precomputed").fit(rank_one).gram(rank_one), rank_one.astype(float))


@pytest.mark.parametrize(("wrong", "right"), [("rbff", "rbf"), ("quadratc", "quadratic"), ("Cosine", "cosine")])
def test_unknown_kernel_suggests_the_nearest(wrong, right):
    with pytest.raises(ValueError, match=f"kernel='{wrong}'.*Did you mean '{right}'"):
        as_kernel(wrong).fit(np.eye(3))


def test_params_are_checked_and_never_changed(rng):
    X = rng.standard_normal((6, 3))
    params = {"degree": 2}
    kernel = as_kernel("polynomial", params=params).fit(X)
    assert params == {"degree": 2}
    assert_allclose(kernel.gram(X), (X @ X.T + 1) ** 2, rtol=1e-12)
    with pytest.raises(ValueError, match=r"polynomial.*power"):
        as_kernel("polynomial", params={"power": 2}).fit(X)
    with pytest.raises(ValueError, match=r"rbf.*gamma"):
        as_kernel("rbf", params={"gamma": 2}).fit(X)
