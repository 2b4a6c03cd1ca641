"""Kernels against the formulas as written in float64, the contract of every kernel, and faults of given kernels."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, sigmoid_kernel

from subspaces import AKK, EKTRR, KASP, KTRR, NystromSC
from subspaces.kernels import (
    KERNELS,
    RBF,
    Correntropy,
    Cosine,
    DistanceKernel,
    Exponential,
    FunctionKernel,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    as_kernel,
    base,
    correntropy,
    is_precomputed,
    profiles,
)
from subspaces.metrics import accuracy
from subspaces.utils import distances

DISTANCE_KERNELS = [name for name, kind in KERNELS.items() if kind.of_distances]
COMPUTED = [name for name in KERNELS if name != "precomputed"]
SIGMA = 1.7
MAPPED = ("linear", "cosine", "quadratic", "cubic", "polynomial", "correntropy")
both_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


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
        "sigmoid": lambda: sigmoid_kernel(X, Y, gamma=0.5, coef0=-0.2),
        "correntropy": lambda: np.exp(-((X[:, None] - Y[None]) ** 2) / sigma**2).mean(axis=2),
    }[name]()


def fitted(name: str, X: np.ndarray, sigma: float | str = SIGMA) -> Kernel:
    params = {"polynomial": {"degree": 4, "gamma": 0.5, "coef0": 2.0}, "sigmoid": {"gamma": 0.5, "coef0": -0.2}}
    return as_kernel(name, sigma, params.get(name)).fit(X)


def close(actual: np.ndarray, expected: np.ndarray, name: str) -> None:
    eps = np.finfo(actual.dtype).eps
    # d comes from d²: near zero it has half the digits; the cosine series is accurate to 1e-6 by promise
    floor = {"exponential": np.sqrt(eps), "inverse_distance": np.sqrt(eps), "correntropy": 1e-6}.get(name, 0)
    scale = max(1.0, float(np.abs(expected).max()))
    assert_allclose(actual, expected, rtol=0, atol=scale * max(floor, 200 * eps))


@both_dtypes
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
@pytest.mark.parametrize("n", [1, 2, 256, 257, 530])
def test_gram_over_several_tiles(name, n, rng):
    X = rng.standard_normal((n, 3))
    K = fitted(name, X).gram(X)
    assert_array_equal(K, K.T)
    close(K, reference(name, X, X), name)


@both_dtypes
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


@given(
    arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)), elements=st.integers(-8, 8).map(float)),
    st.sampled_from(sorted(DISTANCE_KERNELS)),
)
def test_gram_of_anything_small(X, name):
    """Duplicates, constant features, single samples: still symmetric, within [0, 1], 1 on the diagonal."""
    K = as_kernel(name, SIGMA).fit(X).gram(X)
    assert_array_equal(K, K.T)
    assert ((K >= 0) & (K <= 1)).all()
    assert (K.diagonal() == 1).all()
    close(K, reference(name, X, X), name)


@pytest.mark.parametrize("name", [name for name in COMPUTED if name != "correntropy"])
def test_groups_of_features_and_memory_order_do_not_matter(name, rng, monkeypatch):
    X = rng.standard_normal((8, 7)) + 2
    kernel = as_kernel(name, 3.0).fit(X)
    expected = kernel.cross(X, X)
    assert_allclose(kernel.gram(np.asfortranarray(X)), expected, rtol=1e-7)
    for n_columns in (1, 3, 8):
        monkeypatch.setattr(profiles, "_PRODUCT_COLUMNS", n_columns)
        assert_allclose(kernel.gram(X), expected, rtol=1e-7)


# ------------------------------------------------------------------ bandwidths and stability


def brute_force_bandwidth(X: np.ndarray, rule: str) -> float:
    pairs = pdist(X.astype(np.float64))
    square = squareform(pairs)
    return float({"rms": np.sqrt((square**2).mean()), "mean": square.mean(), "median": np.median(pairs)}[rule])


@both_dtypes
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


@pytest.mark.parametrize("rule", ["rms", "mean", "median"])
@pytest.mark.parametrize("kernel", ["rbf", "correntropy"])
def test_no_bandwidth_for_identical_rows(rule, kernel):
    X = np.full((6, 3), 0.5)
    with pytest.raises(ValueError, match="bandwidth"):
        as_kernel(kernel, rule).fit(X)
    assert_allclose(as_kernel(kernel, 2.0).fit(X).gram(X), 1, atol=1e-6)


@both_dtypes
@pytest.mark.parametrize(
    ("name", "power"), [("rbf", 2), ("inverse_square", 2), ("exponential", 1), ("inverse_distance", 1)]
)
def test_warns_of_a_bandwidth_at_which_all_values_are_one(name, power, dtype, rng):
    """Two samples at distance 1: 1 − k is about σ^−power, compared with a thousand times the rounding of 1."""
    X = np.array([[0.0], [1.0]], dtype=dtype)
    limit = (1e3 * float(np.finfo(dtype).eps)) ** (-1 / power)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_kernel(name, 0.9 * limit).fit(X)
    with pytest.warns(UserWarning, match="takes most points for equal"):
        as_kernel(name, 1.1 * limit).fit(X)


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


# ------------------------------------------------------------------ feature maps


@both_dtypes
@pytest.mark.parametrize("name", MAPPED)
def test_features_reproduce_the_kernel(name, dtype, rng):
    X = rng.standard_normal((30, 5)).astype(dtype)
    kernel = fitted(name, X)
    Z = kernel.features(X)
    assert Z.dtype == dtype
    assert Z.shape == (30, kernel.n_features_out(5))
    close(Z @ Z.T, reference(name, X, X), name)


def test_quadratic_is_the_paper_s_two_maps(rng):
    """Check both maps of eq. 3.23."""
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


@pytest.mark.parametrize("bad", [{"degree": 0}, {"degree": 2.0}, {"gamma": 0}, {"gamma": -1}, {"gamma": np.nan}])
def test_invalid_polynomials_are_refused(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=f"^{name} of the polynomial kernel must be a positive"):
        as_kernel("polynomial", params=bad).fit(np.eye(3))
    for value, kernel in ((np.inf, "polynomial"), ("1", "polynomial"), (np.nan, "sigmoid")):
        with pytest.raises(ValueError, match=rf"^coef0 of the {kernel} kernel must be a finite number"):
            as_kernel(kernel, params={"coef0": value}).fit(np.eye(3))


@both_dtypes
def test_overflow_of_a_polynomial_is_an_error_and_no_warning(dtype):
    X = np.full((3, 2), np.finfo(dtype).max ** 0.25, dtype=dtype)
    for compute in (lambda X, kernel: kernel.gram(X), lambda X, kernel: kernel.cross(X, X)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=f"polynomial kernel .* too large for {np.dtype(dtype)}"):
                compute(X, as_kernel("polynomial").fit(X))


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


def test_correntropy_of_new_samples_outside_the_range(rng):
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


# ------------------------------------------------------------------ the contract, also of a user's own kernels


@dataclass(frozen=True)
class Student(DistanceKernel):
    """(1 + d²/σ²)^−nu: for nu = 1 the kernel "inverse_square"."""

    nu: float = 1.0

    def profile(self, block):
        block /= self.sigma**2
        block += 1
        np.power(block, -self.nu, out=block)


class Twice(DistanceKernel):
    """Class without a decorator and with 2 on the diagonal."""

    def profile(self, block):
        block *= -1 / self.sigma**2
        np.exp(block, out=block)
        block *= 2


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(−‖x − y‖₁/σ): a function neither of d nor of xᵀy."""

    bandwidth: float | str | None = None

    def gram(self, X):
        return self.cross(X, X)

    def cross(self, X, Y):
        return laplacian_kernel(X, Y, gamma=1 / self.sigma).astype(X.dtype)


