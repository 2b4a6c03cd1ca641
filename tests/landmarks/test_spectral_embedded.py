"""The embedding of SEC against its dense definition and in its two limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from subspaces.graphs.local import self_tuned_graph
from subspaces.landmarks import spectral_embedded as embedded
from subspaces.landmarks.spectral_embedded import spectral_embedded
from subspaces.spectral.embedding import spectral_embedding


@pytest.fixture
def X(rng):
    return rng.normal(size=(120, 6)) * np.arange(1, 7)


def dense_problem(X, W, error_weight, reg):
    """Laplacian of the graph and the whole matrix of the problem, written out."""
    W = W.toarray()
    n = len(X)
    degrees = W.sum(axis=1)
    laplacian = np.eye(n) - W / np.sqrt(np.outer(degrees, degrees))
    H = np.eye(n) - 1 / n
    Xc = H @ X
    return laplacian, laplacian + error_weight * (H - Xc @ np.linalg.inv(Xc.T @ Xc + reg * np.eye(X.shape[1])) @ Xc.T)


@pytest.mark.parametrize("dense_size", [2000, 10])
def test_eigenvectors_of_the_dense_problem(X, dense_size, monkeypatch):
    monkeypatch.setattr(embedded, "_DENSE_SIZE", dense_size)
    W = self_tuned_graph(X, 5)
    _, M = dense_problem(X, W, 0.3, 2.0)
    found = spectral_embedded(X, W, 4, 0.3, 2.0)
    F = found.vectors
    np.testing.assert_allclose(F.T @ F, np.eye(4), atol=1e-8)
    np.testing.assert_allclose(np.diag(F.T @ M @ F), eigh(M)[0][:4], atol=1e-6)
    assert subspace_angles(F, eigh(M)[1][:, :4]).max() < 1e-4


def test_the_map_is_the_ridge_regression_of_the_embedding(X):
    found = spectral_embedded(X, self_tuned_graph(X, 5), 4, 1.0, 3.0)
    Xc = X - X.mean(axis=0)
    weights = np.linalg.solve(Xc.T @ Xc + 3 * np.eye(6), Xc.T @ found.vectors)
    np.testing.assert_allclose(found.weights, weights, atol=1e-10)
    np.testing.assert_allclose(found(X), Xc @ weights + found.vectors.mean(axis=0), atol=1e-10)


def test_without_fidelity_it_is_the_spectral_embedding(X):
    W = self_tuned_graph(X, 8)
    found = spectral_embedded(X, W, 4, 1e-9, 1.0)
    assert subspace_angles(found.vectors, spectral_embedding(W, 4).vectors).max() < 1e-5


def test_with_all_fidelity_it_is_the_principal_components(X):
    found = spectral_embedded(X, self_tuned_graph(X, 5), 4, 1e9, 1.0)
    scores = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :3]
    assert subspace_angles(found.vectors, np.c_[np.ones(len(X)), scores]).max() < 1e-5
