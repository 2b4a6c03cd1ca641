"""Codes over landmarks, and the transfer cut against the eigenvectors of the whole bipartite graph."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from subspaces.landmarks.bipartite import landmark_codes, transfer_cut
from subspaces.utils.centroids import nearest


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3))


def bipartite(X, landmarks, n_neighbors, bandwidth):
    """B, points × landmarks, written out."""
    squares = ((X[:, None] - landmarks) ** 2).sum(axis=2)
    B = np.exp(-squares / bandwidth**2)
    B[squares > np.sort(squares, axis=1)[:, n_neighbors - 1 : n_neighbors]] = 0
    return B


def test_codes_against_the_dense_matrix(X):
    B = bipartite(X, X[:30], 4, 0.8)
    codes, masses = landmark_codes(*nearest(X, X[:30], 4), 0.8, 30)
    np.testing.assert_allclose(codes.toarray() * masses[:, None], B, atol=1e-12)
    np.testing.assert_allclose(codes.sum(axis=1), 1)


def test_codes_of_far_points_do_not_vanish():
    codes, masses = landmark_codes(np.array([[0, 1]]), np.array([[1e6, 1e6 + 1]]), 1.0, 2)
    assert masses[0] == 0
    np.testing.assert_allclose(codes.toarray(), [[1 / (1 + np.exp(-1)), 1 / (1 + np.exp(1))]])


def test_bandwidth_zero_weighs_alike():
    codes, masses = landmark_codes(np.array([[0, 1]]), np.zeros((1, 2)), 0.0, 2)
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
    h = codes @ cut.directions / cut.singular_values
    whole = np.vstack([h, cut.directions])
    np.testing.assert_allclose(W @ whole, degrees[:, None] * whole * cut.singular_values, atol=1e-6 * degrees.max())
    assert subspace_angles(whole, vectors[:, :k]).max() < 1e-5