def product(X, Y, shift=1.0):
    return X @ Y.T + shift


ALL = [
    *(KERNELS[name]() for name in COMPUTED),
    Polynomial(2, 0.5, 0.0),
    Correntropy(0.7),
    RBF("median"),
    FunctionKernel(product, {"shift": 2.0}),
    Student(nu=0.5),
    Twice(),
    Laplacian(),
]
every_kernel = pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.name)


@every_kernel
def test_contract(kernel, rng):
    X = rng.standard_normal((90, 4))
    before = repr(kernel), dict(vars(kernel))
    fitted = kernel.fit(X)
    assert (repr(kernel), dict(vars(kernel))) == before
    assert isinstance(fitted.bandwidth, float) if kernel.has_bandwidth else fitted.bandwidth is None
    again = pickle.loads(pickle.dumps(fitted)).fit(X)
    assert again == fitted
    assert hash(again) == hash(fitted)
    K = fitted.gram(X)
    assert_array_equal(again.gram(X), K)
    assert_allclose(fitted.cross(X[:7], X[30:]), K[:7, 30:], rtol=1e-4, atol=2e-7)
    assert_allclose(fitted.diagonal(X), K.diagonal(), rtol=1e-5)
    with pytest.raises(FrozenInstanceError):
        fitted.bandwidth = 1.0
    if kernel.has_bandwidth and not isinstance(kernel.bandwidth, float):
        with pytest.raises(ValueError, match=r"fit\(X\)"):
            kernel.gram(X)
    scaled = fitted.scaled(-3)
    assert scaled is fitted if not kernel.has_bandwidth else scaled.bandwidth == 8 * fitted.bandwidth
    if not kernel.sees_units:  # the same values up to a common factor
        far = scaled.fit(8 * X).gram(8 * X)
        assert_allclose(far / far[0, 0], K / K[0, 0], rtol=1e-14, atol=1e-14)


