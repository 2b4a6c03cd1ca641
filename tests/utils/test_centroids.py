"""Centroids, nearest centroids and k-means of many rows, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from subspaces.utils import centroids as kmeans
from subspaces.utils.centroids import centroids, cluster_rows, nearest, sample_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 1000])
def test_nearest_against_all_distances(rng, dtype, offset, monkeypatch):
    monkeypatch.setattr("subspaces.utils.blocks.BLOCK_BYTES", 4096)  # several blocks
    X, centres = rng.normal(size=(300, 5)), rng.normal(size=(40, 5))
    X, centres = (X + offset).astype(dtype), (centres + offset).astype(dtype)
    indices, distances = nearest(X, centres, 7)
    assert indices.shape == distances.shape == (300, 7)
    assert distances.dtype == dtype
    reference = cdist(X.astype(float), centres.astype(float), "sqeuclidean")
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(distances, np.sort(reference, axis=1)[:, :7], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        np.take_along_axis(reference, indices, axis=1), distances, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize(("n_centroids", "slack"), [(10, 1.1), (150, 1.25)])  # many centroids start at random points
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centroids_are_good_and_repeatable(rng, n_centroids, slack, dtype):
    X = rng.normal(size=(1000, 4)).astype(dtype)
    before = X.copy()
    found = centroids(X, n_centroids, 3)
    assert found.shape == (n_centroids, 4)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, centroids(X, n_centroids, 3))
    np.testing.assert_array_equal(X, before)
    assert (found != centroids(X, n_centroids, 4)).any()
    best = KMeans(n_centroids, n_init=3, random_state=0).fit(X).inertia_
    assert nearest(X, found)[1].sum() < slack * best


def test_centroids_of_few_distinct_points_are_these_points(rng):
    points = rng.normal(size=(12, 3))
    X = points[rng.permutation(np.arange(600) % 12)]
    for n_centroids in (12, 13, 5000):
        found = centroids(X, n_centroids, 0)
        np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(points, axis=0))
    assert centroids(X, 5, 0).shape == (5, 3)


def test_sample_rows():
    assert (sample_rows(5, 9, 0) == np.arange(5)).all()
    drawn = sample_rows(1000, 100, 0)
    assert len(np.unique(drawn)) == 100
    assert (np.diff(drawn) > 0).all()
    assert (drawn != sample_rows(1000, 100, 1)).any()
    counts = sum(np.bincount(sample_rows(20, 5, seed), minlength=20) for seed in range(400))
    assert counts.min() > 50  # expected 100 each
    assert counts.max() < 150


@pytest.mark.parametrize("sample", [20_000, 200])
def test_cluster_rows_is_kmeans(rng, sample, monkeypatch):
    monkeypatch.setattr(kmeans, "_RESTART_SAMPLE", sample)
    Y = np.repeat([[0, 0], [10, 0], [0, 10]], [700, 200, 100], axis=0) + rng.normal(size=(1000, 2))
    labels, centres = cluster_rows(Y, 3, 5, 0)
    reference = KMeans(3, n_init=10, random_state=0).fit(Y)
    # the cut of well separated groups is unique: every centre is the mean of its points
    np.testing.assert_allclose(np.sort(centres, axis=0), np.sort(reference.cluster_centers_, axis=0), atol=1e-6)
    np.testing.assert_allclose(centres, [Y[labels == label].mean(axis=0) for label in range(3)], atol=1e-6)
