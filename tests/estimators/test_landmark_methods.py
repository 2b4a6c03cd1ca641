"""Contract of KASP, NystromSC, SEC, AKK, LSC and USPEC: scikit-learn's checks, sizes at the edge, precision, seeds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from subspaces import AKK, EKTRR, KASP, LSC, SEC, SLSR, USPEC, NystromSC

ALL = [pytest.param(cls, id=cls.__name__) for cls in (KASP, NystromSC, SEC, AKK, LSC, USPEC)]
each = pytest.mark.parametrize("cls", ALL)


@pytest.fixture
def data(rng):
    y = np.arange(900) % 3
    return 8.0 * np.eye(3, 6)[y] + rng.normal(size=(900, 6)), y


@parametrize_with_checks(
    [
        *(cls(n_clusters=3) for cls in (KASP, NystromSC, SEC, AKK, LSC, USPEC)),
        LSC(n_clusters=3, landmarks="random"),
        NystromSC(n_clusters=3, n_landmarks=10),
        USPEC(n_clusters=3, n_landmarks=10, scaling="standard"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@each
@pytest.mark.parametrize("n_landmarks", [60, 5000])
def test_groups_and_new_points(cls, data, n_landmarks):
    X, y = data
    model = cls(3, n_landmarks=n_landmarks).fit(X[:600])
    assert adjusted_rand_score(y[:600], model.labels_) > 0.95
    assert adjusted_rand_score(y[600:], model.predict(X[600:])) > 0.95
    assert (model.predict(X[:600]) == model.labels_).mean() > (0.95 if cls is SEC else 0.999)
    assert model.n_clusters_ == 3
    assert all(seconds >= 0 for seconds in model.timings_.values())


@pytest.mark.parametrize("cls", [KASP, NystromSC, SEC, AKK, LSC, USPEC, EKTRR, SLSR])
def test_landmarks_are_coordinates_and_their_indices_row_numbers(cls, data):
    X, _ = data
    model = cls(3, n_landmarks=50, scaling=None).fit(X)
    if cls in (SEC, EKTRR, SLSR):  # the others' landmarks are means, or not kept by their rows
        assert model.landmark_indices_.shape == (50,)
        assert len(np.unique(X[model.landmark_indices_], axis=0)) == 50
        assert not hasattr(model, "landmarks_")
    else:
        assert model.landmarks_.shape == (50, 6)


@each
def test_same_seed_same_labels(cls, data):
    X, _ = data
    model = cls(4, n_landmarks=50, random_state=7)
    np.testing.assert_array_equal(model.fit(X).labels_, clone(model).fit(X).labels_)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))


@each
def test_float32_is_how_points_are_stored_and_changes_nothing(cls, data):
    X = data[0].astype(np.float32)
    single, double = (cls(3, n_landmarks=60).fit(points) for points in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(single.labels_, double.labels_)
    np.testing.assert_array_equal(single.predict(X[:9]), double.predict(X[:9].astype(np.float64)))


@each
@pytest.mark.parametrize("power", [-60, 3, 60])  # beyond 2^±40 the points are brought back near one
def test_labels_do_not_depend_on_units(cls, data, power):
    X, _ = data
    scaled = np.ldexp(X, power)
    labels = cls(3, n_landmarks=60).fit(X).labels_
    np.testing.assert_array_equal(cls(3, n_landmarks=60).fit(scaled).labels_, labels)
    if hasattr(cls, "bandwidth"):  # and with them the lengths the user gives
        labels = cls(3, n_landmarks=60, bandwidth=3.0).fit(X).labels_
        length = float(np.ldexp(3.0, power))
        np.testing.assert_array_equal(cls(3, n_landmarks=60, bandwidth=length).fit(scaled).labels_, labels)


@each
def test_input_is_not_changed(cls, data):
    X, _ = data
    before = X.copy()
    X.flags.writeable = False
    cls(3, n_landmarks=50, scaling="unit").fit(X).predict(X)
    np.testing.assert_array_equal(X, before)


@each
def test_more_clusters_than_landmarks_is_refused(cls, data):
    X, _ = data
    with pytest.raises(ValueError, match="n_landmarks=4 must not be less than n_clusters=6"):
        cls(6, n_landmarks=4).fit(X)


@each
def test_copies_of_few_points(cls, rng):
    points = rng.normal(size=(6, 2)) + 10 * np.arange(6)[:, None]
    index = rng.permutation(np.arange(300) % 6)
    model = cls(6, n_landmarks=40).fit(points[index])
    for group in range(6):
        assert len(set(model.labels_[index == group])) == 1
    assert adjusted_rand_score(index, model.labels_) == 1


@each
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fewer_distinct_points_than_clusters(cls, rng):
    index = np.arange(60) % 3
    X = np.array([[0.0, 0], [9, 0], [0, 9]])[index]
    model = cls(5, n_landmarks=20).fit(X)
    assert model.labels_.shape == (60,)
    assert model.predict(X).shape == (60,)


@each
def test_equal_points_are_one_cluster(cls):
    X = np.ones((30, 2))
    with pytest.warns(ConvergenceWarning, match="all 30 points are equal"):
        model = cls(3, n_landmarks=10).fit(X)
    assert (model.labels_ == 0).all()
    assert (model.predict(X) == 0).all()


@each
def test_one_cluster(cls, data):
    X, _ = data
    model = cls(1, n_landmarks=30).fit(X)
    assert (model.labels_ == 0).all()
    assert (model.predict(X) == 0).all()


@each
def test_an_outlier_far_away(cls, data):
    X, _ = data
    X[0] = 1e4
    model = cls(3, n_landmarks=60).fit(X)
    assert np.isfinite(model.predict(X)).all()
    assert len(model.labels_) == 900


@each
def test_bad_parameters_are_named(cls, data):
    X, _ = data
    with pytest.raises(ValueError, match="n_landmarks"):
        cls(3, n_landmarks=0).fit(X)
    with pytest.raises(ValueError, match="must not exceed the number of points"):
        cls(901).fit(X)


@each
def test_only_what_there_is(cls, data):
    """No coordinates and no coefficients: no method that would say so."""
    model = cls(3, n_landmarks=60)
    for state in (model, model.fit(data[0])):
        assert not hasattr(state, "transform")
        assert not hasattr(state, "explain")
        assert hasattr(state, "predict")


@each
def test_stages_are_announced(cls, data):
    """Callbacks of scikit-learn hear of what takes its time, and of nothing else."""
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")
    heard: list[tuple[str, str]] = []

    class Listening:
        def setup(self, estimator, context):
            heard.append(("setup", context.task_name))

        def teardown(self, estimator, context):
            heard.append(("teardown", context.task_name))

        def on_fit_task_begin(self, estimator, context, **_):
            heard.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context, **_):
            heard.append(("end", context.task_name))

    model = cls(3, n_landmarks=60).set_callbacks(Listening()).fit(data[0])
    stages = [name for what, name in heard if what == "begin"]
    assert stages == ["fit", *model.timings_]
    assert heard[0] == ("setup", "fit")
    assert heard[-2:] == [("end", "fit"), ("teardown", "fit")]


@each
def test_parameters_stay_as_they_are(cls, data):
    model = cls(3, n_landmarks=60)
    before = model.get_params()
    assert model.fit(data[0]).get_params() == before


@each
def test_described(cls):
    assert cls.cost
    assert ":" in cls.reference
