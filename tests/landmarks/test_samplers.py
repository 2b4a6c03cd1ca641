"""Samplers return different rows, the same ones for the same seed, with the preferences they promise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.landmarks import samplers
from subspaces.landmarks.samplers import SAMPLERS, exemplars, kmeans_plus_plus, leverage, leverage_scores, uniform

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


@pytest.mark.parametrize("sampler", [kmeans_plus_plus, leverage, exemplars])
def test_small_groups_are_reached(sampler, rng):
    """Ten points in a direction of their own among five thousand: uniform sampling misses them, these do not."""
    X = np.c_[np.abs(rng.standard_normal((5000, 3))), np.zeros(5000)]
    X[:10] = [0, 0, 0, 5]
    X[:10] += 0.1 * rng.standard_normal((10, 4))
    hits = [(sampler(X, 50, rng) < 10).any() for _ in range(10)]
    assert np.mean(hits) >= 0.9


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("reg", [1e-3, 0.1, 10.0])
def test_leverage_scores_are_the_definition(dtype, reg, rng):
    X = (rng.standard_normal((400, 6)) * [1, 2, 3, 4, 5, 6]).astype(dtype)
    X64 = X.astype(np.float64)
    gram = X64.T @ X64
    penalty = reg * np.trace(gram) / 6
    expected = np.diag(X64 @ np.linalg.inv(gram + penalty * np.eye(6)) @ X64.T)
    assert_allclose(leverage_scores(X, reg), expected, rtol=1e-9)


def test_leverage_samples_in_proportion(rng):
    """The first of several picks falls on a row with the probability of its score."""
    X = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]])
    scores = leverage_scores(X, 0.01)
    picks = np.bincount([leverage(X, 1, rng)[0] for _ in range(4000)], minlength=4) / 4000
    assert_allclose(picks, scores / scores.sum(), atol=0.05)


def test_exemplars_are_farthest_first(rng):
    """Against the definition: each landmark is the point least well represented by a single earlier one."""
    X = rng.standard_normal((60, 5))
    rows = exemplars(X, 12, rng)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = np.abs(unit @ unit.T)
    for step in range(1, 12):
        best = cosines[:, rows[:step]].max(axis=1)
        assert_allclose(best[rows[step]], best.min(), rtol=1e-12)
