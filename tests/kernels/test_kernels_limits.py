"""Kernels at their edges: defaults, tolerances, refusals and warnings (see docs/mutation.md)."""

from __future__ import annotations

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import pdist

from subspaces.kernels import KERNELS, RBF, Polynomial, as_kernel, base, profiles


def test_defaults_are_those_of_the_paper(rng):
    X = rng.standard_normal((9, 4))
    kernel = as_kernel().fit(X)
    assert kernel.name == "rbf"
    assert_allclose(kernel.bandwidth, np.sqrt((2 * pdist(X) ** 2).sum() / 81), rtol=1e-12)
    assert kernel == RBF(kernel.bandwidth)
    assert as_kernel("polynomial").fit(X) == Polynomial(degree=3, gamma=1.0, coef0=1.0)


@pytest.mark.parametrize(
    ("kernel", "expected"), [("rbf", False), ("cubic", False), ("polynomial", True), (pdist, True)]
)
def test_which_kernels_see_units(kernel, expected):
    assert as_kernel(kernel).sees_units is expected


# ------------------------------------------------------------------ shapes


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("precomputed", "correntropy")])
def test_groups_of_features_add_up(name, rng, monkeypatch):
    """Products are made some columns at a time: one column, a remainder, all at once."""
    X = rng.standard_normal((8, 7)) + 2
    kernel = as_kernel(name, 3.0).fit(X)
    expected = kernel.cross(X, X)
    for n_columns in (1, 3, 7, 8):
        monkeypatch.setattr(profiles, "_PRODUCT_COLUMNS", n_columns)
        assert_allclose(kernel.gram(X), expected, rtol=1e-7)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "precomputed"])
def test_more_new_points_than_training_points(name, rng):
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    kernel = as_kernel(name).fit(Y)
    assert_allclose(kernel.cross(X, Y), kernel.cross(Y, X).T, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------ bandwidths that see nothing


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("name", "power"), [("rbf", 2), ("inverse_square", 2), ("exponential", 1), ("inverse_distance", 1)]
)
def test_a_bandwidth_is_blind_where_the_kernel_has_no_digits_left(name, power, dtype, rng):
    """Two points at distance 1: 1 − k is about σ^−power, to be compared with a thousand times the rounding of 1."""
    X = np.array([[0.0], [1.0]], dtype=dtype)
    power = {"rbf": 2, "inverse_square": 2, "exponential": 1, "inverse_distance": 1}[name]
    limit = (1e3 * float(np.finfo(dtype).eps)) ** (-1 / power)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_kernel(name, 0.9 * limit).fit(X)
    with pytest.warns(UserWarning, match="takes most points for equal"):
        as_kernel(name, 1.1 * limit).fit(X)


# ------------------------------------------------------------------ matrices from elsewhere


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_symmetry_is_judged_relative_to_the_largest_entry(scale, dtype, rng):
    A = rng.standard_normal((9, 3))
    K = ((A @ A.T) * scale).astype(dtype)
    largest, tolerance = np.abs(K).max(), np.sqrt(np.finfo(dtype).eps)
    kernel = as_kernel("precomputed").fit(K)
    slightly, clearly = K.copy(), K.copy()
    slightly[2, 7] += 0.3 * tolerance * largest
    clearly[2, 7] += 3 * tolerance * largest
    assert_array_equal(kernel.gram(slightly), K)  # the lower triangle is the one that counts
    with pytest.raises(ValueError, match=r"^the precomputed kernel matrix must be symmetric"):
        kernel.gram(clearly)


def test_symmetry_is_judged_over_all_blocks(monkeypatch):
    """The difference is in the first block of rows, the largest entry in the last, and the other way round."""
    real = base.row_blocks
    monkeypatch.setattr(base, "row_blocks", lambda n, size, *_: real(n, size, 2 * size))
    K = np.eye(6)
    K[5, 5] = 1e6
    K[0, 1] = 1e-4
    assert as_kernel("precomputed").fit(K).gram(K)[1, 0] == 0
    K = np.eye(6)
    K[0, 0], K[0, 1] = 1e6, 1.0
    with pytest.raises(ValueError, match=r"difference between K and its transpose is 1 \(largest entry 1e\+06\)"):
        as_kernel("precomputed").fit(K).gram(K)


def test_form_of_a_matrix_from_elsewhere(rng):
    A = rng.standard_normal((7, 7))
    K = np.asfortranarray(A @ A.T)
    K = (K + K.T) / 2
    kernel = as_kernel("precomputed").fit(K)
    for form in (K, np.asfortranarray(K), sparse.csr_array(K), sparse.csc_matrix(K), K.tolist()):
        out = kernel.gram(form)
        assert type(out) is np.ndarray
        assert out.flags.c_contiguous
        assert_array_equal(out, K)
    assert kernel.gram(K.astype(np.float32)).dtype == np.float32
    for whole in (np.eye(3, dtype=int), np.eye(3, dtype=bool)):
        assert kernel.gram(whole).dtype == np.float64
    for shape in ((7,), (7, 6), (7, 7, 1)):
        with pytest.raises(ValueError, match=r"^the precomputed kernel matrix must be square; got shape"):
            kernel.gram(np.ones(shape))
    new = rng.standard_normal((2, 7))
    assert_array_equal(kernel.cross(new, K), new)