@every_kernel
@both_dtypes
@pytest.mark.parametrize("n", [90, 89])
def test_half_of_the_gram_matrix_is_the_same(kernel, dtype, n, rng):
    X = rng.standard_normal((n, 4)).astype(dtype) + 3
    kernel = kernel.fit(X)
    K, half = kernel.gram(X), kernel.packed_gram(X)
    assert half.dtype == dtype
    for _ in range(2):  # also after a refill
        assert_allclose(half.whole(), K, rtol=1e-10 if dtype == np.float64 else 1e-3)
        half.fill(half)
    in_a_whole_one = half.half.base is not None and half.half.base.size == n**2
    assert kernel.has_packed_gram() != in_a_whole_one
    assert not kernel.has_packed_gram(is_sparse=True)


def test_own_gram_matrix_is_the_one_that_is_packed(rng):
    class Shifted(RBF):
        def gram(self, X):
            return super().gram(X) + 1

    X = rng.standard_normal((9, 4))
    kernel = Shifted().fit(X)
    assert not kernel.has_packed_gram()
    assert_array_equal(kernel.packed_gram(X).whole(), kernel.gram(X))


def test_a_kernel_must_define_its_computation():
    class Nothing(Kernel):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Nothing()
    with pytest.raises(NotImplementedError, match="'laplacian' is no function of a distance"):
        Laplacian().profile(np.zeros(2))
    assert [name for name, kind in KERNELS.items() if kind.sees_units] == ["polynomial", "sigmoid"]


# ------------------------------------------------------------------ as_kernel


def test_names_become_objects():
    assert as_kernel() == RBF("rms")
    assert as_kernel("exponential", 2.0) == Exponential(2.0)
    assert as_kernel("cosine", 2.0) == Cosine()
    assert as_kernel("polynomial", params={"degree": 2}) == Polynomial(2, 1.0, 1.0)
    assert as_kernel("polynomial") == Polynomial(3, 1.0, 1.0)
    assert as_kernel(product, params={"shift": 3.0}) == FunctionKernel(product, {"shift": 3.0})
    assert is_precomputed("precomputed")
    assert is_precomputed(Precomputed())
    assert not any(is_precomputed(kernel) for kernel in (None, "rbf", product, RBF()))


