"""The Nyström approximation against exact eigenvectors and scikit-learn's Nyström features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles
from sklearn.kernel_approximation import Nystroem

from subspaces.kernels import as_kernel
from subspaces.landmarks import nystrom_features
from subspaces.landmarks.nystrom_features import KernelRows, nystrom_directions, whitening


@pytest.fixture
def X(rng):
    return rng.normal(size=(200, 3))


def embedding(X, landmarks, kernel, n_vectors):
    directions, to_degree, eigenvalues = nystrom_directions(KernelRows(X, landmarks, kernel), n_vectors)
    C = kernel.cross(X, landmarks)
    return C @ directions / np.sqrt(C @ to_degree)[:, None], eigenvalues


def test_all_points_as_landmarks_gives_the_exact_eigenvectors(X):
    kernel = as_kernel("rbf", 0.7).fit(X)
    K = kernel.gram(X)
    degrees = K.sum(axis=1)
    values, vectors = eigh(K / np.sqrt(np.outer(degrees, degrees)))
    found, eigenvalues = embedding(X, X, kernel, 6)
    np.testing.assert_allclose(eigenvalues, values[:-7:-1], atol=1e-7)
    assert subspace_angles(found, vectors[:, -6:]).max() < 1e-6


@pytest.mark.parametrize("block_bytes", [4096, 2**25])
@pytest.mark.parametrize("kept_bytes", [0, 2**28])
def test_eigenvectors_of_the_approximated_graph_are_orthonormal(X, block_bytes, kept_bytes, monkeypatch):
    monkeypatch.setattr(nystrom_features, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(nystrom_features, "_KEPT_BYTES", kept_bytes)
    Z, kernel = X[:30], as_kernel("rbf", 1.5).fit(X)
    found, eigenvalues = embedding(X, Z, kernel, 5)
    np.testing.assert_allclose(found.T @ found, np.eye(5), atol=1e-8)
    W = kernel.cross(X, Z) @ np.linalg.pinv(kernel.gram(Z), rcond=1e-8, hermitian=True) @ kernel.cross(Z, X)
    degrees = W.sum(axis=1)
    S = W / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(S @ found, found * eigenvalues, atol=1e-6)
    np.testing.assert_allclose(eigenvalues[0], 1, atol=1e-8)


def test_features_are_those_of_scikit_learn(X):
    kernel = as_kernel("rbf", 1.5).fit(X)
    reference = Nystroem(gamma=1 / 1.5**2, n_components=25, random_state=0).fit(X)
    Z = X[reference.component_indices_]
    ours, theirs = kernel.cross(X, Z) @ whitening(Z, kernel), reference.transform(X)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)


def test_repeated_landmarks_change_nothing(X):
    Z, kernel = X[:30], as_kernel("rbf", 1.0).fit(X)
    once, _ = embedding(X, Z, kernel, 4)
    twice, _ = embedding(X, np.vstack([Z, Z]), kernel, 4)
    assert subspace_angles(once, twice).max() < 1e-5


def test_zero_kernel_is_refused():
    with pytest.raises(ValueError, match="n_landmarks=3 landmarks is zero"):
        whitening(np.zeros((3, 2)), as_kernel("linear").fit(np.eye(2)))
