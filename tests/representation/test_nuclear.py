"""Shared parts of the low-rank solvers: reduction, shrinkage exact and on a subspace, trace."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from subspaces.representation import _nuclear
from subspaces.representation._nuclear import (
    Shrinkage,
    singular_value_shrinkage,
)
from subspaces.utils.types import Array

# ------------------------------------------------------------------ warm started shrinkage


def matrix_of_rank(rng: np.random.Generator, n: int, r: int, rank: int) -> Array:
    """Return a tall matrix with `rank` singular values from 1.2 to 3 and the others below 0.9."""
    left, right = (np.linalg.qr(rng.normal(size=(size, r)))[0] for size in (n, r))
    values = np.r_[rng.uniform(1.2, 3, size=rank), rng.uniform(0, 0.9, size=r - rank)]
    return (left * values) @ right.T


@pytest.mark.parametrize("threshold", [1.0, 0.5])
def test_shrinkage_follows_a_slowly_changing_matrix(rng, monkeypatch, threshold):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    M = threshold * matrix_of_rank(rng, 60, 40, 8)
    step = 1e-3 * rng.normal(size=M.shape) / np.sqrt(M.size)
    shrink = Shrinkage(8, threshold)
    was_exact = []
    for _ in range(6):
        M = M + step
        low, expected = shrink(M), singular_value_shrinkage(M, 8, threshold)
        was_exact.append(shrink.is_exact)
        assert shrink.rank == len(low.singular_values) == len(expected.singular_values)
        assert_allclose(low.dense(), expected.dense(), atol=1e-4 * threshold)
        assert_allclose(low.right.T @ low.right, np.eye(shrink.rank), atol=1e-10)
        assert_allclose(low.left.T @ low.left, np.diag(low.singular_values**2), atol=1e-10)
    assert was_exact == [True] + [False] * 5
    assert not shrink.confirmed()
    assert_allclose(shrink(M).dense(), expected.dense(), atol=1e-10)
    assert shrink.confirmed()


def test_shrinkage_notices_new_directions(rng, monkeypatch):
    monkeypatch.setattr(_nuclear, "SUBSPACE_SIZE", 10)
    shrink = Shrinkage(5)
    shrink(matrix_of_rank(rng, 60, 50, 5))
    for rank in (5, 12, 30, 0):
        M = matrix_of_rank(rng, 60, 50, rank)
        low = shrink(M)
        assert len(low.singular_values) == rank
        if shrink.is_exact:
            assert_allclose(low.dense(), singular_value_shrinkage(M, rank).dense(), atol=1e-10)
