"""Sample, cluster, classify: the named methods, several draws, and data of every kind."""

from __future__ import annotations

import inspect
import io
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from sampled_data import PRESETS, four_blobs, on_presets, three_subspaces
from subspaces import EKTRR, KTRR, SLRR, SLSR, SampledClusterer
from subspaces.kernels.scaling import SCALINGS
from subspaces.landmarks import points
from subspaces.landmarks.sample_cluster_classify import aligned_vote, matched_names


@pytest.fixture
def subspaces(seed):
    return three_subspaces(seed)


@pytest.fixture
def blobs(seed):
    return four_blobs(seed)


@pytest.mark.filterwarnings("default:a point occurs", "default:the graph has")  # ours, and right about these points
@parametrize_with_checks(
    [cls(n_clusters=3) for cls in PRESETS]
    + [
        SampledClusterer(),
        EKTRR(n_clusters=3, n_landmarks=30, n_draws=2),
        SampledClusterer(3, classifier=KNeighborsClassifier(), sampler="kmeans++", n_landmarks=35),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------- the named methods


@on_presets
def test_presets_recover_subspaces(cls, subspaces):
    X, y = subspaces
    model = cls(n_clusters=3, n_landmarks=150).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert adjusted_rand_score(y, model.predict(X)) > 0.9
    assert model.n_clusters_ == 3
    assert isinstance(cls.cost, str)
    assert isinstance(cls.reference, str)


@on_presets
@pytest.mark.parametrize("n_landmarks", [90, 1000])
def test_with_every_point_a_landmark_the_labels_are_the_base_method_s(cls, n_landmarks, subspaces):
    X = subspaces[0][::14]  # not all that easy, so that chance would show
    assert len(X) <= 90
    model = cls(n_clusters=3, n_landmarks=n_landmarks, n_draws=3, random_state=5).fit(X)
    base = PRESETS[cls](n_clusters=3, random_state=5)
    assert_array_equal(model.labels_, base.fit_predict(X))
    assert_array_equal(model.landmark_indices_, np.arange(len(X)))


@on_presets
def test_defaults_are_those_of_the_base_method(cls):
    base = PRESETS[cls]().get_params()
    shared = set(base) & set(cls().get_params())
    assert {"n_clusters", "n_init", "assign_labels"} < shared
    for name in shared:
        assert getattr(cls(), name) == base[name], name
    assert set(inspect.signature(cls).parameters) == set(cls().get_params())


def test_parameters_reach_the_base_method(subspaces):
    X, _ = subspaces
    given = {"kernel": "polynomial", "kernel_params": {"degree": 2}, "reg": 0.3, "n_nonzero": 4, "graph": "column"}
    model = EKTRR(3, **given, assign_labels="cluster_qr", n_landmarks=60, scaling="unit").fit(X)
    found = model.clusterer_.get_params()
    assert {name: found[name] for name in given} == given
    assert found["assign_labels"] == "cluster_qr"
    assert found["scaling"] is None  # the rows were scaled before
    classifier = SLSR(3, classifier_reg=0.5, normalize_residual=True, n_landmarks=60).fit(X).classifier_
    assert classifier.get_params() == {"reg": 0.5, "normalize_residual": True}


def test_ektrr_is_algorithm_2(subspaces):
    """Step by step with the parts it is made of."""
    X, _ = subspaces
    model = EKTRR(3, n_landmarks=100, random_state=3).fit(X)
    landmarks = model.landmark_indices_
    assert len(set(landmarks)) == 100
    base = KTRR(3, random_state=3).fit(X[landmarks])
    assert_array_equal(model.labels_[landmarks], base.labels_)
    network = model.classifier_[-1]
    assert isinstance(network, MLPClassifier)
    assert network.hidden_layer_sizes == (10,)
    others = np.setdiff1d(np.arange(len(X)), landmarks)
    assert_array_equal(model.labels_[others], model.classifier_.predict(X[others]))
    assert (network.predict(model.classifier_[0].transform(X[landmarks])) == base.labels_).mean() > 0.95


# ---------------------------------------------------------------- several draws


def test_names_are_matched():
    votes = np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]])
    target = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    assert_array_equal(matched_names(votes, target), [1, 0, 1])  # the third class joins where its points are
    assert_array_equal(matched_names(target, votes), [1, 0])


class Fixed:
    """A classifier that knows the answer under names of its own, with or without probabilities."""

    def __init__(self, names):
        self.names, self.classes_ = np.asarray(names), np.unique(names)

    def predict(self, X):
        return self.names[X[:, 0].astype(int)]


def test_vote_of_the_majority_under_different_names():
    X = np.arange(6.0)[:, None]
    good = [Fixed([0, 0, 1, 1, 2, 2]), Fixed([5, 5, 3, 3, 4, 4]), Fixed([2, 2, 0, 0, 1, 1])]
    bad = Fixed([0, 1, 0, 1, 2, 2])
    vote = aligned_vote([bad, *good], X)
    assert vote.reference != 0
    assert adjusted_rand_score([0, 0, 1, 1, 2, 2], vote.predict(X)) == 1
    assert set(vote.predict(X)) == set(good[vote.reference - 1].classes_)
    assert 0 < vote.agreement < 1
    assert aligned_vote(good, X).agreement == 1


