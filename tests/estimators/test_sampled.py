"""Sample, cluster, classify: the named methods, any parts, and odd clusterings."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from subspaces import EKTRR, KTRR, LRR2, LSR1, SLRR, SLSR, SSC, SSSC, SampledClusterer
from subspaces.datasets import make_subspaces
from subspaces.kernels.scaling import SCALINGS
from subspaces.landmarks import points
from subspaces.landmarks.collaborative import CollaborativeClassifier

PRESETS = {EKTRR: KTRR, SSSC: SSC, SLSR: LSR1, SLRR: LRR2}
on_presets = pytest.mark.parametrize("cls", PRESETS)


@pytest.fixture
def subspaces(seed):
    return make_subspaces(3, dimension=3, ambient=15, n_samples=400, noise=0.01, random_state=seed)


@pytest.fixture
def blobs(seed):
    return make_blobs(1200, centers=20 * np.eye(4), random_state=seed)


@pytest.mark.filterwarnings("default:a point occurs", "default:the graph has")  # ours, and right about these points
@parametrize_with_checks(
    [cls(n_clusters=3) for cls in PRESETS]
    + [
        SampledClusterer(),
        SampledClusterer(3, classifier=KNeighborsClassifier(), n_landmarks=35),
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
    assert isinstance(cls._cost, str)
    assert isinstance(cls._reference, str)


@on_presets
@pytest.mark.parametrize("n_landmarks", [90, 1000])
def test_with_every_point_a_landmark_the_labels_are_the_base_method_s(cls, n_landmarks, subspaces):
    X = subspaces[0][::14]  # not all that easy, so that chance would show
    assert len(X) <= 90
    model = cls(n_clusters=3, n_landmarks=n_landmarks, random_state=5).fit(X)
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
    classifier = SLSR(3, classifier_reg=0.5, n_landmarks=60).fit(X).classifier_
    assert classifier.get_params() == {"reg": 0.5}


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


def test_ektrr_with_another_classifier(subspaces):
    """The third step is the pipeline's, trained on the landmarks alone; the user's own stays unfitted."""
    X, _ = subspaces
    given = make_pipeline(StandardScaler(), KNeighborsClassifier(3))
    model = EKTRR(3, n_landmarks=150, classifier=given, n_nonzero=3).fit(X)
    landmarks, others = model.landmark_indices_, np.setdiff1d(np.arange(len(X)), model.landmark_indices_)
    by_hand = clone(given).fit(X[landmarks], model.labels_[landmarks])
    assert_array_equal(model.labels_[others], by_hand.predict(X[others]))
    assert model.clusterer_.n_nonzero == 3
    assert not hasattr(given[-1], "classes_")
    with pytest.raises(ValueError, match="'classifier' parameter of EKTRR must be an object implementing 'fit'"):
        EKTRR(3, classifier=StandardScaler()).fit(X)


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


class Labelled(ClusterMixin, BaseEstimator):
    """A clusterer that is told its answer: the last feature."""

    def __init__(self, n_clusters=None):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.labels_ = X[:, -1].astype(int)
        return self


# ---------------------------------------------------------------- any clusterer, any classifier

CLUSTERERS = [
    KMeans(4, n_init=3),
    AgglomerativeClustering(4),
    GaussianMixture(4, n_init=3),
    make_pipeline(StandardScaler(), KMeans(4, n_init=3)),
    DBSCAN(eps=3),
    KTRR(4),
]
CLASSIFIERS = [None, KNeighborsClassifier(), NearestCentroid(), LinearSVC(), CollaborativeClassifier()]


@pytest.mark.parametrize("clusterer", CLUSTERERS, ids=lambda part: type(part).__name__)
def test_any_clusterer(clusterer, blobs):
    X, y = blobs
    model = SampledClusterer(clusterer=clusterer, n_landmarks=200)
    before = str(clusterer.get_params())
    labels = model.fit_predict(X)
    assert adjusted_rand_score(y[labels >= 0], labels[labels >= 0]) > 0.99
    assert model.n_clusters_ == 4
    assert str(clusterer.get_params()) == before
    assert_array_equal(clone(model).fit_predict(X), labels)  # even if the parts have no seed


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda part: type(part).__name__)
def test_any_classifier(classifier, blobs):
    X, y = blobs
    model = SampledClusterer(4, clusterer=KMeans(n_init=3), classifier=classifier, n_landmarks=200)
    assert adjusted_rand_score(y, model.fit_predict(X)) > 0.99
    assert adjusted_rand_score(y, model.predict(X)) > 0.99


def test_number_of_clusters_comes_from_one_place(blobs):
    X, _ = blobs
    assert SampledClusterer(clusterer=KMeans(5), n_landmarks=100).fit(X).n_clusters_ == 5
    assert SampledClusterer(3, clusterer=KMeans(5), n_landmarks=100).fit(X).n_clusters_ == 3
    with pytest.raises(ValueError, match="n_clusters=3 needs a clusterer with a parameter of that name"):
        SampledClusterer(3, clusterer=GaussianMixture(3), n_landmarks=100).fit(X)


# ---------------------------------------------------------------- odd clusterings


def told(labels, rng):
    """Points around one corner of a cube per label, with the label as last feature."""
    labels = np.asarray(labels)
    return np.c_[
        10.0 * np.eye(labels.max() + 2)[labels] + 0.1 * rng.standard_normal((len(labels), labels.max() + 2)), labels
    ]


@pytest.mark.filterwarnings("default:self.within_class_std_dev_")  # of scikit-learn's NearestCentroid, as it should
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda part: type(part).__name__)
def test_fewer_clusters_than_asked(classifier, rng):
    X = told(np.repeat([0, 3, 5], 100), rng)
    model = SampledClusterer(6, clusterer=Labelled(), classifier=classifier, n_landmarks=60)
    with pytest.warns(ConvergenceWarning, match="found 3 clusters among 60 landmarks instead of n_clusters=6"):
        model.fit(X)
    assert_array_equal(model.labels_, X[:, -1])
    assert_array_equal(model.predict(X), X[:, -1])
    assert model.n_clusters_ == 3


@pytest.mark.filterwarnings("default:self.within_class_std_dev_")  # of scikit-learn's NearestCentroid, as it should
@pytest.mark.parametrize(
    "classifier",
    [
        *CLASSIFIERS,
        MLPClassifier((10,), early_stopping=True, max_iter=400, learning_rate_init=0.05),
        CalibratedClassifierCV(LinearSVC(), cv=5),
    ],
    ids=lambda part: type(part).__name__,
)
def test_clusters_of_one_and_two_landmarks(classifier, rng):
    """Classifiers that split the points of each class cannot do that with one."""
    X = told(np.r_[np.repeat([0, 1], 100), 2, 3, 3], rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SampledClusterer(clusterer=Labelled(), classifier=classifier, n_landmarks=203).fit(X)
    assert_array_equal(model.labels_, X[:, -1])


def test_noise_stays_noise_and_teaches_nothing(rng):
    X = np.vstack([rng.standard_normal((300, 2)), rng.standard_normal((300, 2)) + 30, rng.uniform(-500, 500, (60, 2))])
    model = SampledClusterer(clusterer=DBSCAN(eps=3), classifier=KNeighborsClassifier(), n_landmarks=600).fit(X)
    assert model.n_clusters_ == 2
    landmark = np.zeros(len(X), dtype=bool)
    landmark[model.landmark_indices_] = True
    assert (model.labels_[600:][landmark[600:]] == -1).mean() > 0.9
    assert (model.labels_[~landmark] >= 0).all()
    assert set(model.predict(X)) == {0, 1}


def test_nothing_but_noise(rng):
    X = rng.uniform(-500, 500, (60, 2))
    model = SampledClusterer(clusterer=DBSCAN(eps=1e-3), n_landmarks=30).fit(X)
    assert_array_equal(model.labels_, -1)
    assert_array_equal(model.predict(X), -1)
    assert model.n_clusters_ == 0


def test_equal_landmarks_among_different_points():
    X = np.zeros((200, 2))
    X[-1] = 1
    model = EKTRR(2, n_landmarks=10)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert_array_equal(model.labels_, 0)