def test_an_object_keeps_its_own_bandwidth():
    own = RBF(2.0)
    assert as_kernel(own) is own
    assert as_kernel(own, 2.0) is own
    assert as_kernel(Linear(), 3.0) == Linear()
    assert as_kernel(Student(nu=2.0), 3.0) == Student(3.0, 2.0)
    with pytest.raises(ValueError, match=r"bandwidth=3.0 contradicts kernel=RBF\(bandwidth=2.0\)"):
        as_kernel(own, 3.0)
    with pytest.raises(ValueError, match=r"RBF\(bandwidth=2.0\) brings its own parameters"):
        as_kernel(own, params={"gamma": 1})


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.nan, np.inf, "medain"])
def test_bandwidth_must_be_a_rule_or_positive(bandwidth):
    for make in (RBF, Correntropy, Student, Laplacian, lambda bandwidth: as_kernel("rbf", bandwidth)):
        with pytest.raises(ValueError, match="bandwidth"):
            make(bandwidth)


def test_faults_of_names_and_params():
    for wrong, right in (("rbff", "rbf"), ("quadratc", "quadratic"), ("Cosine", "cosine")):
        with pytest.raises(ValueError, match=f"kernel='{wrong}'.*Did you mean '{right}'"):
            as_kernel(wrong)
    for unknown in (3, None, ["rbf"]):
        with pytest.raises(ValueError, match="is not known; choose one of"):
            as_kernel(unknown)
    with pytest.raises(ValueError, match=r"kernel=RBF is a class; pass an object of it: kernel=RBF\(\)"):
        as_kernel(RBF)
    with pytest.raises(ValueError, match=r"kernel='cosine' takes no kernel_params; got \['gamma'\]"):
        as_kernel("cosine", params={"gamma": 2})
    with pytest.raises(ValueError, match=r"may hold \['coef0', 'degree', 'gamma'\]; got \['power'\]"):
        as_kernel("polynomial", params={"power": 2, "degree": 2})
    with pytest.raises(ValueError, match=r"sigmoid kernel may hold \['coef0', 'gamma'\]; got \['degree'\]"):
        as_kernel("sigmoid", params={"degree": 2})


# ------------------------------------------------------------------ callables and given matrices


@pytest.mark.parametrize(
    "value",
    [np.ones((3, 3)), None, np.arange(64.0).reshape(8, 8), np.full((8, 8), np.nan), np.full((8, 8), 1j)],
    ids=["shape", "nothing", "lopsided", "NaN", "imaginary"],
)
def test_callable_faults_name_the_callable(value):
    def faulty(X, Y):
        return value

    with pytest.raises(ValueError, match="faulty"):
        as_kernel(faulty).fit(np.eye(8)).gram(np.eye(8))


def test_callable_faults_say_what_is_wrong():
    def wrong_shape(X, Y):
        return np.ones((3, 3))

    def raising(X, Y):
        raise KeyError("inside")

    with pytest.raises(ValueError, match="raising") as caught:
        as_kernel(raising).fit(np.eye(8)).gram(np.eye(8))
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r"wrong_shape.*\(2, 8\).*\(3, 3\)"):
        as_kernel(wrong_shape).fit(np.eye(8)).cross(np.eye(8)[:2], np.eye(8))


@pytest.fixture
def blocks_of_three_rows(monkeypatch):
    real = base.row_blocks
    monkeypatch.setattr(base, "row_blocks", lambda n, size, *_: real(n, size, 3 * size))


