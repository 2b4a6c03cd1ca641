"""k-means with crossed starts: against brute force, against scikit-learn's independent starts, on degenerate points."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from subspaces.spectral.assign import kmeans


def inertia(Y: np.ndarray, labels: np.ndarray) -> float:
    return sum(((Y[labels == c] - Y[labels == c].mean(axis=0)) ** 2).sum() for c in np.unique(labels))


def test_finds_the_optimum_that_brute_force_finds():
    Y = np.random.default_rng(0).normal(size=(9, 2))
    best = min(inertia(Y, np.array(labels)) for labels in product(range(3), repeat=9))
    assert inertia(Y, kmeans(Y, 3, n_init=50, seed=0)) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_not_worse_than_as_many_independent_starts(seed):
    # 25 blobs, some close to each other: a single start nearly always puts two centres into one blob
    rng = np.random.default_rng(seed)
    Y = np.repeat(rng.normal(size=(25, 3)), 20, axis=0) + 0.05 * rng.normal(size=(500, 3))
    ours = inertia(Y, kmeans(Y, 25, n_init=200, seed=seed))
    theirs = KMeans(25, n_init=200, random_state=seed).fit(Y).inertia_
    assert ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_seed_decides_and_the_input_stays(dtype):
    Y = np.random.default_rng(2).normal(size=(100, 4)).astype(dtype)
    kept = Y.copy()
    first, second = kmeans(Y, 7, n_init=30, seed=3), kmeans(Y, 7, n_init=30, seed=3)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(Y, kept)
    assert first.dtype == np.intp
    assert set(first) == set(range(7))


@pytest.mark.parametrize(("factor", "offset"), [(1e150, 0), (1e-150, 0), (1, 1e6)])
def test_scale_and_offset_change_nothing(factor, offset):
    rng = np.random.default_rng(4)
    Y = np.repeat(3 * rng.normal(size=(6, 3)), 15, axis=0) + 0.1 * rng.normal(size=(90, 3))
    plain, moved = kmeans(Y, 6, n_init=40, seed=0), kmeans(Y * factor + offset, 6, n_init=40, seed=0)
    assert len(np.unique(np.stack([plain, moved], axis=1), axis=0)) == 6


def test_fewer_distinct_points_than_clusters_is_said():
    Y = np.repeat(np.eye(3), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="distinct"):
        labels = kmeans(Y, 5, n_init=20, seed=0)
    assert len(np.unique(labels)) == 3
