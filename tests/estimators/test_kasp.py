"""KASP: labels belong to cells; with all points as centroids it is plain spectral clustering."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from subspaces import KASP, SC


def blobs(rng, n=400):
    y = np.arange(n) % 4
    return 6.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])[y] + rng.normal(size=(n, 3)), y


def test_all_points_as_centroids_is_plain_spectral_clustering(rng):
    X = rng.normal(size=(150, 3))  # no clusters: any difference would show
    plain = SC(n_clusters=4, n_init=10).fit(X)
    for n_landmarks in (150, 1000):
        assert adjusted_rand_score(KASP(4, n_landmarks=n_landmarks).fit(X).labels_, plain.labels_) == 1


def test_labels_are_those_of_the_nearest_centroid(rng):
    X, y = blobs(rng)
    model = KASP(4, n_landmarks=40).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    cells = cdist(X, model.landmarks_).argmin(axis=1)
    np.testing.assert_array_equal(model.labels_, model.landmark_labels_[cells])
    assert len(np.unique(cells)) == len(model.landmarks_)  # no centroid without points
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_as_many_clusters_as_centroids(rng):
    X = rng.normal(size=(50, 2))
    assert KASP(8, n_landmarks=8).fit(X).n_clusters_ == 8


@pytest.mark.parametrize("kernel", ["rbf", "exponential", "inverse_square", "inverse_distance"])
def test_every_kernel(rng, kernel):
    X, y = blobs(rng)
    assert adjusted_rand_score(y, KASP(4, n_landmarks=40, kernel=kernel).fit_predict(X)) > 0.9
