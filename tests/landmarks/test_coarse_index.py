"""The coarse search against the exact one."""

from __future__ import annotations

import numpy as np
import pytest

from subspaces.landmarks.bipartite import approximate_nearest, coarse_index
from subspaces.utils.centroids import nearest


def test_search_is_exact_when_all_representatives_are_candidates(rng):
    X, points = rng.normal(size=(300, 3)), rng.normal(size=(40, 3))
    indices, distances = approximate_nearest(X, coarse_index(points, 4, 0), 4)  # 41 candidates of 40
    exact, exact_distances = nearest(X, points, 4)
    np.testing.assert_array_equal(indices, exact)
    np.testing.assert_allclose(distances, exact_distances, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recall_of_the_search(rng, dtype):
    X, points = rng.normal(size=(2000, 4)).astype(dtype), rng.normal(size=(400, 4)).astype(dtype)
    indices, distances = approximate_nearest(X, coarse_index(points, 5, 0), 5)
    assert distances.dtype == dtype
    assert (np.diff(distances, axis=1) >= 0).all()
    true = ((X - points[indices[:, 0]]) ** 2).sum(axis=1)
    np.testing.assert_allclose(distances[:, 0], true, rtol=1e-3, atol=1e-5)
    exact, _ = nearest(X, points, 5)
    recall = np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(indices, exact, strict=True)])
    assert recall > 0.9
    assert all(len(set(row)) == 5 for row in indices)


def test_groups_hold_every_representative_once(rng):
    index = coarse_index(rng.normal(size=(150, 2)), 3, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(index.members)), np.arange(150))
    assert all(len(members) for members in index.members)
    assert len(index.centres) == len(index.members) <= 12
    np.testing.assert_array_equal(index.around[:, 0], np.arange(150))
