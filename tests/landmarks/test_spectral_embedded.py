"""The embedding of SEC against its dense definition and in its two limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from scipy.spatial.distance import cdist

from subspaces.landmarks import spectral_embedded as embedded
from subspaces.landmarks.spectral_embedded import self_tuned_graph, spectral_embedded
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


def test_nothing_is_smaller_than_the_found_minimum(X, rng):
    W = self_tuned_graph(X, 5)
    laplacian, _ = dense_problem(X, W, 1.0, 1.0)

    def objective(F, weights, offset):
        mean = X.mean(axis=0)
        misfit = ((X - mean) @ weights + offset - F) ** 2
        return np.trace(F.T @ laplacian @ F) + misfit.sum() + (weights**2).sum()

    found = spectral_embedded(X, W, 3, 1.0, 1.0)
    smallest = objective(found.vectors, found.weights, found.offset)
    for _ in range(20):
        step = 0.05 * rng.normal(size=found.vectors.shape)
        F = np.linalg.qr(found.vectors + step)[0]
        assert objective(F, found.weights + 0.01 * rng.normal(size=(6, 3)), F.mean(axis=0)) > smallest


def test_without_fidelity_it_is_the_spectral_embedding(X):
    W = self_tuned_graph(X, 8)
    found = spectral_embedded(X, W, 4, 1e-9, 1.0)
    assert subspace_angles(found.vectors, spectral_embedding(W, 4).vectors).max() < 1e-5


def test_with_all_fidelity_it_is_the_principal_components(X):
    found = spectral_embedded(X, self_tuned_graph(X, 5), 4, 1e9, 1.0)
    scores = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0][:, :3]
    assert subspace_angles(found.vectors, np.c_[np.ones(len(X)), scores]).max() < 1e-5


def test_map_follows_the_embedding(rng):
    y = np.arange(300) % 3
    X = 8.0 * np.eye(3, 5)[y] + rng.normal(size=(300, 5))
    found = spectral_embedded(X, self_tuned_graph(X, 5), 3, 1.0, 1.0)
    images, F = found(X) - found(X).mean(axis=0), found.vectors - found.vectors.mean(axis=0)
    # the constant vector has no variance to follow: compare the whole of both
    assert (images * F).sum() / np.sqrt((images**2).sum() * (F**2).sum()) > 0.9


def test_self_tuned_graph_against_all_distances(X):
    W = self_tuned_graph(X, 4)
    distances = cdist(X, X)
    scales = np.sort(distances, axis=1)[:, 4]
    near = distances <= scales[:, None]
    near |= near.T
    expected = np.where(near, np.exp(-(distances**2) / np.outer(scales, scales)), 0)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(W.toarray(), expected, atol=1e-6)
