"""KASP, NystromSC, SEC, AKK, LSC and USPEC: scikit-learn's checks, known clusters, published limits, hostile input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from method_data import rings
from subspaces import AKK, KASP, LSC, SC, SEC, USPEC, NystromSC
from subspaces.landmarks import kernel_graph
from subspaces.landmarks.bipartite import landmark_codes
from subspaces.utils.progress import PLAIN, progress_to

CLASSES = (KASP, NystromSC, SEC, AKK, LSC, USPEC)
each = pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls in CLASSES])


@pytest.fixture
def data(rng):
    y = np.arange(900) % 3
    return 8.0 * np.eye(3, 6)[y] + rng.normal(size=(900, 6)), y


@parametrize_with_checks(
    [
        *(cls(n_clusters=3) for cls in CLASSES),
        LSC(n_clusters=3, landmarks="random"),
        NystromSC(n_clusters=3, n_landmarks=10),
        USPEC(n_clusters=3, n_landmarks=10, scaling="standard"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@each
@pytest.mark.parametrize("n_landmarks", [60, 5000])
def test_finds_groups_and_labels_new_samples(cls, data, n_landmarks):
    X, y = data
    model = cls(3, n_landmarks=n_landmarks).fit(X[:600])
    assert adjusted_rand_score(y[:600], model.labels_) > 0.95
    assert adjusted_rand_score(y[600:], model.predict(X[600:])) > 0.95
    assert (model.predict(X[:600]) == model.labels_).mean() > (0.95 if cls is SEC else 0.999)
    assert model.n_clusters_ == 3
    if cls is SEC:
        others = np.setdiff1d(np.arange(600), model.landmark_indices_)
        np.testing.assert_array_equal(model.predict(X[others]), model.labels_[others])
        assert len(model.landmark_indices_) == min(n_landmarks, 600)
    else:
        assert model.landmarks_.shape == (min(n_landmarks, 600), 6)


@each
@pytest.mark.parametrize("power", [-60, 3])  # beyond 2^±40 the samples are brought back near one
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
def test_refuses_impossible_numbers(cls, data):
    X, _ = data
    with pytest.raises(ValueError, match="n_landmarks=4 must not be less than n_clusters=6"):
        cls(6, n_landmarks=4).fit(X)
    with pytest.raises(ValueError, match="n_landmarks"):
        cls(3, n_landmarks=0).fit(X)
    with pytest.raises(ValueError, match="must not exceed the number of points"):
        cls(901).fit(X)


@each
def test_phases_are_the_timed_stages(cls, data):
    heard: list[str] = []
    with progress_to(lambda name, done, total: heard.append(name)):
        model = cls(3, n_landmarks=60).fit(data[0])
    assert list(dict.fromkeys(heard)) == list(dict.fromkeys(PLAIN[stage] for stage in model.timings_))


# ------------------------------------------------------------------ each by itself


def test_kasp_with_all_samples_as_centroids_is_plain_spectral_clustering(rng):
    X = rng.normal(size=(150, 3))  # no clusters: any difference would show
    plain = SC(n_clusters=4, n_init=10).fit(X)
    for n_landmarks in (150, 1000):
        assert adjusted_rand_score(KASP(4, n_landmarks=n_landmarks).fit(X).labels_, plain.labels_) == 1


def test_kasp_labels_are_those_of_the_nearest_centroid(data):
    X, _ = data
    model = KASP(3, n_landmarks=40).fit(X)
    cells = cdist(X, model.landmarks_).argmin(axis=1)
    np.testing.assert_array_equal(model.labels_, model.landmark_labels_[cells])
    assert len(np.unique(cells)) == len(model.landmarks_)  # no centroid without samples
    assert KASP(8, n_landmarks=8).fit(X).n_clusters_ == 8


@pytest.mark.parametrize("kernel", ["exponential", "inverse_square", "inverse_distance"])
def test_kernels_of_distances(data, kernel):
    for cls in (KASP, NystromSC, AKK):
        assert adjusted_rand_score(data[1], cls(3, n_landmarks=60, kernel=kernel).fit_predict(data[0])) > 0.9


@pytest.mark.parametrize("kernel", ["linear", "cosine", "quadratic", "cubic", "polynomial"])
def test_akk_takes_kernels_of_products(data, kernel, monkeypatch):
    X, y = data
    monkeypatch.setattr(kernel_graph, "_START_SIZE", 300)
    assert adjusted_rand_score(y, AKK(3, n_landmarks=60, kernel=kernel).fit_predict(X)) > 0.95
    with pytest.raises(ValueError, match="kernel"):
        KASP(3, kernel=kernel).fit(X)


def test_nystrom_bears_negative_degrees(rng):
    # a wide kernel with few landmarks: the approximation of far samples is negative
    X = np.vstack([rng.normal(size=(300, 2)), 8 * rng.normal(size=(30, 2))])
    model = NystromSC(3, n_landmarks=5, bandwidth=1.0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.n_clusters_ == 3


def test_lsc_vectors_are_left_singular_vectors_of_the_codes(rng):
    X = rng.normal(size=(200, 3))
    model = LSC(4, n_landmarks=40, landmarks="random").fit(X)
    fitted = model._predictor.model
    codes, _ = landmark_codes(*fitted.near.search(X), model.bandwidth_, 40)
    Z = codes.toarray()
    U = np.linalg.svd(Z / np.sqrt(Z.sum(axis=0)), full_matrices=False)[0]
    Y = codes @ fitted.directions
    assert subspace_angles(Y, U[:, 1:5]).max() < 1e-5
    np.testing.assert_allclose(Y.T @ Y, np.eye(4), atol=1e-8)


def test_lsc_joins_pieces_to_near_ones(rng):
    """Three far pairs of near groups: as many clusters as pieces, or as pairs, which must not be torn."""
    piece = np.arange(600) % 6
    X = np.c_[np.array([0, 30, 1000, 1030, 5000, 5030.0])[piece], np.zeros(600)] + rng.normal(size=(600, 2))
    for landmarks in ("kmeans", "random"):
        assert adjusted_rand_score(piece, LSC(6, n_landmarks=60, landmarks=landmarks).fit_predict(X)) == 1
    assert adjusted_rand_score(piece // 2, LSC(3, n_landmarks=60).fit_predict(X)) == 1
    assert LSC(2, n_landmarks=3, n_neighbors=9).fit(X).labels_.shape == (600,)


def test_uspec_embedding_is_that_of_the_whole_bipartite_graph(rng):
    X = rng.normal(size=(200, 3))
    model = USPEC(4, n_landmarks=40).fit(X)
    neighbours, squares = model._predictor.model.near.search(X)
    sigma = np.sqrt(squares).mean()  # of the paper
    codes, masses = landmark_codes(neighbours, squares, model.bandwidth_, len(model.landmarks_))
    np.testing.assert_allclose(masses, np.exp(-squares / (2 * sigma**2)).sum(axis=1))
    B = codes.toarray() * masses[:, None]
    n, p = B.shape
    W = np.zeros((n + p, n + p))
    W[:n, n:], W[n:, :n] = B, B.T
    degrees = W.sum(axis=1)
    vectors = eigh(np.diag(degrees) - W, np.diag(degrees), subset_by_index=[0, 3])[1]
    assert subspace_angles(codes @ model._predictor.model.directions, vectors[:n]).max() < 1e-5


@pytest.mark.parametrize("cls", [LSC, USPEC])
def test_rings(cls, rng):
    X, y = rings(rng, 1500, 3)
    model = cls(3, n_landmarks=150).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)
