"""Samplers return different rows, the same ones for the same seed, with the preferences they promise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from subspaces.landmarks import samplers
from subspaces.landmarks.samplers import SAMPLERS, kmeans_plus_plus, uniform

on_all = pytest.mark.parametrize("sampler", [pytest.param(function, id=name) for name, function in SAMPLERS.items()])


@on_all
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "n_landmarks"), [(50, 1), (50, 20), (50, 50), (3000, 100)])
def test_different_rows(sampler, dtype, n, n_landmarks, rng, monkeypatch):
    monkeypatch.setattr(samplers, "_POOL", 1500)
    X = rng.standard_normal((n, 4)).astype(dtype)
    before = X.copy()
    rows = sampler(X, n_landmarks, rng)
    assert rows.shape == (n_landmarks,)
    assert rows.dtype == np.intp
    assert len(np.unique(rows)) == n_landmarks
    assert rows.min() >= 0
    assert rows.max() < n
    assert_array_equal(X, before)


@on_all
def test_same_seed_same_rows(sampler, rng, seed):
    X = rng.standard_normal((300, 4))
    first, second, other = (sampler(X, 30, np.random.default_rng(seed + k)) for k in (0, 0, 1))
    assert_array_equal(first, second)
    assert set(first) != set(other)


@on_all
def test_few_different_points_and_zero_rows(sampler, rng):
    X = np.repeat(rng.standard_normal((3, 4)), 20, axis=0)
    X[:10] = 0
    assert len(np.unique(sampler(X, 40, rng))) == 40
    assert len(np.unique(sampler(np.zeros((30, 2)), 30, rng))) == 30


@on_all
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_magnitude_does_not_matter(sampler, scale, rng, seed):
    X = rng.standard_normal((200, 3))
    with np.errstate(all="raise", under="ignore"):
        rows = sampler(X * scale, 20, np.random.default_rng(seed))
    assert len(np.unique(rows)) == 20


def test_uniform_is_uniform(rng):
    counts = sum(np.bincount(uniform(np.zeros((10, 1)), 3, rng), minlength=10) for _ in range(4000))
    # each count is binomial with mean 1200 and deviation 29
    assert np.abs(counts - 1200).max() < 6 * 29


def test_small_groups_are_reached(rng):
    """Ten points in a direction of their own among five thousand: uniform sampling misses them."""
    X = np.c_[np.abs(rng.standard_normal((5000, 3))), np.zeros(5000)]
    X[:10] = [0, 0, 0, 5]
    X[:10] += 0.1 * rng.standard_normal((10, 4))
    hits = [(kmeans_plus_plus(X, 50, rng) < 10).any() for _ in range(10)]
    assert np.mean(hits) >= 0.9
