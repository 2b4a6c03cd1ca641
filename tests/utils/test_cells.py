"""Cells and the search in them, against looking at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from subspaces.utils import cells as cells_module
from subspaces.utils.cells import build_cells, nearest_cell, nearest_cells, search


def negative_distances(points, others=None):
    others = points if others is None else others

    def scores(rows, around, dtype):
        values = -((points[rows, None] - others[around]) ** 2).sum(axis=2).astype(dtype)
        if others is points:
            values[np.arange(rows.start, rows.stop)[:, None] == around] = -np.inf
        return values, 0.0

    return scores


def brute_force(X, k):
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.sort(np.argsort(distances, axis=1, kind="stable")[:, :k], axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cells_hold_every_point_once_and_stay_small(seed, dtype):
    X = np.random.default_rng(seed).standard_normal((3000, 4)).astype(dtype)
    cells = build_cells(X, size=50, seed=seed)
    assert sorted(cells.order) == list(range(3000))
    sizes = np.diff(cells.bounds)
    assert sizes.min() >= 1
    assert sizes.max() <= 75
    assert cells.centroids.dtype == np.float64
    for c in (0, cells.n_cells - 1):
        members = cells.order[cells.bounds[c] : cells.bounds[c + 1]]
        np.testing.assert_allclose(cells.centroids[c], X[members].mean(axis=0, dtype=np.float64), rtol=1e-12)
        assert (cells.labels()[members] == c).all()


def test_search_is_exact_while_all_cells_are_probed(seed):
    X = np.random.default_rng(seed).standard_normal((700, 5))
    cells = build_cells(X, size=20, seed=seed)
    found = np.sort(cells.order[search(cells, 6, negative_distances(X[cells.order]))], axis=1)
    assert (found == brute_force(X, 6)[cells.order]).all()


@pytest.mark.parametrize("kind", ["general", "near ties", "copies", "grid"])
def test_a_draft_with_errors_finds_what_exact_scores_find(seed, kind):
    """Scores of single precision, here with far larger errors, only say where to look."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((900, 3))
    if kind == "near ties":
        X = np.repeat(X[:90], 10, axis=0) + 1e-7 * rng.standard_normal((900, 3))
    elif kind == "copies":
        X = np.repeat(X[:30], 30, axis=0)
    elif kind == "grid":
        X = X.round(1)
    cells = build_cells(X, size=30, seed=seed)
    exact = negative_distances(X[cells.order])
    size, asked = 1e-3, []

    def scores(rows, around, dtype):
        values, _ = exact(rows, around, np.float64)
        if dtype == np.float64:
            return values, 0.0
        return (values + rng.uniform(-size, size, values.shape)).astype(np.float32), 1.01 * size + 1e-6

    def pairs(rows, columns):
        asked.append(columns.size)
        points = X[cells.order]
        values = -((points[rows, None] - points[columns]) ** 2).sum(axis=2)
        values[columns == rows[:, None]] = -np.inf
        return values

    assert (search(cells, 7, scores, pairs) == search(cells, 7, exact)).all()
    if kind == "general":
        assert 0 < sum(asked) < 0.1 * len(X) ** 2


def test_search_finds_most_neighbours_when_few_cells_are_probed(seed, monkeypatch):
    monkeypatch.setattr(cells_module, "PROBED_POINTS", 400)
    X = np.random.default_rng(seed).standard_normal((4000, 3))
    cells = build_cells(X, size=32, seed=seed)
    found = cells.order[search(cells, 10, negative_distances(X[cells.order]))]
    truth = brute_force(X, 10)[cells.order]
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, truth, strict=True)]) > 0.95


def test_equal_points_are_split_by_index(seed):
    X = np.repeat(np.random.default_rng(seed).standard_normal((2, 3)), [1000, 30], axis=0)
    cells = build_cells(X, size=40, seed=seed)
    assert np.diff(cells.bounds).max() <= 60
    found = search(cells, 5, negative_distances(X[cells.order]))
    assert (found != np.arange(len(X))[:, None]).all()
    assert (X[cells.order][found] == X[cells.order][:, None]).all()


def test_tiny_cells_still_give_enough_neighbours(seed, monkeypatch):
    monkeypatch.setattr(cells_module, "PROBED_POINTS", 1)
    monkeypatch.setattr(cells_module, "_MAX_PROBES", 2)
    X = np.random.default_rng(seed).standard_normal((60, 2))
    cells = build_cells(X, size=2, seed=seed)
    found = search(cells, 20, negative_distances(X[cells.order]))
    assert all(len(set(row)) == 20 and i not in row for i, row in enumerate(found))


def test_same_result_for_every_number_of_threads(seed):
    X = np.random.default_rng(seed).standard_normal((3000, 6)).astype(np.float32)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            cells = build_cells(X, size=64, seed=seed)
            results.append((cells.order, search(cells, 8, negative_distances(X[cells.order]))))
    assert (results[0][0] == results[1][0]).all()
    assert (results[0][1] == results[1][1]).all()


def test_nearest_cells_are_sorted_by_distance(seed):
    rng = np.random.default_rng(seed)
    queries, centroids = rng.standard_normal((20, 3)), rng.standard_normal((40, 3))
    distances = ((queries[:, None] - centroids) ** 2).sum(axis=2)
    assert (nearest_cells(queries, centroids) == np.argsort(distances, axis=1)).all()
    assert (nearest_cell(queries, centroids) == distances.argmin(axis=1)).all()
