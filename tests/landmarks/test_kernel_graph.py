"""KASP's cut of centroids, Nyström eigenvectors against exact ones, AKK against kernel k-means written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh, subspace_angles
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import adjusted_rand_score

from subspaces.kernels import as_kernel
from subspaces.landmarks import kernel_graph
from subspaces.landmarks.kernel_graph import (
    KernelCentres,
    KernelRows,
    kernel_lloyd,
    nystrom_directions,
    spectral_labels,
    whitening,
)


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3))


@pytest.fixture(params=[0, 2**28], ids=["computed again", "kept"])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(kernel_graph, "_KEPT_BYTES", request.param)
    monkeypatch.setattr(kernel_graph, "_BLOCK_BYTES", 40 * 8 * 37)


def test_a_centroid_far_from_all_others_joins_the_largest_cluster():
    W = np.zeros((7, 7))
    W[:4, :4] = W[4:6, 4:6] = 1
    np.fill_diagonal(W, 0)
    labels = spectral_labels(sparse.csr_array(W), 2, 5, 0)
    assert labels[6] == labels[0]
    assert adjusted_rand_score(labels[:6], [0, 0, 0, 0, 1, 1]) == 1


def nystrom_embedding(X, landmarks, kernel, n_vectors):
    directions, to_degree, eigenvalues = nystrom_directions(KernelRows(X, landmarks, kernel), n_vectors)
    C = kernel.cross(X, landmarks)
    return C @ directions / np.sqrt(C @ to_degree)[:, None], eigenvalues


def test_nystrom_with_all_samples_as_landmarks_gives_the_exact_eigenvectors(X):
    kernel = as_kernel("rbf", 0.7).fit(X)
    K = kernel.gram(X)
    degrees = K.sum(axis=1)
    values, vectors = eigh(K / np.sqrt(np.outer(degrees, degrees)))
    found, eigenvalues = nystrom_embedding(X, X, kernel, 6)
    np.testing.assert_allclose(eigenvalues, values[:-7:-1], atol=1e-7)
    assert subspace_angles(found, vectors[:, -6:]).max() < 1e-6


def test_nystrom_eigenvectors_are_those_of_the_approximated_graph(X, small_blocks):
    Z, kernel = X[:30], as_kernel("rbf", 1.5).fit(X)
    found, eigenvalues = nystrom_embedding(X, Z, kernel, 5)
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-8)
    W = kernel.cross(X, Z) @ np.linalg.pinv(kernel.gram(Z), rcond=1e-8, hermitian=True) @ kernel.cross(Z, X)
    degrees = W.sum(axis=1)
    np.testing.assert_allclose(W / np.sqrt(np.outer(degrees, degrees)) @ found, found * eigenvalues, atol=1e-6)
    np.testing.assert_allclose(eigenvalues[0], 1, atol=1e-8)
    twice, _ = nystrom_embedding(X, np.vstack([Z, Z]), kernel, 5)  # repeated landmarks change nothing
    assert subspace_angles(found, twice).max() < 1e-5


def test_nystrom_features_are_those_of_scikit_learn(X):
    kernel = as_kernel("rbf", 1.5).fit(X)
    reference = Nystroem(gamma=1 / 1.5**2, n_components=25, random_state=0).fit(X)
    Z = X[reference.component_indices_]
    ours, theirs = kernel.cross(X, Z) @ whitening(Z, kernel), reference.transform(X)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)


def test_refuses_a_kernel_that_is_zero():
    with pytest.raises(ValueError, match="n_landmarks=3 landmarks is zero"):
        whitening(np.zeros((3, 2)), as_kernel("linear").fit(np.eye(2)))


def test_akk_distances_are_the_published_ones(X, rng):
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E, C = whitening(Z, kernel), kernel.cross(X, Z)
    U = np.eye(5)[rng.integers(5, size=len(X))].T
    U /= U.sum(axis=1, keepdims=True)
    alpha = U @ C @ np.linalg.pinv(kernel.gram(Z), rcond=1e-8, hermitian=True)
    published = np.einsum("ij,jk,ik->i", alpha, kernel.gram(Z), alpha) - 2 * C @ alpha.T
    centres = KernelCentres.from_features(U @ C @ E, E)
    np.testing.assert_allclose(centres.squared_norms - 2 * C @ centres.weights.T, published, atol=1e-8)
    np.testing.assert_array_equal(centres.nearest(C), published.argmin(axis=1))


def test_akk_is_lloyd_on_the_features(X, small_blocks):
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E = whitening(Z, kernel)
    features = kernel.cross(X, Z) @ E
    start = features[:5]
    reference = KMeans(5, init=start, n_init=1, max_iter=1000, tol=0).fit(features)
    rows = KernelRows(X, Z, kernel)
    labels, centres, n_iter = kernel_lloyd(rows, E, KernelCentres.from_features(start, E), 1000)
    np.testing.assert_array_equal(labels, reference.labels_)
    np.testing.assert_allclose(centres.weights, reference.cluster_centers_ @ E.T, atol=1e-8)
    assert 1 < n_iter < 1000
    assert kernel_lloyd(rows, E, KernelCentres.from_features(start, E), 2)[2] == 2


def test_akk_with_all_samples_as_landmarks_is_kernel_kmeans(X):
    kernel = as_kernel("rbf", 0.5).fit(X)
    K, E = kernel.gram(X), whitening(X, kernel)
    labels = np.arange(len(X)) % 4
    means = np.array([(K @ E)[labels == label].mean(axis=0) for label in range(4)])
    found, _, _ = kernel_lloyd(KernelRows(X, X, kernel), E, KernelCentres.from_features(means, E), 1000)
    for _ in range(1000):  # kernel k-means, from the kernel matrix alone
        U = np.eye(4)[labels].T
        U /= U.sum(axis=1, keepdims=True)
        new = (np.einsum("ij,jk,ik->i", U, K, U) - 2 * K @ U.T).argmin(axis=1)
        if (new == labels).all():
            break
        labels = new
    np.testing.assert_array_equal(found, labels)


def test_akk_keeps_the_centre_of_an_empty_cluster(X):
    Z, kernel = X[:40], as_kernel("rbf", 1.0).fit(X)
    E = whitening(Z, kernel)
    features = kernel.cross(X, Z) @ E
    start = KernelCentres.from_features(np.vstack([features[:2], np.full((1, E.shape[1]), 99.0)]), E)
    labels, centres, _ = kernel_lloyd(KernelRows(X, Z, kernel), E, start, 100)
    assert set(labels) == {0, 1}
    np.testing.assert_array_equal(centres.weights[2], start.weights[2])
    np.testing.assert_array_equal(centres.squared_norms[2], start.squared_norms[2])
