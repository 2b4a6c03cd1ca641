"""Cases 48 to 59: parameters, and the state of an estimator before, between and after fits."""

from __future__ import annotations

import copy
import io
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import skops.io
from fault_data import KERNELISED, blobs, check_unfitted, fit, planes, said
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils._param_validation import InvalidParameterError

from method_data import ALL, GRAPH, LARGE, quiet
from subspaces import KTRR, SEC, TRR, SubspaceClustering
from subspaces.engine import landmark_run, predict, stages
from subspaces.engine import run as run_module
from subspaces.estimators import graph as graph_module
from subspaces.kernels import Polynomial, as_kernel

SAMPLED = ("EKTRR", "SSSC", "SLSR", "SLRR")


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", [3], np.nan])
def test_case_48_numbers_of_clusters(cls, value, seed):
    """48: InvalidParameterError that names the parameter, its range and the value; n + 1 is case 5."""
    model = cls(n_clusters=value)
    with pytest.raises(
        InvalidParameterError, match=r"'n_clusters' parameter .* must be an int in the range \[1, inf\)"
    ):
        model.fit(planes(seed)[0])
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize("cls", ALL)
def test_case_48_numpy_integers_and_booleans(cls, seed):
    """48: NumPy's integers are integers; True is 1."""
    X, _ = blobs(seed)
    assert adjusted_rand_score(fit(cls, X, np.int64(3)).labels_, fit(cls, X, np.uint8(3)).labels_) == 1
    assert not fit(cls, X, True).labels_.any()


def test_case_49_number_of_clusters_found(seed):
    """49: the front door chooses it; None leaves it to the modularity cut, and says so if it cannot."""
    X, _ = blobs(seed)
    with quiet():
        model = SubspaceClustering(kernel="rbf").fit(X)
    assert model.n_clusters_ == len(set(model.labels_)) == 3
    assert fit(KTRR, X, None, assign_labels="modularity").n_clusters_ >= 1
    with pytest.raises(ValueError, match='n_clusters=None needs assign_labels="modularity"'):
        KTRR(None).fit(X)


@pytest.mark.parametrize("scale", [1e200, 1e306])
def test_case_49_everything_chosen_at_any_scale(scale, seed):
    """49: what is chosen for the points does not depend on their unit."""
    X, _ = blobs(seed)
    with quiet():
        assert SubspaceClustering().fit(X * scale).n_clusters_ == SubspaceClustering().fit(X).n_clusters_


@pytest.mark.parametrize(
    "parameter", ["kernel", "solver", "graph", "assign_labels", "scaling", "out_of_sample", "init", "by"]
)
def test_case_50_unknown_names(parameter, seed):
    """50: the message lists the names that exist; the kernels' own function also suggests the nearest."""
    with pytest.raises(InvalidParameterError, match=rf"'{parameter}' parameter .* must be a str among .*'nonsense'"):
        KTRR(3, **{parameter: "nonsense"}).fit(planes(seed)[0])
    with pytest.raises(ValueError, match="Did you mean 'rbf'"):
        as_kernel("rbff").fit(planes(seed)[0])


@pytest.mark.parametrize("cls", KERNELISED)
def test_case_51_kernel_params(cls, seed):
    """51: honoured, and never changed; unknown, missing or senseless ones are named."""
    X, _ = blobs(seed)
    params = {"degree": 2, "gamma": 5.0}
    model = fit(cls, X, kernel="polynomial", kernel_params=params)
    assert params == {"degree": 2, "gamma": 5.0}
    assert model.kernel_ == Polynomial(degree=2, gamma=5.0, coef0=1.0)
    for bad in ({"degree": "a"}, {"degree": 0.5}, {"degree": 0}, {"gamma": np.nan}, {"gamma": 0}, {"coef0": np.inf}):
        (name,) = bad
        with pytest.raises(ValueError, match=f"{name} of the polynomial kernel must be"):
            cls(3, kernel="polynomial", kernel_params=bad).fit(X)
    with pytest.raises(ValueError, match="may hold"):
        cls(3, kernel="polynomial", kernel_params={"gama": 1}).fit(X)
    with pytest.raises(ValueError, match="takes no kernel_params"):
        cls(3, kernel="rbf", kernel_params={"gamma": 1}).fit(X)


def raises(A, B):
    raise ZeroDivisionError("of all things")


def wrong_shape(A, B):
    return np.ones(3)


def not_symmetric(A, B):
    return A @ B.T + np.arange(len(A))[:, None]


def not_finite(A, B):
    return np.full((len(A), len(B)), np.nan)


