"""Codes over landmarks, the transfer cut against the whole bipartite graph, the coarse search against the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from subspaces.landmarks.bipartite import CoarseIndex, landmark_codes, transfer_cut
from subspaces.utils.centroids import nearest


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3))


def test_codes_against_the_dense_matrix(X):
    squares = ((X[:, None] - X[:30]) ** 2).sum(axis=2)
    B = np.where(squares <= np.sort(squares, axis=1)[:, 3:4], np.exp(-squares / 0.8**2), 0)
    codes, masses = landmark_codes(*nearest(X, X[:30], 4), 0.8, 30)
    np.testing.assert_allclose(codes.toarray() * masses[:, None], B, atol=1e-12)
    np.testing.assert_allclose(codes.sum(axis=1), 1)


def test_codes_of_far_samples_do_not_vanish():
    codes, masses = landmark_codes(np.array([[0, 1]]), np.array([[1e6, 1e6 + 1]]), 1.0, 2)
    assert masses[0] == 0
    np.testing.assert_allclose(codes.toarray(), [[1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))]])
    codes, masses = landmark_codes(np.array([[0, 1]]), np.zeros((1, 2)), 0.0, 2)  # bandwidth 0 weighs alike
    np.testing.assert_array_equal(codes.toarray(), [[0.5, 0.5]])
    assert masses[0] == 2


@pytest.mark.parametrize("equal_masses", [True, False])
def test_transfer_cut_gives_the_eigenvectors_of_the_whole_graph(X, equal_masses):
    landmarks, k = X[:30], 5
    codes, masses = landmark_codes(*nearest(X, landmarks, 6), 1.0, 30)
    masses = np.ones_like(masses) if equal_masses else masses
    B = codes.toarray() * masses[:, None]
    n, p = B.shape
    W = np.zeros((n + p, n + p))
    W[:n, n:], W[n:, :n] = B, B.T
    degrees = W.sum(axis=1)
    values, vectors = eigh(np.diag(degrees) - W, np.diag(degrees))  # L f = γ D f, smallest first
    cut = transfer_cut(codes, masses, landmarks, k, k)
    assert cut.n_components == 1
    np.testing.assert_allclose(1 - cut.singular_values, values[:k], atol=1e-8)
    whole = np.vstack([codes @ cut.directions / cut.singular_values, cut.directions])
    np.testing.assert_allclose(W @ whole, degrees[:, None] * whole * cut.singular_values, atol=1e-6 * degrees.max())
    assert subspace_angles(whole, vectors[:, :k]).max() < 1e-5


def test_coarse_search_is_exact_when_all_representatives_are_candidates(rng):
    X, points = rng.normal(size=(300, 3)), rng.normal(size=(40, 3))
    indices, distances = CoarseIndex.of(points, 4, 0).search(X, 4)  # 41 candidates of 40
    exact, exact_distances = nearest(X, points, 4)
    np.testing.assert_array_equal(indices, exact)
    np.testing.assert_allclose(distances, exact_distances, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recall_of_the_coarse_search(rng, dtype):
    X, points = rng.normal(size=(2000, 4)).astype(dtype), rng.normal(size=(400, 4)).astype(dtype)
    index = CoarseIndex.of(points, 5, 0)
    assert index.around.shape == (400, 51)
    np.testing.assert_array_equal(np.sort(np.concatenate(index.members)), np.arange(400))
    indices, distances = index.search(X, 5)
    assert distances.dtype == dtype
    np.testing.assert_allclose(distances, ((X[:, None] - points[indices]) ** 2).sum(axis=2), rtol=1e-3, atol=1e-5)
    exact, _ = nearest(X, points, 5)
    assert np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(indices, exact, strict=True)]) > 0.9
