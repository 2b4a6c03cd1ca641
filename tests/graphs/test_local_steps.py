"""LSA, TSC and the heat kernel at their edges: defaults, limits of the arguments, rounding, scales and types."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from subspaces.graphs import local as module
from subspaces.graphs.local import heat_kernel_graph, lsa
from subspaces.representation.neighbors import tsc
from subspaces.utils import blocks
from subspaces.utils.distances import check_points, columns_to_sparse
from subspaces.utils.types import Array


@pytest.fixture
def X(rng) -> Array:
    """Points near three planes of a 7-dimensional space."""
    clean = np.concatenate([rng.normal(size=(10, 2)) @ rng.normal(size=(2, 7)) for _ in range(3)])
    return clean + 0.1 * rng.normal(size=clean.shape)


def with_singular_values(values: list[float], n: int, m: int, rng: np.random.Generator) -> Array:
    left, right = (np.linalg.qr(rng.normal(size=(size, len(values))))[0] for size in (n, m))
    return (left * np.array(values)) @ right.T


def slow_lsa(X: Array, subspace_dim: int, n_neighbors: int, rank: int) -> Array:
    points = np.linalg.svd(X, full_matrices=False)[0][:, :rank]
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    projections = []
    for point in points:
        members = np.argsort(-np.abs(points @ point))[: n_neighbors + 1]  # first of all the point itself
        basis = np.linalg.svd(points[members])[2][:subspace_dim]
        projections.append(basis.T @ basis)
    overlap = np.einsum("ikl,jkl->ij", projections, projections)
    return np.exp(overlap - subspace_dim) * (1 - np.eye(len(X)))


# --- LSA --------------------------------------------------------------------------------------------------------


def test_lsa_defaults(X):
    assert_array_equal(lsa(X), lsa(X, subspace_dim=4, n_neighbors=6, rank=None))
    assert not np.allclose(lsa(X), lsa(X, subspace_dim=5))
    assert not np.allclose(lsa(X), lsa(X, n_neighbors=7))


@pytest.mark.parametrize(("asked", "rank", "dim"), [(1, 2, 1), (3, 2, 1), (3, 3, 2), (2, 3, 2), (5, 6, 5), (9, 5, 4)])
def test_local_subspaces_do_not_fill_the_space(X, asked, rank, dim):
    assert_allclose(lsa(X, subspace_dim=asked, n_neighbors=6, rank=rank), slow_lsa(X, dim, 6, rank), atol=1e-8)


def test_one_direction_has_one_subspace(X):
    assert_allclose(lsa(X, subspace_dim=3, rank=1), 1 - np.eye(len(X)), atol=1e-12)


def test_few_neighbours_span_no_more_than_they_are(X):
    assert_allclose(lsa(X, subspace_dim=4, n_neighbors=1, rank=7), slow_lsa(X, 2, 1, 7), atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_subspaces_have_affinity_one_and_not_more(dtype, rng):
    X = np.zeros((60, 11))
    for block in range(3):
        X[20 * block : 20 * block + 20, 3 * block : 3 * block + 3] = rng.normal(size=(20, 3))
    X = (X @ np.linalg.qr(rng.normal(size=(11, 11)))[0]).astype(dtype)
    W = lsa(X, subspace_dim=3, n_neighbors=8, rank=9)
    assert W.max() <= 1
    same = np.kron(np.eye(3), np.ones((20, 20))) > 0
    expected = np.where(same, 1, np.exp(-3)) * (1 - np.eye(60))
    assert_allclose(W, expected, atol=1e-4 if dtype == np.float32 else 1e-9)
    # beyond the rank of the neighbourhoods directions are rounding
    assert_allclose(lsa(X, subspace_dim=5, n_neighbors=8, rank=9), expected, atol=1e-3 if dtype == np.float32 else 1e-7)


@pytest.mark.parametrize(
    ("shares", "subspace_dim", "rank"),
    [
        ([0.5, 0.3, 0.175, 0.015, 0.01], 1, 4),
        ([0.5, 0.3, 0.175, 0.015, 0.01], 3, 4),
        ([0.5, 0.3, 0.175, 0.015, 0.01], 4, 5),
        ([0.97, 0.02, 0.006, 0.004], 1, 2),
        ([0.97, 0.02, 0.006, 0.004], 2, 3),
        ([0.99, 0.01], 1, 2),
    ],
)
@pytest.mark.parametrize("scale", [0.01, 30.0])
def test_default_rank_keeps_98_percent_of_the_energy(shares, subspace_dim, rank, scale, rng):
    X = with_singular_values((scale * np.sqrt(shares)).tolist(), 20, len(shares), rng)
    found = module._whiten(X, None, subspace_dim)
    assert found.shape == (20, rank)
    assert_allclose(found.T @ found, np.eye(rank), atol=1e-10)


def test_default_rank_is_at_most_a_hundred():
    assert module._whiten(np.eye(120), None, 4).shape == (120, 100)
    assert module._whiten(np.eye(120), None, 103).shape == (120, 104)
    assert module._whiten(np.eye(120), 110, 4).shape == (120, 110)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_is_at_most_the_numerical_one(dtype, rng):
    rounding = float(np.finfo(dtype).eps)
    X = with_singular_values([1.0, 0.9, 5 * rounding], 40, 8, rng).astype(dtype)
    for asked in (None, 2, 3, 8):
        assert module._whiten(X, asked, 4).shape == (40, 2)
    assert module._whiten(X, 1, 4).shape == (40, 1)
    assert_array_equal(module._whiten(np.zeros((5, 3), dtype), None, 4), np.zeros((5, 1)))


def test_scale_does_not_matter_in_float32(X):
    """Squares of the singular values have no value in single precision here."""
    X = X.astype(np.float32)
    for power in (-70, 70):
        assert_allclose(lsa(np.ldexp(X, power)), lsa(X), atol=1e-3)


def test_bases_have_the_precision_of_the_points(X):
    neighbours = np.arange(30)[:, None] - np.arange(1, 5)
    for dtype in (np.float32, np.float64):
        bases, dims = module._local_bases(X.astype(dtype), neighbours, 3)
        assert (bases.dtype, dims.dtype) == (dtype, dtype)
        assert bases.shape == (3, 30, 7)
        assert_array_equal(dims, 3)
        assert_allclose(np.einsum("hni,kni->nhk", bases, bases), np.tile(np.eye(3), (30, 1, 1)), atol=1e-5)


# --- TSC --------------------------------------------------------------------------------------------------------


def test_axes_are_points_like_others():
    """One coordinate that is not zero is a direction."""
    X = np.array([[2.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, 4, 0], [0, 0, 0]])
    expected = np.zeros((5, 5))
    expected[[0, 1, 2, 3], [1, 0, 3, 2]] = 1
    assert_allclose(tsc(X, n_neighbors=1).dense(), expected, atol=1e-7)
    assert_allclose(lsa(X[:4], subspace_dim=1, n_neighbors=1)[0], [0, 1, np.exp(-1), np.exp(-1)], atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cosines_above_one_are_rounding(dtype, rng):
    for m in range(2, 40):
        X = np.repeat(rng.normal(size=(4, m)), 2, axis=0).astype(dtype)
        C = tsc(X * np.array([1, -3, 1, 0.7, 1, 1, 1, -11], dtype=dtype)[:, None], n_neighbors=1).sparse()
        assert C.dtype == dtype
        pairs = C.toarray()[[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]]
        assert np.isfinite(C.data).all()
        assert_allclose(pairs, 1, atol=1e-2 if dtype == np.float32 else 1e-6)
        assert C.data.max() <= 1


@pytest.mark.parametrize("n_neighbors", [1, 2, 28, 29])
def test_every_number_of_neighbours_up_to_all_others(X, n_neighbors):
    C = tsc(X, n_neighbors=n_neighbors).sparse()
    assert_array_equal(np.diff(C.indptr), n_neighbors)
    cosines = np.abs(X @ X.T) / np.multiply.outer(*[np.linalg.norm(X, axis=1)] * 2)
    np.fill_diagonal(cosines, -1)
    for i in range(30):
        assert_array_equal(C.indices[C.indptr[i] : C.indptr[i + 1]], np.sort(np.argsort(cosines[i])[-n_neighbors:]))
    assert heat_kernel_graph(X, n_neighbors=n_neighbors).nnz >= 30 * n_neighbors
    assert lsa(X, subspace_dim=2, n_neighbors=n_neighbors).shape == (30, 30)


def test_columns_to_sparse_is_what_it_says():
    indices, values = np.array([[2, 1], [0, 2], [1, 0]]), np.array([[5.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    before = indices.copy(), values.copy()
    found = columns_to_sparse(indices, values)
    assert_array_equal(found.toarray(), [[0, 1, 4], [0, 0, 3], [5, 2, 0]])
    assert (found.nnz, found.format, found.has_sorted_indices) == (5, "csc", True)
    assert_array_equal(indices, before[0])
    assert_array_equal(values, before[1])
    assert_array_equal(columns_to_sparse(np.array([[1], [0]]), np.array([[7.0], [8.0]])).toarray(), [[0, 8], [7, 0]])


# --- the heat kernel --------------------------------------------------------------------------------------------


def test_common_offset_costs_no_digits(X):
    offset = 1e6 * np.array([1, -1, 1, -1, 1, -1, 2.0])
    for options in ({}, {"bandwidth": 2.0}, {"n_neighbors": 3}):
        found, expected = heat_kernel_graph(X + offset, **options), heat_kernel_graph(X, **options)
        difference = found - expected
        assert np.abs(difference).max() < 1e-8


def test_variance_is_summed_in_double(rng):
    """The squares of these points have a value in single precision, their sum has none."""
    X = rng.normal(size=(1000, 2)).astype(np.float32)
    expected = heat_kernel_graph(X, n_neighbors=2)
    found = heat_kernel_graph(np.ldexp(X, 60), n_neighbors=2)
    assert found.dtype == np.float32
    assert_allclose(found.toarray(), expected.toarray(), atol=1e-5)
    assert expected.data.min() < 0.999


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_points_are_fully_alike(dtype, rng):
    X = np.tile(rng.normal(size=5).astype(dtype), (7, 1))
    assert_array_equal(heat_kernel_graph(X), (1 - np.eye(7)).astype(dtype))
    assert_array_equal(heat_kernel_graph(X, n_neighbors=2).data, 1)


# --- arguments and blocks ---------------------------------------------------------------------------------------


def test_types_of_the_points(X):
    whole = np.round(5 * X)
    for function in (lambda X: lsa(X), lambda X: tsc(X, n_neighbors=3).dense(), heat_kernel_graph):
        expected = function(whole)
        for dtype in (np.int64, np.int8, np.float16):
            found = function(whole.astype(dtype))
            assert found.dtype == np.float64
            assert_allclose(found, expected, atol=1e-10)
    assert check_points(X.astype(np.float32), 1).dtype == np.float32


def test_two_points_are_enough_and_one_is_not():
    pair = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert_allclose(tsc(pair, n_neighbors=1).dense(), np.exp(-np.pi / 2) * (1 - np.eye(2)))
    assert_allclose(heat_kernel_graph(pair, bandwidth=1.0), np.exp(-0.5) * (1 - np.eye(2)))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        heat_kernel_graph(pair[:1])


@pytest.mark.parametrize("n_neighbors", [0, 30, -1])
def test_neighbours_that_do_not_exist_are_refused(X, n_neighbors):
    message = f"n_neighbors must be from 1 to n_samples - 1 = 29, got {n_neighbors}"
    for function in (lsa, tsc, heat_kernel_graph):
        with pytest.raises(ValueError, match=message):
            function(X, n_neighbors=n_neighbors)


def test_bandwidth_zero_is_refused(X):
    with pytest.raises(ValueError, match="bandwidth must be positive or None, got 0"):
        heat_kernel_graph(X, bandwidth=0)


@pytest.mark.parametrize("block_bytes", [1, 100, 1000])
def test_small_blocks_change_nothing(X, monkeypatch, block_bytes):
    functions = (lambda: lsa(X), lambda: tsc(X, n_neighbors=3).dense(), lambda: heat_kernel_graph(X))
    expected = [function() for function in functions]
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(module, "BLOCK_BYTES", block_bytes)
    for function, whole in zip(functions, expected, strict=True):
        assert_allclose(function(), whole, atol=1e-7)
