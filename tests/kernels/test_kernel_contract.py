"""What every kernel promises, the library's own and a user's."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel

from subspaces import AKK, EKTRR, KASP, KTRR, NystromSC, SubspaceClustering
from subspaces.kernels import (
    KERNELS,
    RBF,
    Correntropy,
    Cosine,
    DistanceKernel,
    DotKernel,
    Exponential,
    FunctionKernel,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    as_kernel,
    is_precomputed,
)
from subspaces.metrics import accuracy


@dataclass(frozen=True)
class Student(DistanceKernel):
    """(1 + d²/σ²)^−nu: for nu = 1 the kernel "inverse_square"."""

    nu: float = 1.0

    def profile(self, block):
        block /= self.sigma**2
        block += 1
        np.power(block, -self.nu, out=block)


class Twice(DistanceKernel):
    """A class without a decorator and with 2 on the diagonal."""

    def profile(self, block):
        block *= -1 / self.sigma**2
        np.exp(block, out=block)
        block *= 2


@dataclass(frozen=True)
class Sigmoid(DotKernel):
    shift: float = 0.5

    def profile(self, block):
        np.exp(block * 0.1 + self.shift, out=block)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(−‖x − y‖₁/σ), written out: neither of d nor of xᵀy."""

    bandwidth: float | str | None = None

    def gram(self, X):
        return self.cross(X, X)

    def cross(self, X, Y):
        return laplacian_kernel(X, Y, gamma=1 / self.sigma).astype(X.dtype)


def product(X, Y, shift=1.0):
    return X @ Y.T + shift


OWN = [Student(nu=0.5), Twice(), Sigmoid(), Laplacian()]
ALL = [
    *(kind() for name, kind in KERNELS.items() if name != "precomputed"),
    Polynomial(2, 0.5, 0.0),
    Correntropy(0.7),
    RBF("median"),
    FunctionKernel(product, {"shift": 2.0}),
    *OWN,
]
every_kernel = pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.name)


@pytest.fixture
def X(rng):
    return rng.standard_normal((90, 4))


@every_kernel
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gram_cross_and_diagonal_agree(kernel, dtype, X):
    X = X.astype(dtype)
    kernel = kernel.fit(X)
    K = kernel.gram(X)
    atol = 2e-7 if dtype == np.float64 else 2e-3  # d from d² has half the digits
    assert K.dtype == dtype
    assert_array_equal(K, K.T)
    assert_allclose(kernel.cross(X, X), K, rtol=1e-4, atol=atol)
    assert_allclose(kernel.cross(X[:7], X[30:]), K[:7, 30:], rtol=1e-4, atol=atol)
    assert kernel.diagonal(X).dtype == dtype
    assert_allclose(kernel.diagonal(X), K.diagonal(), rtol=1e-5)


@every_kernel
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [90, 89])
def test_half_of_the_gram_matrix_is_the_same(kernel, dtype, n, X):
    X = X[:n].astype(dtype) + 3
    kernel = kernel.fit(X)
    K, half = kernel.gram(X), kernel.packed_gram(X)
    assert half.dtype == dtype
    for _ in range(2):  # also what is made again
        assert_allclose(half.whole(), K, rtol=1e-10 if dtype == np.float64 else 1e-3)
        half.refill()
    in_a_whole_one = half.half.base is not None and half.half.base.size == n**2
    assert kernel.has_packed_gram() != in_a_whole_one
    assert not kernel.has_packed_gram(is_sparse=True)


def test_a_gram_matrix_of_ones_own_is_the_one_that_is_packed(X):
    class Shifted(RBF):
        def gram(self, X):
            return super().gram(X) + 1

    kernel = Shifted().fit(X)
    assert not kernel.has_packed_gram()
    assert_array_equal(kernel.packed_gram(X).whole(), kernel.gram(X))


def test_half_of_the_gram_matrix_of_sparse_points(X):
    X[X < 0.5] = 0
    for kernel in (RBF(), Linear(), Polynomial()):
        kernel = kernel.fit(X)
        assert_allclose(kernel.packed_gram(sparse.csr_array(X)).whole(), kernel.gram(X), rtol=1e-10)


@every_kernel
def test_features_reproduce_the_gram_matrix(kernel, X):
    kernel = kernel.fit(X)
    Z, size = kernel.features(X), kernel.n_features_out(4)
    if Z is None:
        assert size is None
    else:
        assert Z.shape == (90, size)
        assert_allclose(Z @ Z.T, kernel.gram(X), rtol=1e-10, atol=1e-10)


@every_kernel
def test_fit_changes_nothing_and_is_done_once(kernel, X):
    before = repr(kernel), dict(vars(kernel))
    fitted = kernel.fit(X)
    assert (repr(kernel), dict(vars(kernel))) == before
    assert isinstance(fitted.bandwidth, float) if kernel.has_bandwidth else fitted.bandwidth is None
    assert type(fitted) is type(kernel)
    again = fitted.fit(X)
    assert again == fitted
    assert hash(again) == hash(fitted)
    assert_array_equal(again.gram(X), fitted.gram(X))
    with pytest.raises(FrozenInstanceError):
        fitted.bandwidth = 1.0


@every_kernel
def test_pickled_kernels_are_the_same(kernel, X):
    for some in (kernel, kernel.fit(X)):
        copy = pickle.loads(pickle.dumps(some))
        assert copy == some
        assert_array_equal(copy.fit(X).gram(X), some.fit(X).gram(X))


