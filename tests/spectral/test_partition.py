"""Partitions of perfect graphs, modularity against its double sum, and merging against recomputation from scratch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import block_diag
from sklearn.metrics import adjusted_rand_score

from subspaces.spectral.assign import cut_embedding
from subspaces.spectral.embedding import spectral_embedding, unit_rows
from subspaces.spectral.partition import (
    cut_by_modularity,
    distinct_communities,
    merge_communities,
    merge_steps,
    modularity,
)
from subspaces.utils.ordering import first_largest

EMBEDDING_METHODS = ["kmeans", "cluster_qr", "discretize"]


def random_graph(n: int, rng: np.random.Generator, density: float = 0.3) -> np.ndarray:
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    A[np.arange(n - 1), np.arange(1, n)] += 0.2
    return A + A.T


def blocks(sizes: list[int], rng: np.random.Generator) -> tuple[sparse.csr_array, np.ndarray]:
    """Disconnected blocks in random order, and the truth."""
    W = sparse.csr_array(block_diag(*[0.5 * (1 - np.eye(size)) + random_graph(size, rng) for size in sizes]))
    truth = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(truth))
    return W[order][:, order], truth[order]


def double_sum(A: np.ndarray, labels: np.ndarray, resolution: float = 1.0) -> float:
    degree, total = A.sum(axis=1), A.sum()
    value = 0.0
    for i, j in itertools.product(range(len(A)), repeat=2):
        if labels[i] == labels[j]:
            value += A[i, j] - resolution * degree[i] * degree[j] / total
    return value / total


# ------------------------------------------------------------------ cutting the embedding


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", EMBEDDING_METHODS)
@pytest.mark.parametrize("sizes", [[20, 30], [5, 6, 40, 7], [12] * 10])
def test_perfect_blocks_are_recovered(sizes, method, dtype, rng):
    W, truth = blocks(sizes, rng)
    Y = unit_rows(spectral_embedding(W.astype(dtype), len(sizes)).vectors)
    before = Y.copy()
    labels = cut_embedding(Y, len(sizes), method=method, seed=3)
    assert labels.dtype == np.intp
    assert labels.shape == truth.shape
    assert_array_equal(np.unique(labels), np.arange(len(sizes)))
    assert adjusted_rand_score(truth, labels) == 1
    assert_array_equal(Y, before)


@pytest.mark.parametrize("method", EMBEDDING_METHODS)
def test_one_cluster(method, rng):
    assert_array_equal(cut_embedding(rng.standard_normal((7, 1)), 1, method=method), np.zeros(7))


@pytest.mark.parametrize("method", EMBEDDING_METHODS)
def test_more_columns_than_clusters(method, rng):
    """A graph with five components has five null vectors; three clusters asked for are three clusters."""
    W, _ = blocks([10, 12, 14, 16, 18], rng)
    Y = unit_rows(spectral_embedding(W, 3).vectors)
    assert Y.shape[1] == 5
    labels = cut_embedding(Y, 3, method=method, seed=0)
    assert len(np.unique(labels)) <= 3
    assert labels.max() < 3


# ------------------------------------------------------------------ modularity


@pytest.mark.parametrize("resolution", [0.5, 1.0, 2.0])
def test_modularity_is_the_double_sum(resolution, rng):
    A = random_graph(25, rng)
    labels = rng.integers(0, 4, 25)
    for convert in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
        assert_allclose(modularity(convert(A), labels, resolution), double_sum(A, labels, resolution), atol=1e-12)
    assert_allclose(modularity(sparse.csr_array(A.astype(np.float32)), labels), double_sum(A, labels), atol=1e-6)
    assert_allclose(modularity(sparse.csr_array(A), np.zeros(25, dtype=int)), 0, atol=1e-12)


@given(st.integers(2, 8), st.sampled_from([0.25, 0.5, 1.0]), st.integers(0, 2**32 - 1))
def test_distinct_communities_are_joined_while_modularity_of_that_resolution_rises(n_found, share, seed):
    rng = np.random.default_rng(seed)
    A = random_graph(24, rng, 0.05)
    labels = np.r_[np.arange(n_found), rng.integers(0, n_found, 24 - n_found)]
    expected, value = labels, double_sum(A, labels, share)
    while len(np.unique(expected)) > 1:
        pairs = itertools.combinations(np.unique(expected), 2)
        merged = [np.where(expected == b, a, expected) for a, b in pairs]
        values = [double_sum(A, each, share) for each in merged]
        if max(values) <= value + 1e-9:
            break
        expected, value = merged[int(np.argmax(values))], max(values)
    assert adjusted_rand_score(expected, distinct_communities(sparse.csr_array(A), labels, share, tie=0)) == 1


def test_halves_of_one_piece_are_joined_and_pieces_apart_are_not(rng):
    """Five pieces, two with a bridge far below chance; each comes in two random halves."""
    A, truth = islands([30, 40, 20, 20, 10], [(0, 1)], 1)
    halves = 2 * truth + rng.integers(0, 2, len(truth))
    assert_array_equal(distinct_communities(sparse.csr_array(A), np.unique(halves, return_inverse=True)[1]), truth)


def test_a_few_edges_join_no_two_of_many_communities():
    """Sixty pieces, each with a hundredth of its edges to the next: more than half of chance, and still apart."""
    A, truth = islands([10] * 60, [(i, i + 1) for i in range(59)], 1)
    assert_array_equal(distinct_communities(sparse.csr_array(A), truth), truth)
    assert len(np.unique(distinct_communities(sparse.csr_array(A), truth, tie=0))) < 60


def islands(sizes: list[int], bridges: list[tuple[int, int]], bridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Complete graphs of these sizes one after the other, the first points of some connected."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    A = (truth[:, None] == truth).astype(float)
    starts = np.searchsorted(truth, np.arange(len(sizes)))
    for a, b in bridges:
        A[starts[a], starts[b]] = A[starts[b], starts[a]] = bridge
    return A, truth


@pytest.mark.parametrize("n_tiny", [1, 5])
@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e3])
def test_tiny_components_do_not_take_the_place_of_clusters(n_tiny, weight):
    """Pairs of points without an edge to the rest, beside three clusters that a few edges connect."""
    A, truth = islands([200, 150, 120, *[2] * n_tiny], [(0, 1), (1, 2)], 1)
    A[470:] *= weight
    merged = merge_communities(sparse.csr_array(A), truth, 3)
    assert_array_equal(merged, np.where(truth < 3, truth, 0))  # they join the largest
    assert_array_equal(merge_communities(sparse.csr_array(A), truth, 3 + n_tiny), truth)


def test_small_islands_are_not_tiny():
    """A fiftieth of a typical cluster is enough to be one; a piece with an edge goes where the edge leads."""
    A, truth = islands([100, 100, 2], [(0, 1)], 1)
    assert_array_equal(merge_communities(sparse.csr_array(A), truth, 2), truth // 2)
    A, truth = islands([300, 200, 2], [(0, 1), (1, 2)], 1e-3)
    assert_array_equal(merge_communities(sparse.csr_array(A), truth, 2), np.minimum(truth, 1))


def steps_over_all_pairs(A: np.ndarray, labels: np.ndarray, n_clusters: int) -> list[tuple[int, int]]:
    """The merges with every pair looked at in every step, in a dense matrix."""
    indicator = np.eye(labels.max() + 1)[labels]
    between = indicator.T @ A @ indicator / A.sum()
    degree, alive, sizes = between.sum(axis=1), np.arange(len(between)), np.bincount(labels)
    by_size = np.sort(sizes)
    typical = by_size[np.searchsorted(np.cumsum(by_size), len(labels) / 2)]
    alone = (between - np.diag(between.diagonal()) == 0).all(axis=1)
    tiny = [c for c in np.argsort(sizes, kind="stable") if alone[c] and 50 * sizes[c] < typical]
    steps = []
    while len(alive) > n_clusters:
        if tiny:
            a, b = sizes.argmax(), tiny.pop(0)
        else:
            change = between - np.outer(degree, degree) - np.where(between == 0, 2, 0) + 4
            np.fill_diagonal(change, -np.inf)
            a, b = alive[list(divmod(first_largest(change[np.ix_(alive, alive)]), len(alive)))]
        between[a] += between[b]
        between[:, a] += between[:, b]
        degree[a] += degree[b]
        alive = alive[alive != b]
        steps.append((int(a), int(b)))
    return steps


WEIGHTS = {
    "ones": lambda rng, n: np.ones((n, n)),
    "integers": lambda rng, n: rng.integers(1, 4, (n, n)).astype(float),
    "real": lambda rng, n: rng.random((n, n)),
    "of every size": lambda rng, n: 10.0 ** rng.uniform(-12, 0, (n, n)),
}


@pytest.mark.parametrize("density", [0.0, 0.02, 0.1, 1.0])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_steps_are_those_over_all_pairs(weights, density, rng):
    """The same pairs in the same order: with ties, without, with pieces, empty communities and tiny components."""
    for n in (2, 9, 33, 64):
        A = np.triu(WEIGHTS[weights](rng, n) * (rng.random((n, n)) < density), 1)
        A[0, 1] = 1
        A = block_diag(A, A, np.ones((70, 70)))
        A = A + A.T
        for labels in (np.arange(n), rng.integers(0, n, n), np.minimum(rng.geometric(0.1, n), n)):
            others = labels.max() + 1 + rng.permutation(labels)
            for last in (np.full(70, others.max() + 1), others.max() + 1 + np.arange(70) // 7):  # tiny, not tiny
                cut = np.r_[labels, others, last]
                expected = steps_over_all_pairs(A, cut, 1)
                assert list(merge_steps(sparse.csr_array(A), cut)) == expected
                assert list(merge_steps(sparse.csr_array(A), cut, 5)) == expected[:-4]


@pytest.mark.parametrize("sizes", [[1] * 300, [2] * 150, [3, 1, 2] * 50])
def test_steps_between_many_pieces(sizes):
    """No edge between any two: the smallest products of degrees, of equal ones the first."""
    A = block_diag(*[np.ones((size, size)) for size in sizes])
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert list(merge_steps(sparse.csr_array(A), labels)) == steps_over_all_pairs(A, labels, 1)


def test_many_communities_are_merged_in_sparse_memory():
    """12,000 communities in a row and 3,000 without an edge: a dense matrix of them would take 1.8 GB."""
    n = 15_000
    W = sparse.diags_array([np.r_[np.ones(11_999), np.zeros(3_000)]], offsets=[1], shape=(n, n))
    merged = merge_communities(sparse.csr_array(W + W.T), np.arange(n), 3_002)
    assert_array_equal(np.bincount(merged)[2:], np.ones(3_000))
    assert_array_equal(np.flatnonzero(np.diff(merged))[1:], np.arange(11_999, n - 1))


# ------------------------------------------------------------------ Leiden


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sizes", [[20, 30], [10, 11, 40, 12], [12] * 10])
def test_modularity_recovers_perfect_blocks(sizes, dtype, rng):
    W, truth = blocks(sizes, rng)
    labels = cut_by_modularity(W.astype(dtype), len(sizes), seed=1)
    assert labels.dtype == np.intp
    assert_array_equal(np.unique(labels), np.arange(len(sizes)))
    assert adjusted_rand_score(truth, labels) == 1


def test_number_of_clusters_is_found(rng):
    W, truth = blocks([15] * 6, rng)
    assert adjusted_rand_score(truth, cut_by_modularity(W, None, seed=1)) == 1


@pytest.mark.parametrize("n_clusters", [1, 2, 4, 5, 9, 30, 60])
def test_any_number_of_clusters_is_reached(n_clusters, rng):
    """Fewer than the communities: merged. More: the resolution is raised until there are enough."""
    W, truth = blocks([15] * 4, rng)
    labels = cut_by_modularity(W, n_clusters, seed=1)
    assert_array_equal(np.unique(labels), np.arange(n_clusters))
    if n_clusters >= 4:
        for label in range(n_clusters):
            assert len(np.unique(truth[labels == label])) == 1


def test_points_without_edges_are_communities_of_their_own(rng):
    W, truth = blocks([10, 12], rng)
    W = sparse.csr_array(sparse.block_diag([W, sparse.csr_array((3, 3))]))
    labels = cut_by_modularity(W, None, seed=0)
    assert adjusted_rand_score(np.r_[truth, 2, 3, 4], labels) == 1


@pytest.mark.parametrize("n_clusters", [None, 2])
def test_graph_without_edges(n_clusters):
    """No Rust panic (a BaseException that nobody catches): either singletons or a ValueError that says why."""
    try:
        labels = cut_by_modularity(sparse.csr_array((4, 4)), n_clusters)
    except ValueError as error:
        assert "edge" in str(error)  # noqa: PT017
    else:
        assert len(np.unique(labels)) == (4 if n_clusters is None else n_clusters)