@pytest.mark.usefixtures("blocks_of_three_rows")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_given_matrix_must_be_finite(value):
    K = np.eye(10)
    K[7, 2] = K[2, 7] = value
    with pytest.raises(ValueError, match="NaN or infinity"):
        as_kernel("precomputed").fit(K).gram(K)


@pytest.mark.usefixtures("blocks_of_three_rows")
@both_dtypes
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


# ------------------------------------------------------------------ in estimators


@pytest.fixture(scope="module")
def rings():
    angle = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    return np.vstack([ring, 3 * ring]), np.repeat([0, 1], 150)


@pytest.mark.parametrize("solver", ["dense", "two_scale"])
def test_an_own_kernel_of_distances_in_both_solvers(solver, rings):
    X, y = rings
    model = KTRR(2, kernel=Student(), solver=solver, bandwidth=1.5).fit(X)
    named = KTRR(2, kernel="inverse_square", solver=solver, bandwidth=1.5).fit(X)
    assert model.kernel_ == Student(1.5)
    assert model.solver_ == solver
    assert_allclose(model.coefficients_.toarray(), named.coefficients_.toarray(), rtol=1e-6, atol=1e-9)
    assert accuracy(y, model.labels_) == 1
    assert_array_equal(model.predict(1.01 * X), model.labels_)


@pytest.mark.parametrize("out_of_sample", ["neighbors", "residual"])
def test_any_own_kernel_in_the_dense_solver_and_for_new_samples(out_of_sample, rings):
    X, y = rings
    model = KTRR(2, kernel=Laplacian(), out_of_sample=out_of_sample).fit(X)
    assert model.solver_ == "dense"
    assert model.kernel_.bandwidth == RBF().fit(X).bandwidth
    assert accuracy(y, model.labels_) == 1
    assert_array_equal(model.predict(1.01 * X), model.labels_)
    with pytest.raises(ValueError, match='solver="two_scale" needs a kernel of distances'):
        KTRR(2, kernel=Laplacian(), solver="two_scale").fit(X)


@pytest.mark.parametrize("name", list(KERNELS))
def test_an_object_does_what_its_name_does(name, rings):
    X = rings[0] @ rings[0].T if name == "precomputed" else rings[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_name, by_object = KTRR(2, kernel=name).fit(X), clone(KTRR(2, kernel=KERNELS[name]())).fit(X)
    assert_array_equal(by_object.labels_, by_name.labels_)
    assert abs(by_object.coefficients_ - by_name.coefficients_).max() == 0
    assert by_object.kernel_ == by_name.kernel_
    assert_array_equal(by_object.predict(X[:5]), by_name.predict(X[:5]))


def test_extreme_units_move_the_bandwidth_of_an_object(rings):
    X, _ = rings
    tiny, plain = 2.0**-700, KTRR(2, kernel=RBF(1.5)).fit(X)
    model = KTRR(2, kernel=RBF(1.5 * tiny)).fit(X * tiny)
    assert_array_equal(model.labels_, plain.labels_)
    assert abs(model.coefficients_ - plain.coefficients_).max() == 0


@pytest.mark.parametrize("method", [KASP, NystromSC, AKK, EKTRR])
def test_objects_in_the_methods_for_many_samples(method, rings):
    X = rings[0]
    for kernel in (Student(), Laplacian()):
        assert len(method(2, kernel=kernel, n_landmarks=60).fit(X).labels_) == 300
    by_name, by_object = (method(2, kernel=kernel, n_landmarks=60).fit(X) for kernel in ("exponential", Exponential()))
    assert_array_equal(by_object.labels_, by_name.labels_)


@pytest.mark.parametrize(("method", "kernel"), [(KASP, Linear()), (NystromSC, Polynomial()), (AKK, Correntropy())])
def test_kernels_that_a_method_does_not_take_by_name_it_does_not_take_as_objects(method, kernel, rings):
    with pytest.raises(ValueError, match="'inverse_distance'"):
        method(2, kernel=kernel, n_landmarks=60).fit(rings[0])