@every_kernel
def test_points_times_a_power_of_two(kernel, X):
    """What does not see units gives the same values, to the last bit, up to a common factor."""
    fixed = kernel.fit(X)
    scaled = fixed.scaled(-3)
    if not kernel.has_bandwidth:
        assert scaled is fixed
    else:
        assert scaled.bandwidth == 8 * fixed.bandwidth
        assert kernel.scaled(5).bandwidth == kernel.bandwidth or kernel.bandwidth == 0.7
    if not kernel.sees_units:
        K, far = fixed.gram(X), scaled.fit(8 * X).gram(8 * X)
        assert_allclose(far / far[0, 0], K / K[0, 0], rtol=1e-14, atol=1e-14)


@every_kernel
def test_unfitted_kernels_say_so(kernel, X):
    if kernel.has_bandwidth and not isinstance(kernel.bandwidth, float):
        with pytest.raises(ValueError, match=r"fit\(X\)"):
            kernel.gram(X)


def test_names_and_flags():
    assert [kernel.name for kernel in OWN] == ["student", "twice", "sigmoid", "laplacian"]
    assert all(kind.name == name for name, kind in KERNELS.items())
    assert [name for name, kind in KERNELS.items() if kind.of_distances] == list(KERNELS)[:4]
    assert [name for name, kind in KERNELS.items() if kind.sees_units] == ["polynomial"]
    assert [kernel.of_distances for kernel in OWN] == [True, True, False, False]
    assert [kernel.sees_units for kernel in OWN] == [False, False, True, True]
    assert [repr(kernel) for kernel in (Linear(), RBF(2.0), Polynomial(2))] == [
        "Linear()",
        "RBF(bandwidth=2.0)",
        "Polynomial(degree=2, gamma=1.0, coef0=1.0)",
    ]


def test_a_kernel_must_say_how_it_is_computed():
    class Nothing(Kernel):
        pass

    class NoProfile(DistanceKernel):
        pass

    for unfinished in (Nothing, NoProfile):
        with pytest.raises(TypeError, match="abstract"):
            unfinished()
    with pytest.raises(NotImplementedError, match="'laplacian' is no function of a distance"):
        Laplacian().profile(np.zeros(2))


# ------------------------------------------------------------------ as_kernel


def test_names_become_objects():
    assert as_kernel() == RBF("rms")
    assert as_kernel("exponential", 2.0) == Exponential(2.0)
    assert as_kernel("cosine", 2.0) == Cosine()
    assert as_kernel("polynomial", params={"degree": 2}) == Polynomial(2)
    assert as_kernel(product, params={"shift": 3.0}) == FunctionKernel(product, {"shift": 3.0})


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


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.nan, "medain"])
def test_what_needs_no_data_is_checked_without(bandwidth):
    for make in (RBF, Correntropy, Student, Laplacian, lambda bandwidth: as_kernel("rbf", bandwidth)):
        with pytest.raises(ValueError, match="bandwidth"):
            make(bandwidth)
    with pytest.raises(ValueError, match=r"kernel=RBF is a class; pass an object of it: kernel=RBF\(\)"):
        as_kernel(RBF)
    for unknown in ("rbff", 3, None, ["rbf"]):
        with pytest.raises(ValueError, match="is not known; choose one of"):
            as_kernel(unknown)


def test_a_matrix_is_recognised_by_name_and_as_an_object():
    assert is_precomputed("precomputed")
    assert is_precomputed(Precomputed())
    assert not any(is_precomputed(kernel) for kernel in (None, "rbf", product, RBF()))


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


def test_a_diagonal_other_than_1_in_two_scales(rings):
    """Twice the kernel and twice λ: the same coefficients."""
    X, _ = rings
    twice, once = (KTRR(2, kernel=kernel, solver="two_scale").fit(X) for kernel in (Twice(), RBF()))
    assert_allclose(twice.penalty_, 2 * once.penalty_)
    assert_allclose(twice.coefficients_.toarray(), once.coefficients_.toarray(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("out_of_sample", ["neighbors", "residual"])
def test_any_own_kernel_in_the_dense_solver_and_for_new_points(out_of_sample, rings):
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


def test_objects_where_parameters_are_chosen(rings):
    X, y = rings
    model = SubspaceClustering(2, kernel=Student(nu=2.0)).fit(X)
    assert accuracy(y, model.labels_) == 1
    assert model.kernel == Student(nu=2.0)
    assert {trial.kernel for trial in model.selection_.trials} == {"student"}


@pytest.mark.parametrize("method", [KASP, NystromSC, AKK, EKTRR])
def test_objects_in_the_methods_for_many_points(method, rings):
    X = rings[0]
    for kernel in (Student(), Laplacian()):
        assert len(method(2, kernel=kernel, n_landmarks=60).fit(X).labels_) == 300
    by_name, by_object = (method(2, kernel=kernel, n_landmarks=60).fit(X) for kernel in ("exponential", Exponential()))
    assert_array_equal(by_object.labels_, by_name.labels_)


@pytest.mark.parametrize(("method", "kernel"), [(KASP, Linear()), (NystromSC, Polynomial()), (AKK, Correntropy())])
def test_kernels_that_a_method_does_not_take_by_name_it_does_not_take_as_objects(method, kernel, rings):
    with pytest.raises(ValueError, match="'inverse_distance'"):
        method(2, kernel=kernel, n_landmarks=60).fit(rings[0])
