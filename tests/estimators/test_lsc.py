"""LSC: its vectors are singular vectors of the codes, and pieces of the graph are kept whole."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.metrics import adjusted_rand_score

from method_data import rings
from subspaces import LSC
from subspaces.landmarks.bipartite import landmark_codes
from subspaces.utils.centroids import nearest


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3))


def test_lsc_vectors_are_left_singular_vectors(X):
    model = LSC(4, n_landmarks=40, landmarks="random").fit(X)
    codes, _ = landmark_codes(*nearest(X, model.landmarks_, 5), model.bandwidth_, 40)
    Z = codes.toarray()
    U = np.linalg.svd(Z / np.sqrt(Z.sum(axis=0)), full_matrices=False)[0]
    Y = codes @ model._predictor.model.directions
    assert subspace_angles(Y, U[:, 1:5]).max() < 1e-5
    np.testing.assert_allclose(Y.T @ Y, np.eye(4), atol=1e-8)


def test_pieces_are_clusters(rng):
    y = np.arange(600) % 5
    X = 100.0 * np.eye(5)[y] + rng.normal(size=(600, 5))
    for landmarks in ("kmeans", "random"):
        assert adjusted_rand_score(y, LSC(5, n_landmarks=60, landmarks=landmarks).fit_predict(X)) == 1


def test_more_pieces_than_clusters_are_joined_to_near_ones(rng):
    # three far pairs of near groups, three clusters wanted: a pair must not be torn
    position = np.array([0, 30, 1000, 1030, 5000, 5030.0])
    piece = np.arange(600) % 6
    X = np.c_[position[piece], np.zeros(600)] + rng.normal(size=(600, 2))
    assert adjusted_rand_score(piece // 2, LSC(3, n_landmarks=60).fit_predict(X)) == 1


def test_rings(rng):
    X, y = rings(rng, 1000, 2)
    model = LSC(2, n_landmarks=100).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_fewer_landmarks_than_neighbours(X):
    assert LSC(2, n_landmarks=3, n_neighbors=9).fit(X).labels_.shape == (200,)
