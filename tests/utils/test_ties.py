"""Numbers that tie, the canonical order of points, and what rests on them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from subspaces.spectral import assign, partition
from subspaces.utils.distances import nearest_neighbors
from subspaces.utils.ordering import (
    canonical_order,
    first_largest,
    first_smallest,
    hash_rows,
    inverse_of,
    levels,
    reordered,
    rows_of,
)


def test_first_largest():
    values = np.array([[1.0, 3.0, 3.0 + 1e-14], [2.0, 2.0 - 1e-13, 1.0], [-np.inf, -np.inf, -np.inf]])
    assert_array_equal(first_largest(values, axis=1), [1, 0, 0])
    assert first_largest(np.array([1.0, 1.0 + 1e-6])) == 1
    assert first_largest(np.array([1, 3, 3])) == 1
    assert first_largest(np.array([-2.0, -1.0 - 1e-13, -1.0])) == 1
    assert first_largest(np.array([1.0, 1.0 + 1e-6], dtype=np.float32)) == 0


def test_first_smallest(rng):
    values = rng.standard_normal((20, 9))
    assert_array_equal(first_smallest(values, 4), np.sort(np.argsort(values, axis=1)[:, :4], axis=1))
    tied = np.array([[2.0, 1.0, 1.0 - 1e-14, 1.0 + 1e-14, 0.0]])
    assert_array_equal(first_smallest(tied, 3), [[1, 2, 4]])
    assert_array_equal(first_smallest(tied[:, ::-1].copy(), 3), [[0, 1, 2]])
    few = np.array([[np.inf, 1.0, np.inf, np.inf]])
    assert_array_equal(first_smallest(few, 2), [[0, 1]])
    assert_array_equal(first_smallest(few, 9), [[0, 1, 2, 3]])


def test_levels():
    assert_array_equal(levels(np.array([3.0, 1.0, 3.0 - 1e-12, 2.0])), [2, 0, 2, 1])
    assert_array_equal(levels(np.array([2e-12, 1e-12])), [1, 0])  # small numbers are not ties
    assert_array_equal(levels(np.zeros(0)), [])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_canonical_order_is_that_of_the_points(kind, rng):
    X = np.round(rng.standard_normal((60, 4)))
    X[5] = 0
    order = canonical_order(kind(X), hash_rows(kind(X)))
    shuffle = rng.permutation(60)
    again = canonical_order(kind(X[shuffle]), hash_rows(kind(X[shuffle])))
    assert_array_equal(X[order], X[shuffle][again])
    assert_array_equal(np.sort(order), np.arange(60))


def test_canonical_order_of_generic_points(rng):
    X = rng.standard_normal((60, 4))
    order = canonical_order(X, hash_rows(X))
    for other in (X[:, ::-1], 3 * X, np.asfortranarray(X), sparse.csr_array(X), X * 1e300, X * 1e-300):
        assert_array_equal(canonical_order(other, hash_rows(other)), order)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_matrices_are_reordered(kind, rng):
    A = rng.standard_normal((8, 8)) * (rng.random((8, 8)) < 0.4)
    order = rng.permutation(8)
    found = reordered(kind(A), order)
    assert_array_equal(found.toarray(), A[np.ix_(order, order)])
    assert_array_equal(reordered(found, inverse_of(order)).toarray(), A)


def test_rows_are_taken_or_left(rng):
    X = rng.standard_normal((6, 6))
    assert rows_of(X, np.arange(6)) is X
    order = rng.permutation(6)
    assert_array_equal(rows_of(np.asfortranarray(X), order), X[order])
    assert_array_equal(rows_of(X, order, pairwise=True), X[np.ix_(order, order)])
    assert_array_equal(rows_of(X, np.arange(3)), X[:3])
    assert_array_equal(rows_of(sparse.csc_array(X), order, pairwise=True).toarray(), X[np.ix_(order, order)])


def test_neighbours_that_are_equally_far_go_by_their_order():
    angle = np.arange(6) * np.pi / 3
    X = np.vstack([np.zeros((1, 2)), np.c_[np.cos(angle), np.sin(angle)]])  # a hexagon around its centre
    distances, indices = nearest_neighbors(X, 2)
    assert_array_equal(np.sort(indices[0]), [1, 2])
    assert distances[0] == pytest.approx([1, 1])


def test_neighbours_are_the_nearest(rng):
    X = rng.standard_normal((300, 3)) + 1e4
    distances, indices = nearest_neighbors(X, 6)
    expected, nearest = NearestNeighbors(n_neighbors=6).fit(X).kneighbors()
    assert_array_equal(indices, nearest)
    assert_allclose(distances, expected, rtol=1e-9, atol=1e-9)
    X[7] = X[8]
    distances, indices = nearest_neighbors(X, 1)
    assert (indices[7, 0], distances[7, 0]) == (8, 0)


def test_starts_of_kmeans_are_exact(rng):
    """In single precision every product is the one of double precision: no processor can round it another way."""
    Y = rng.standard_normal((300, 8))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    points = assign._on_grid((Y / 1.01).astype(np.float32))
    search = assign._Search(points, 5, np.random.default_rng(0))
    centres = search.extend(points[:2])
    wide = points.astype(np.float64)
    exact = np.square(wide[:, None] - centres.astype(np.float64)).sum(axis=-1)
    assert_array_equal(search.distances(centres), exact)
    inertia, centres = search.descend(centres)
    assert_array_equal(centres * assign._GRID, np.rint(centres * assign._GRID))
    assert inertia == np.square(wide[:, None] - centres.astype(np.float64)).sum(axis=-1).min(axis=1).sum()


def test_leiden_does_not_see_the_last_bits(rng):
    W = sparse.random_array((200, 200), density=0.05, rng=rng, format="csr")
    W = sparse.csr_array(W + W.T)
    expected = partition.cut_by_modularity(W)
    for scale in (1.0, 2.0**-900, 2.0**900):
        other = W * scale
        other.data *= 1 + 1e-14 * rng.standard_normal(len(other.data))
        assert_array_equal(partition.cut_by_modularity(other), expected)


def test_columns_of_rounding_do_not_decide_the_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    orders = []
    for _ in range(2):
        noisy = np.c_[X, 1e-16 * rng.normal(size=40), 0.3 + 1e-16 * rng.integers(0, 2, 40)]
        orders.append(canonical_order(noisy, hash_rows(noisy)))
    np.testing.assert_array_equal(*orders)