def complex_values(A, B):
    return (A @ B.T) * 1j


def text(A, B):
    return np.full((len(A), len(B)), "a")


def nothing(A, B):
    return None


@pytest.mark.parametrize("cls", KERNELISED)
@pytest.mark.parametrize("kernel", [raises, wrong_shape, not_symmetric, not_finite, complex_values, text, nothing])
def test_case_52_callable_kernels(cls, kernel, seed):
    """52: the error names the callable and chains what it raised; a negative kernel is case 31."""
    with quiet(), pytest.raises(ValueError, match=f"kernel {kernel.__name__}") as caught:
        cls(3, kernel=kernel).fit(planes(seed)[0])
    if kernel is raises:
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("cls", ALL)
def test_case_54_sizes_of_predict(cls, seed):
    """54: no rows, one row, all rows; in batches the same labels as at once."""
    X, _ = blobs(seed)
    model = fit(cls, X)
    new = X[::-1] * 1.01
    with quiet():
        expected = model.predict(new)
        assert model.predict(new[:0]).shape == (0,)
        np.testing.assert_array_equal(np.concatenate([model.predict(new[:1]), model.predict(new[1:])]), expected)
        if hasattr(model, "transform"):
            assert model.transform(new[:0]).shape[0] == 0


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_case_54_one_huge_point(cls, dtype, seed):
    """54: it gets a label, finite coordinates and a word with the count; the others what they get without it."""
    X, _ = blobs(seed)
    X = X.astype(dtype)
    model = fit(cls, X)
    huge = np.vstack([X[:3] + dtype(0.01), np.full((1, 4), np.finfo(dtype).max)])
    labels, texts = said(lambda: model.predict(huge))
    np.testing.assert_array_equal(labels[:3], model.predict(huge[:3]))
    assert labels[3] in model.labels_
    assert [text for text in texts if text.startswith("1 point exceeds every training point")]
    if hasattr(model, "transform"):
        coordinates, _ = said(lambda: model.transform(huge))
        np.testing.assert_allclose(coordinates[:3], model.transform(huge[:3]), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(coordinates, axis=1), 1, rtol=1e-4)


@pytest.mark.parametrize("parameters", [{}, {"out_of_sample": "residual"}, {"solver": "two_scale"}, {"sparse": True}])
def test_case_54_far_points_follow_the_nearest(parameters, seed):
    """54: where every value of the Gaussian kernel underflows, the nearest training point decides, and that is said."""
    X, _ = blobs(seed)
    container = sparse.csr_array if parameters.pop("sparse", False) else np.asarray
    model = fit(KTRR, container(X), **parameters)
    nearest = [int(np.linalg.norm(X - 100 * x, axis=1).argmin()) for x in X]
    with pytest.warns(UserWarning, match=f"^{len(X)} new points have no similarity to any training point"):
        labels = model.predict(container(100 * X))
    np.testing.assert_array_equal(labels, model.labels_[nearest])
    assert len(set(labels.tolist())) == 3
    with pytest.warns(UserWarning, match="have no similarity to any training point"):
        np.testing.assert_allclose(model.transform(container(100 * X)), model.embedding_[nearest])


@pytest.mark.parametrize("cls", [KTRR, TRR])
def test_case_54_memory_of_predict(cls, seed, monkeypatch):
    """54: blocks of bounded size: memory beyond the result does not grow with the number of new points."""
    monkeypatch.setattr(predict, "_PREDICT_BYTES", 2**20)
    X, _ = blobs(seed)
    model = fit(cls, X)

    def peak(n):
        new = np.tile(X, (n // len(X) + 1, 1))[:n] * 1.01
        tracemalloc.start()
        labels = model.predict(new)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found - 20 * labels.nbytes  # the labels, hash_rows and positions of all new points

    assert peak(8_000) < 2 * max(peak(1_000), 2**20) + 2**22


@pytest.mark.parametrize("cls", ALL)
def test_case_55_predict_on_the_training_points(cls, seed):
    """55: labels_; the sampled methods label landmarks by clustering and the rest by a classifier, SEC by a map."""
    X, _ = blobs(seed)
    model = fit(cls, X)
    with quiet():
        predicted = model.predict(X)
    if cls.__name__ in SAMPLED or cls is SEC:
        assert (predicted == model.labels_).mean() > 0.85
    else:
        np.testing.assert_array_equal(predicted, model.labels_)


@pytest.mark.parametrize("cls", ALL)
def test_case_56_copies_and_files(cls, seed):
    """56: clone, deepcopy, pickle, joblib and skops of unfitted and fitted estimators; no pickle is needed to read."""
    X, _ = planes(seed)
    unfitted = cls(n_clusters=3)
    assert pickle.loads(pickle.dumps(unfitted)).get_params().keys() == unfitted.get_params().keys()
    model = fit(cls, X)
    assert not hasattr(clone(model), "labels_")
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    assert all(name.startswith(("subspaces.", "scipy.", "numpy.", "sklearn.")) for name in untrusted), untrusted
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), joblib.load(buffer)]
    copies.append(skops.io.loads(data, trusted=untrusted))
    with quiet():
        expected = model.predict(X * 1.01)
        for other in copies:
            np.testing.assert_array_equal(other.labels_, model.labels_)
            np.testing.assert_array_equal(other.predict(X * 1.01), expected)


