"""Scores of empty clusters and of kernels that are not positive definite; small Gram matrices of two scales."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from subspaces.kernels import as_kernel
from subspaces.representation.new_samples import residual_scores
from subspaces.representation.two_scale import _small_grams


def test_cluster_without_points_explains_nothing(rng):
    X = rng.standard_normal((8, 3))
    labels = np.array([0, 0, 0, 0, 2, 2, 2, 2])
    K = X @ X.T
    scores = residual_scores(K, lambda rows: K[np.ix_(rows, rows)], labels, 3, 0.1)
    assert (scores[:, 1] == -np.inf).all()
    for label in (0, 2):
        members = np.flatnonzero(labels == label)
        solved = np.linalg.solve(K[np.ix_(members, members)] + 0.1 * np.eye(4), K[members])
        assert_allclose(scores[:, label], (K[members] * solved).sum(axis=0), rtol=1e-8)


def test_only_the_positive_part_of_an_indefinite_kernel_explains(rng):
    basis = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    values = np.array([-2.0, -0.5, 1.0, 2.0, 3.0])
    K = (basis * values) @ basis.T
    K = (K + K.T) / 2
    found = residual_scores(K, lambda rows: K[np.ix_(rows, rows)], np.zeros(5, dtype=int), 1, 1e-3)
    positive = values + 1e-3 > 0
    inverse = (basis[:, positive] / (values[positive] + 1e-3)) @ basis[:, positive].T
    assert_allclose(found[:, 0], np.einsum("ij,jk,ik->i", K, inverse, K), rtol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "inverse_distance", "quadratic", "polynomial", "linear"])
def test_small_grams_are_grams(name, rng):
    X = rng.standard_normal((3, 4, 6))
    kernel = as_kernel(name).fit(X.reshape(12, 6))
    for found, points in zip(_small_grams(X.copy(), kernel), X, strict=True):
        assert_allclose(found, kernel.gram(points), rtol=1e-9, atol=1e-12)
        assert_allclose(kernel.diagonal(points.copy()), kernel.gram(points).diagonal(), rtol=1e-12)