def test_the_reference_has_as_many_clusters_as_any():
    X = np.arange(6.0)[:, None]
    vote = aligned_vote([Fixed([0, 0, 0, 1, 1, 1]), Fixed([0, 0, 0, 1, 1, 1]), Fixed([0, 0, 1, 1, 2, 2])], X)
    assert vote.reference == 2
    assert len(vote.classes_) == 3


@on_presets
def test_several_draws(cls, subspaces):
    X, y = subspaces
    model = cls(n_clusters=3, n_landmarks=100, n_draws=3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert_array_equal(model.predict(X), model.labels_)  # there the vote decides for every point
    assert len(model.classifier_.classifiers) == 3
    assert model.agreement_ > 0.8
    assert not hasattr(model.set_params(n_draws=1).fit(X), "agreement_")


def test_the_first_of_several_draws_is_the_single_draw(subspaces):
    X, _ = subspaces
    one = SLSR(3, n_landmarks=100).fit(X)
    many = SLSR(3, n_landmarks=100, n_draws=3).fit(X)
    assert_array_equal(one.classifier_.predict(X), many.classifier_.classifiers[0].predict(X))


def test_votes_spread_less_than_draws(rng, seed):
    """Clusters that overlap, few landmarks: labels of two seeds agree more after a vote."""
    X, _ = make_blobs(1500, centers=4 * np.eye(3), cluster_std=1.5, random_state=seed)

    def disagreement(n_draws):
        runs = [
            SampledClusterer(
                3, clusterer=KMeans(n_init=1), n_landmarks=40, n_draws=n_draws, random_state=k
            ).fit_predict(X)
            for k in range(6)
        ]
        return 1 - np.mean([adjusted_rand_score(a, b) for i, a in enumerate(runs) for b in runs[:i]])

    assert disagreement(9) < disagreement(1)


# ---------------------------------------------------------------- data


@pytest.mark.parametrize("scaling", [None, *SCALINGS])
def test_every_scaling_reaches_landmarks_and_new_points(scaling, blobs):
    X, y = blobs
    X = X * [1, 10, 100, 1000] + [0, 50, -70, 3] if scaling in ("minmax", "standard") else X
    X = X - X.min() if scaling == "log" else X
    model = SampledClusterer(
        4, clusterer=KMeans(n_init=3), classifier=KNeighborsClassifier(), scaling=scaling, n_landmarks=150
    )
    assert adjusted_rand_score(y, model.fit_predict(X)) > 0.9
    assert (model.predict(X) == model.labels_).mean() > 0.99


def test_float32_is_seen_in_double_precision(subspaces):
    X = subspaces[0].astype(np.float32)
    seen = []

    class Watching(KNeighborsClassifier):
        def fit(self, X, y):
            seen.append(X.dtype)
            return super().fit(X, y)

        def predict(self, X):
            seen.append(X.dtype)
            return super().predict(X)

    SampledClusterer(3, classifier=Watching(), n_landmarks=100, scaling="minmax").fit(X).predict(X)
    assert set(seen) == {np.dtype(np.float64)}
    double = EKTRR(3, n_landmarks=150).fit_predict(X.astype(np.float64))
    np.testing.assert_array_equal(EKTRR(3, n_landmarks=150).fit_predict(X), double)


def test_dataframes(subspaces):
    X, _ = subspaces
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = EKTRR(3, n_landmarks=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(model.fit(table).labels_, clone(model).fit_predict(X))
        model.predict(table)
    assert list(model.feature_names_in_) == list(table.columns)


def test_blocks_change_nothing_and_the_data_stay_as_they_are(subspaces, monkeypatch):
    X, _ = subspaces
    before = X.copy()
    model = SLSR(3, n_landmarks=100).fit(X)
    monkeypatch.setattr(SLSR, "_block_bytes", 5000)
    assert_array_equal(clone(model).fit(X).labels_, model.labels_)
    assert_array_equal(X, before)


def test_only_landmarks_and_blocks_are_scaled(subspaces, monkeypatch):
    """No scaled copy of all points exists at any time."""
    X, _ = subspaces
    rows = []
    scale = points.apply_scaling
    monkeypatch.setattr(points, "apply_scaling", lambda X, s: (rows.append(len(X)), scale(X, s))[1])
    monkeypatch.setattr(EKTRR, "_block_bytes", 200 * X.shape[1] * 8)
    EKTRR(3, n_landmarks=100, scaling="minmax").fit(X)
    assert max(rows) == 200


def test_fitted_models_can_be_stored(subspaces):
    X, _ = subspaces
    for model in (EKTRR(3, n_landmarks=60), SLRR(3, n_landmarks=60, n_draws=2)):
        file = io.BytesIO()
        joblib.dump(model.fit(X), file)
        file.seek(0)
        assert_array_equal(joblib.load(file).predict(X), model.predict(X))


def test_a_failed_fit_leaves_an_unfitted_estimator(subspaces):
    X, _ = subspaces
    model = EKTRR(3, n_landmarks=60).fit(X)
    with pytest.raises(ValueError, match="n_landmarks"):
        model.set_params(n_clusters=70).fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]