def test_what_a_callable_may_return(rng):
    X = rng.standard_normal((4, 2))
    for value in (True, 1, np.uint8(1), 1.0, np.float32(1)):
        K = as_kernel(lambda X, Y, value=value: np.full((len(X), len(Y)), value)).fit(X).gram(X)
        assert K.dtype == np.float64
        assert_array_equal(K, 1)
    for value in (1j, "1", Fraction(1), None):
        with pytest.raises(ValueError, match=r"<lambda>.* must return real numbers"):
            as_kernel(lambda X, Y, value=value: np.full((len(X), len(Y)), value)).fit(X).gram(X)
    with pytest.raises(ValueError, match=r"^the matrix returned by the kernel .*<lambda>.* must be symmetric"):
        as_kernel(lambda X, Y: np.arange(16.0).reshape(4, 4)).fit(X).gram(X)


def test_errors_call_the_callable_by_its_name_or_else_by_its_text():
    def raising(X, Y, why):
        raise KeyError(why)

    X = np.eye(3)
    with pytest.raises(ValueError, match=r"^the kernel raising raised KeyError: 'inside'$"):
        as_kernel(raising, params={"why": "inside"}).fit(X).gram(X)
    with pytest.raises(ValueError, match=r"^the kernel functools\.partial\(.*raising.*why='inside'\) raised KeyError"):
        as_kernel(partial(raising, why="inside")).fit(X).gram(X)


def test_a_matrix_of_zeros_is_symmetric():
    assert_array_equal(as_kernel("precomputed").fit(np.eye(4)).gram(np.zeros((4, 4))), 0)


# ------------------------------------------------------------------ polynomial


@pytest.mark.parametrize("bad", [{"degree": 0}, {"degree": 2.0}, {"gamma": 0}, {"gamma": -1}, {"gamma": np.nan}])
def test_polynomials_that_are_no_kernel(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=f"^{name} of the polynomial kernel must be a positive"):
        as_kernel("polynomial", params=bad).fit(np.eye(3))
    for value in (np.inf, "1"):
        with pytest.raises(ValueError, match=r"^coef0 of the polynomial kernel must be a finite number"):
            as_kernel("polynomial", params={"coef0": value}).fit(np.eye(3))


@pytest.mark.parametrize("params", [{"degree": 1}, {"gamma": 1e-3}, {"gamma": 2.0}, {"coef0": 0}, {"coef0": -0.5}])
def test_polynomials_at_the_edge_of_what_is_allowed(params, rng):
    X = rng.standard_normal((5, 3))
    kernel = as_kernel("polynomial", params=params).fit(X)
    p = {"degree": 3, "gamma": 1.0, "coef0": 1.0, **params}
    expected = (p["gamma"] * X @ X.T + p["coef0"]) ** p["degree"]
    assert_allclose(kernel.gram(X), expected, rtol=1e-11, atol=1e-13)
    Z = kernel.features(X)
    if p["coef0"] < 0:
        assert Z is None
        assert kernel.n_features_out(3) is None
    else:
        assert_allclose(Z @ Z.T, expected, rtol=1e-11, atol=1e-13)
        assert kernel.n_features_out(3) == Z.shape[1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_overflow_of_a_polynomial_is_an_error_and_no_warning(dtype):
    X = np.full((3, 2), np.finfo(dtype).max ** 0.25, dtype=dtype)
    for compute in (lambda X, kernel: kernel.gram(X), lambda X, kernel: kernel.cross(X, X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=f"polynomial kernel .* too large for {np.dtype(dtype)}"):
                compute(X, as_kernel("polynomial").fit(X))


def test_no_monomials_of_sparse_points(rng):
    S = sparse.csr_array(rng.random((5, 4)))
    for name in ("quadratic", "cubic", "polynomial"):
        kernel = as_kernel(name).fit(S)
        assert kernel.features(S) is None
        assert kernel.n_features_out(4, is_sparse=True) is None
    for name in ("linear", "cosine", "correntropy"):
        kernel = as_kernel(name).fit(S)
        Z = kernel.features(S)
        assert sparse.issparse(Z) == (name != "correntropy")
        assert kernel.n_features_out(4, is_sparse=True) == Z.shape[1]
        Z = Z.toarray() if sparse.issparse(Z) else Z
        assert_allclose(Z @ Z.T, kernel.gram(S), rtol=0, atol=1e-6)


def test_map_of_the_cosine_is_a_plain_array_of_unit_rows(rng):
    X = rng.standard_normal((5, 3))
    Z = as_kernel("cosine").fit(X).features(X)
    assert type(Z) is np.ndarray
    assert_allclose(Z, X / np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-14)


def test_params_where_there_are_none(rng):
    with pytest.raises(ValueError, match=r"kernel='cosine' takes no kernel_params; got \['gamma'\]"):
        as_kernel("cosine", params={"gamma": 2}).fit(rng.random((4, 2)))
    with pytest.raises(ValueError, match=r"may hold \['coef0', 'degree', 'gamma'\]; got \['power'\]"):
        as_kernel("polynomial", params={"power": 2, "degree": 2}).fit(rng.random((4, 2)))
