"""Kernel k-means with landmarks against kernel k-means written out, and against k-means on the features."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from subspaces.kernels import as_kernel
from subspaces.landmarks import nystrom_features
from subspaces.landmarks.kernel_kmeans import KernelCentres, centres_from_features, kernel_lloyd
from subspaces.landmarks.nystrom_features import KernelRows, whitening


@pytest.fixture
def X(rng):
    return rng.normal(size=(300, 3))


def test_distances_of_both_forms_agree(X, rng):
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E, C = whitening(Z, kernel), kernel.cross(X, Z)
    labels = rng.integers(5, size=len(X))
    U = np.eye(5)[labels].T
    U /= U.sum(axis=1, keepdims=True)
    alpha = U @ C @ np.linalg.pinv(kernel.gram(Z), rcond=1e-8, hermitian=True)  # the published form
    published = np.einsum("ij,jk,ik->i", alpha, kernel.gram(Z), alpha) - 2 * C @ alpha.T
    features = C @ E
    means = U @ features
    by_features = ((features[:, None] - means) ** 2).sum(axis=2) - (features**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(published, by_features, atol=1e-8)
    centres = centres_from_features(means, E)
    np.testing.assert_allclose(centres.squared_norms - 2 * C @ centres.weights.T, published, atol=1e-8)
    np.testing.assert_array_equal(centres.nearest(C), published.argmin(axis=1))


@pytest.mark.parametrize("kept_bytes", [0, 2**28])
def test_is_lloyd_on_the_features(X, kept_bytes, monkeypatch):
    monkeypatch.setattr(nystrom_features, "_KEPT_BYTES", kept_bytes)
    monkeypatch.setattr(nystrom_features, "_BLOCK_BYTES", 40 * 8 * 37)
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E = whitening(Z, kernel)
    features = kernel.cross(X, Z) @ E
    start = features[:5]
    reference = KMeans(5, init=start, n_init=1, max_iter=1000, tol=0).fit(features)
    labels, centres, n_iter = kernel_lloyd(KernelRows(X, Z, kernel), E, centres_from_features(start, E), 1000)
    np.testing.assert_array_equal(labels, reference.labels_)
    np.testing.assert_allclose(centres.weights, reference.cluster_centers_ @ E.T, atol=1e-8)
    assert 1 < n_iter < 1000


def test_all_points_as_landmarks_is_kernel_kmeans(X):
    kernel = as_kernel("rbf", 0.5).fit(X)
    K, E = kernel.gram(X), whitening(X, kernel)
    labels = np.arange(len(X)) % 4
    means = np.array([(K @ E)[labels == label].mean(axis=0) for label in range(4)])
    found, _, _ = kernel_lloyd(KernelRows(X, X, kernel), E, centres_from_features(means, E), 1000)
    for _ in range(1000):  # kernel k-means, from the kernel matrix alone
        U = np.eye(4)[labels].T
        U /= U.sum(axis=1, keepdims=True)
        new = (np.einsum("ij,jk,ik->i", U, K, U) - 2 * K @ U.T).argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
    np.testing.assert_array_equal(found, labels)


def test_objective_never_rises(X):
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E = whitening(Z, kernel)
    features = kernel.cross(X, Z) @ E
    start = centres_from_features(features[:6], E)
    objective = []
    for max_iter in range(1, 8):
        labels, _, _ = kernel_lloyd(KernelRows(X, Z, kernel), E, start, max_iter)
        parts = [features[labels == label] for label in np.unique(labels)]
        objective.append(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))
    assert (np.diff(objective) < 1e-9).all()


def test_a_cluster_without_points_keeps_its_centre(X):
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E = whitening(Z, kernel)
    features = kernel.cross(X, Z) @ E
    start = centres_from_features(np.vstack([features[:2], np.full((1, E.shape[1]), 99.0)]), E)
    labels, centres, _ = kernel_lloyd(KernelRows(X, Z, kernel), E, start, 100)
    assert set(labels) == {0, 1}
    np.testing.assert_array_equal(centres.weights[2], start.weights[2])
    assert isinstance(centres, KernelCentres)