@pytest.mark.parametrize("cls", [KTRR, SEC])
def test_case_56_another_version(cls, seed, monkeypatch):
    """56: a file of another version is read with a warning that names both."""
    from subspaces.engine import validation

    data = pickle.dumps(fit(cls, planes(seed)[0]))
    monkeypatch.setattr(validation, "__version__", "99.0")
    with pytest.warns(UserWarning, match=r"saved by subspaces .* and is read by 99\.0"):
        pickle.loads(data)


@pytest.mark.parametrize("cls", ALL)
def test_case_57_fit_again(cls, seed):
    """57: on other points, of another width and type: nothing of the first fit is left."""
    X, _ = planes(seed)
    with quiet():
        again = cls(n_clusters=3).fit(X[:30, :5].astype(np.float32)).fit(X)
    once = fit(cls, X)
    assert set(vars(again)) == set(vars(once))
    np.testing.assert_array_equal(again.labels_, once.labels_)
    assert again.n_features_in_ == 9
    with pytest.warns(ConvergenceWarning, match="1 cluster found"):
        one = cls(n_clusters=3).fit(X).fit(np.ones((5, 2)))
    assert one.n_clusters_ == 1


@pytest.mark.parametrize("cls", ALL)
def test_case_58_fits_in_threads(cls, seed):
    """58: independent estimators may be fitted at once, from threads or joblib; one estimator by one thread."""
    X, _ = planes(seed)
    with quiet():
        expected = cls(n_clusters=3).fit(X).labels_
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(lambda _: cls(n_clusters=3).fit(X).labels_, range(3)))
    for labels in found:
        np.testing.assert_array_equal(labels, expected)


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


MOMENTS = {
    "scaling": (stages, "scaled"),
    "kernel": (stages, "see"),
    "coefficients": (stages, "represent"),
    "graph": (stages, "graph"),
    "components": (stages, "components"),
    "embedding": (stages, "embed"),
    "cut": (stages, "cut"),
    "copies": (run_module, "_with_copies"),
    "as given": (run_module, "as_given"),
    "new points": (graph_module, "by_training_points"),
}


@pytest.mark.parametrize(
    ("cls", "error"),
    [pytest.param(*cls.values, KeyboardInterrupt, id=cls.id) for cls in GRAPH]
    + [(KTRR, MemoryError), (KTRR, np.linalg.LinAlgError)],  # one place restores for all methods and errors
)
@pytest.mark.parametrize("moment", MOMENTS)
def test_case_59_interrupted_fit(cls, moment, error, seed, monkeypatch):
    """59: Ctrl-C (or any error) in any stage leaves an estimator as if it had never been fitted."""
    X, _ = planes(seed)
    X = np.concatenate([X, X[:1]])  # a copy
    fresh = set(vars(cls(n_clusters=3)))
    model = fit(cls, X) if moment in ("graph", "new points") else cls(n_clusters=3)

    def stop(*args, **kwargs):
        raise error

    monkeypatch.setattr(*MOMENTS[moment], stop)
    with quiet(), pytest.raises(error):
        model.fit(X)
    monkeypatch.undo()
    check_unfitted(model, fresh)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("cls", LARGE)
@pytest.mark.parametrize("moment", ["canonical_order", "run_points", "label_of_most_copies"])
def test_case_59_interrupted_fit_of_many_points(cls, moment, seed, monkeypatch):
    """59: the same for the methods for many points; the command line ends with 130 (cli/test_cli_process.py)."""
    X, _ = planes(seed)
    fresh = set(vars(cls(n_clusters=3)))
    model = fit(cls, X)
    monkeypatch.setattr(landmark_run, moment, interrupted)
    with quiet(), pytest.raises(KeyboardInterrupt):
        model.fit(X)
    monkeypatch.undo()
    check_unfitted(model, fresh)
    with pytest.raises(NotFittedError):
        model.predict(X)
