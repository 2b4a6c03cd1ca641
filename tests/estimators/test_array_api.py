"""Tensors in, the same results out: scikit-learn's ``array_api_dispatch``.

Needs ``SCIPY_ARRAY_API=1`` in the environment before SciPy is imported, which ``.ci/run`` sets for this file.
"""

import os
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_digits

from subspaces import KTRR, LSC, LSR1, LSR2, SSC, TRR
from subspaces.kernels import DistanceKernel
from subspaces.representation.ridge import IndefiniteKernelWarning

pytestmark = pytest.mark.skipif(
    os.environ.get("SCIPY_ARRAY_API") != "1", reason="SCIPY_ARRAY_API=1 is not set: scikit-learn dispatches nothing"
)


class Logistic(DistanceKernel):
    """A kernel that only knows NumPy."""

    def profile(self, block):
        block /= self.sigma**2
        np.cosh(np.sqrt(block, out=block), out=block)
        np.reciprocal(block, out=block)


@pytest.fixture(params=["torch", "array_api_strict"])
def there(request):
    """Function that brings an array to another library, one of them with a device that NumPy cannot read."""
    xp = pytest.importorskip(request.param)
    if request.param == "torch":
        xp.set_num_threads(1)
    device = xp.Device("device1") if request.param == "array_api_strict" else "cpu"
    return lambda values: xp.asarray(values, device=device)


@pytest.fixture(autouse=True)
def _dispatched():
    if os.environ.get("SCIPY_ARRAY_API") != "1":
        yield
        return
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:200] / 16


def home(values):
    if hasattr(values, "numpy"):
        return values.numpy()
    xp = values.__array_namespace__()
    return np.asarray(xp.asarray(values, device=xp.Device("CPU_DEVICE")))


def assert_same_fit(found, expected):
    for name in ("coefficients_", "affinity_matrix_"):
        ours, numpys = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(ours.indptr, numpys.indptr)
        np.testing.assert_array_equal(ours.indices, numpys.indices)
        np.testing.assert_allclose(ours.data, numpys.data, rtol=1e-10, atol=1e-10 * abs(numpys.data).max())
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.penalty_ == pytest.approx(expected.penalty_, rel=1e-13)
    assert expected.condition_ / 2 < found.condition_ < 10 * expected.condition_
    assert found.residual_ < 1e-10


@pytest.mark.parametrize(
    "settings",
    [
        *({"kernel": name} for name in ("rbf", "exponential", "inverse_square", "inverse_distance", Logistic())),
        *({"kernel": name} for name in ("linear", "cosine", "quadratic", "cubic", "polynomial", "correntropy")),
        {"affine": True, "kernel": "rbf"},
        {"affine": True, "kernel": "cubic"},
        {"reg": 1e-3},
        {"graph": "column"},
        {"graph": "column", "by": "value"},
        {"graph": "mass"},
        {"n_nonzero": None},
        {"scaling": "unit", "assign_labels": "modularity"},
    ],
    ids=str,
)
def test_results_are_those_of_numpy(there, digits, settings):
    model = KTRR(10, solver="dense", **settings)
    points = there(digits)
    labels = model.fit_predict(points)
    assert type(labels) is type(points)
    assert labels.device == points.device
    np.testing.assert_array_equal(home(labels), model.labels_)
    assert_same_fit(model, KTRR(10, solver="dense", **settings).fit(digits))


def test_what_methods_return_lives_where_the_points_do(there, digits):
    model, expected = KTRR(10).fit(there(digits[:150])), KTRR(10).fit(digits[:150])
    new = there(digits[150:])
    for name in ("predict", "transform", "predict_membership"):
        found = getattr(model, name)(new)
        assert type(found) is type(new)
        np.testing.assert_allclose(home(found), getattr(expected, name)(digits[150:]), atol=1e-8)
    np.testing.assert_allclose(home(model.fit_transform(new)), KTRR(10).fit_transform(digits[150:]), atol=1e-8)
    assert isinstance(model.labels_, np.ndarray)  # what is kept opens anywhere
    assert isinstance(pickle.loads(pickle.dumps(model)).predict(digits[:2]), np.ndarray)


@pytest.mark.parametrize(
    "method", [TRR(10, solver="dense"), TRR(10), LSR1(10, solver="dense"), LSR2(10), SSC(10)], ids=repr
)
def test_every_method_takes_them(there, digits, method):
    labels = method.fit_predict(there(digits[:100]))
    np.testing.assert_array_equal(home(labels), method.fit_predict(digits[:100]))


def test_landmarks(there, digits):
    np.testing.assert_array_equal(
        home(LSC(10, n_landmarks=50).fit_predict(there(digits))), LSC(10, n_landmarks=50).fit_predict(digits)
    )


def test_many_ties_are_decided_as_by_numpy(there):
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    X = np.vstack([ring, 3 * ring, np.tile(ring[:1], (12, 1))])  # equal distances, and more copies than are kept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = KTRR(2, reg=0.1).fit(there(X)), KTRR(2, reg=0.1).fit(X)
    assert_same_fit(found, expected)


def test_a_given_matrix_and_one_that_is_indefinite(there, digits):
    K = digits[:80] @ digits[:80].T
    assert_same_fit(KTRR(3, kernel="precomputed").fit(there(K)), KTRR(3, kernel="precomputed").fit(K))
    K = np.where(np.eye(80) > 0, K, -K)
    with pytest.warns(IndefiniteKernelWarning, match="not positive definite"):
        found = KTRR(3, kernel="precomputed", reg=1e-3).fit(there(K))
    with pytest.warns(IndefiniteKernelWarning, match="not positive definite"):
        assert_same_fit(found, KTRR(3, kernel="precomputed", reg=1e-3).fit(K))


def test_kernels_of_extreme_size(there, digits):
    X = digits[:80] * 2.0**30
    found, expected = (KTRR(3, kernel="quadratic", solver="dense").fit(points) for points in (there(X), X))
    assert_same_fit(found, expected)


def test_single_precision(there, digits):
    X = digits.astype(np.float32)
    found, expected = KTRR(10).fit(there(X)), KTRR(10).fit(X)
    assert found.affinity_matrix_.dtype == np.float64  # as everywhere
    assert_same_fit(found, expected)


def test_not_a_number_is_named(there):
    with pytest.raises(ValueError, match="row 1, column 0"):
        KTRR(2).fit(there(np.array([[0.0, 1], [np.nan, 1], [1, 1]])))


def test_without_the_switch_a_tensor_is_an_array(digits):
    torch = pytest.importorskip("torch")
    with sklearn.config_context(array_api_dispatch=False):
        assert isinstance(KTRR(10).fit_predict(torch.asarray(digits)), np.ndarray)
