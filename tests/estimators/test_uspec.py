"""U-SPEC: its cut against the whole bipartite graph."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, subspace_angles
from sklearn.metrics import adjusted_rand_score

from method_data import rings
from subspaces import USPEC
from subspaces.landmarks.bipartite import landmark_codes


def test_embedding_is_that_of_the_whole_bipartite_graph(rng):
    X = rng.normal(size=(200, 3))
    model = USPEC(4, n_landmarks=40).fit(X)
    codes, masses = landmark_codes(*model._predictor.model.near.search(X), model.bandwidth_, len(model.landmarks_))
    B = codes.toarray() * masses[:, None]
    n, p = B.shape
    W = np.zeros((n + p, n + p))
    W[:n, n:], W[n:, :n] = B, B.T
    degrees = W.sum(axis=1)
    vectors = eigh(np.diag(degrees) - W, np.diag(degrees), subset_by_index=[0, 3])[1]
    assert subspace_angles(codes @ model._predictor.model.directions, vectors[:n]).max() < 1e-5


def test_bandwidth_is_the_mean_distance_of_the_paper(rng):
    X = rng.normal(size=(300, 2))
    model = USPEC(2, n_landmarks=50).fit(X)
    _, squares = model._predictor.model.near.search(X)
    sigma = np.sqrt(squares).mean()
    _, masses = landmark_codes(*model._predictor.model.near.search(X), model.bandwidth_, len(model.landmarks_))
    np.testing.assert_allclose(masses, np.exp(-squares / (2 * sigma**2)).sum(axis=1))


def test_rings(rng):
    X, y = rings(rng, 1500, 3)
    model = USPEC(3, n_landmarks=150).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)
