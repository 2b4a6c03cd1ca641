"""Sample, cluster, classify with any parts, and what odd clusterings come to."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sampled_data import four_blobs, on_presets, three_subspaces
from subspaces import EKTRR, KTRR, SampledClusterer
from subspaces.landmarks.collaborative import CollaborativeClassifier
from subspaces.landmarks.samplers import SAMPLERS


@pytest.fixture
def subspaces(seed):
    return three_subspaces(seed)


@pytest.fixture
def blobs(seed):
    return four_blobs(seed)


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
@pytest.mark.parametrize("n_draws", [1, 3])
def test_any_clusterer(clusterer, n_draws, blobs):
    X, y = blobs
    model = SampledClusterer(clusterer=clusterer, n_landmarks=200, n_draws=n_draws)
    before = str(clusterer.get_params())
    labels = model.fit_predict(X)
    assert adjusted_rand_score(y[labels >= 0], labels[labels >= 0]) > 0.99
    assert model.n_clusters_ == 4
    assert str(clusterer.get_params()) == before
    assert_array_equal(clone(model).fit_predict(X), labels)  # even if the parts have no seed


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("n_draws", [1, 3])
def test_any_classifier(classifier, n_draws, blobs):
    X, y = blobs
    model = SampledClusterer(4, clusterer=KMeans(n_init=3), classifier=classifier, n_landmarks=200, n_draws=n_draws)
    assert adjusted_rand_score(y, model.fit_predict(X)) > 0.99
    assert adjusted_rand_score(y, model.predict(X)) > 0.99


def test_number_of_clusters_comes_from_one_place(blobs):
    X, _ = blobs
    assert SampledClusterer(clusterer=KMeans(5), n_landmarks=100).fit(X).n_clusters_ == 5
    assert SampledClusterer(3, clusterer=KMeans(5), n_landmarks=100).fit(X).n_clusters_ == 3
    with pytest.raises(ValueError, match="n_clusters=3 needs a clusterer with a parameter of that name"):
        SampledClusterer(3, clusterer=GaussianMixture(3), n_landmarks=100).fit(X)


@pytest.mark.parametrize("sampler", [*SAMPLERS, lambda X, n, rng: np.arange(0, len(X), len(X) // n)[:n]])
@pytest.mark.parametrize("scaling", [None, "unit"])
def test_any_sampler(sampler, scaling, subspaces):
    X, y = subspaces
    model = EKTRR(3, n_landmarks=200, sampler=sampler, scaling=scaling).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.8
    assert len(np.unique(model.landmark_indices_)) == 200


@pytest.mark.parametrize("rows", [[0, 0, 1], [0, 1], [0.0, 1.0, 2.0], [-1, 0, 1], [0, 1, 10**6]])
def test_a_sampler_that_returns_something_else(rows, blobs):
    with pytest.raises(ValueError, match="sampler must return n_landmarks=3 different row numbers"):
        SampledClusterer(2, n_landmarks=3, sampler=lambda X, n, rng: np.array(rows)).fit(blobs[0])


# ---------------------------------------------------------------- odd clusterings


def told(labels, rng):
    """Points around one corner of a cube per label, with the label as last feature."""
    labels = np.asarray(labels)
    return np.c_[
        10.0 * np.eye(labels.max() + 2)[labels] + 0.1 * rng.standard_normal((len(labels), labels.max() + 2)), labels
    ]


@pytest.mark.filterwarnings("default:self.within_class_std_dev_")  # of scikit-learn's NearestCentroid, as it should
@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("n_draws", [1, 3])
def test_fewer_clusters_than_asked(classifier, n_draws, rng):
    X = told(np.repeat([0, 3, 5], 100), rng)
    model = SampledClusterer(6, clusterer=Labelled(), classifier=classifier, n_landmarks=60, n_draws=n_draws)
    with pytest.warns(ConvergenceWarning, match="found 3 clusters among 60 landmarks instead of n_clusters=6"):
        model.fit(X)
    assert_array_equal(model.labels_, X[:, -1])
    assert_array_equal(model.predict(X), X[:, -1])
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("n_draws", [1, 3])
@pytest.mark.parametrize("label", [0, 2])
def test_a_single_cluster(n_draws, label, rng):
    X = told(np.full(100, label), rng)
    model = SampledClusterer(clusterer=Labelled(), n_landmarks=20, n_draws=n_draws).fit(X)
    assert_array_equal(model.labels_, label)
    assert_array_equal(model.predict(X), label)
    assert model.n_clusters_ == 1


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
        few = SampledClusterer(
            clusterer=Labelled(), classifier=classifier, n_landmarks=150, sampler=lambda X, n, rng: np.arange(53, 203)
        ).fit(X)
    assert_array_equal(model.labels_, X[:, -1])
    assert_array_equal(few.labels_[53:], X[53:, -1])
    assert (few.labels_[:53] == 0).mean() > 0.9


def test_a_fault_of_the_classifier_is_not_hidden(blobs):
    with pytest.raises(ValueError, match="n_neighbors"):
        SampledClusterer(4, clusterer=KMeans(), classifier=KNeighborsClassifier(0), n_landmarks=99).fit(blobs[0])


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


@on_presets
def test_fewer_landmarks_than_clusters(cls, subspaces):
    with pytest.raises(ValueError, match="n_landmarks=4 must not be less than n_clusters=5"):
        cls(n_clusters=5, n_landmarks=4).fit(subspaces[0])


def test_equal_landmarks_among_different_points():
    X = np.zeros((200, 2))
    X[-1] = 1
    model = EKTRR(2, n_landmarks=10, sampler=lambda X, n, rng: np.arange(n))
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert_array_equal(model.labels_, 0)
