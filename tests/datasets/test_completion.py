"""Missing entries of matrices of low rank: recovered, and what cannot be is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.datasets import make_motions
from subspaces.datasets.completion import _regressions, complete


def low_rank(rng, n=80, m=40, rank=4):
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m)) + 3 * rng.standard_normal(m)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_exact_entries_of_low_rank_are_recovered(share, rng):
    X = low_rank(rng)
    gaps = rng.random(X.shape) < share
    found = complete(np.where(gaps, np.nan, X))
    assert 4 <= found.rank <= 8  # without noise one more does no harm
    assert np.sqrt(np.square((found.X - X)[gaps]).mean()) < 0.02 * X.std()
    assert_array_equal(found.X[~gaps], X[~gaps])
    assert found.error < 0.05 * X.std()


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_hidden_frames_of_rigid_motions(share, seed):
    whole, _ = make_motions(3, 60, 30, noise=0.002, perspective=0.1, random_state=seed)
    X, _ = make_motions(3, 60, 30, noise=0.002, perspective=0.1, missing=share, random_state=seed)
    gaps = np.isnan(X)
    assert abs(gaps.mean() - share) < 0.04
    mean_filled = np.where(gaps, np.nanmean(X, axis=0), X)
    before, after = (np.sqrt(np.square((Y - whole)[gaps]).mean()) for Y in (mean_filled, complete(X, group=2).X))
    assert before > 0.3
    assert after < 0.008  # four times the tracker's error


def test_regressions_are_ridge_regressions(rng):
    X, V = rng.standard_normal((5, 9)), rng.standard_normal((9, 3))
    weights = (rng.random((5, 9)) < 0.7).astype(float)
    found = _regressions(np.where(weights > 0, X, 0), weights, V)
    for x, w, u in zip(X, weights, found, strict=True):
        A, b = V[w > 0], x[w > 0]
        stacked = np.vstack([A, np.sqrt(1e-4) * np.eye(3)])
        assert_allclose(u, np.linalg.lstsq(stacked, np.r_[b, np.zeros(3)], rcond=None)[0], atol=1e-9)


def test_the_same_every_time_in_single_precision_and_with_a_given_rank(rng):
    X = low_rank(rng).astype(np.float32)
    gaps = rng.random(X.shape) < 0.1
    X = np.where(gaps, np.float32(np.nan), X)
    assert_array_equal(complete(X).X, complete(X).X)
    found = complete(X, rank=5)
    assert found.X.dtype == np.float32
    assert found.rank == 5
    assert np.isnan(found.error)


def test_nothing_missing_is_nothing_done(rng):
    X = rng.standard_normal((4, 3))
    found = complete(X)
    assert found.X is X
    assert found.rank == 0


def test_few_entries(rng):
    """Rows with one entry, and matrices too small to hold anything out, are completed somehow."""
    X = rng.standard_normal((3, 4))
    X[0, 1:] = np.nan
    assert np.isfinite(complete(X).X).all()
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert np.isfinite(complete(X).X).all()


@pytest.mark.parametrize(("axis", "message"), [(1, "row 2 of X has no entry"), (0, "column 2 of X has no entry")])
def test_what_nothing_is_known_of_is_refused(axis, message, rng):
    X = rng.standard_normal((5, 6))
    X[(2, slice(None)) if axis else (slice(None), 2)] = np.nan
    with pytest.raises(ValueError, match=message):
        complete(X)


def test_memory_is_bounded(rng, monkeypatch):
    X = low_rank(rng, 600, 100)
    X[rng.random(X.shape) < 0.2] = np.nan
    tracemalloc.start()
    complete(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * X.nbytes
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 10**5)
    with pytest.raises(MemoryError, match="the completion of a 600 × 100 matrix needs"):
        complete(X)
