"""The graph W = |C| + |C|ᵀ, its components against a flood fill, joining against loops, lengths of edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from subspaces.graphs.affinity import affinity, components, edge_distances, fence, join_components
from subspaces.graphs.rules import truncate
from subspaces.representation.coefficients import from_dense, from_sparse


def flood_fill(W: np.ndarray) -> list[list[int]]:
    """Components with at least one edge, largest first, ties by first point."""
    seen: set[int] = set()
    found = []
    for start in range(len(W)):
        if start in seen or not W[start].any():
            continue
        members, todo = {start}, [start]
        while todo:
            for j in np.flatnonzero(W[todo.pop()]):
                if int(j) not in members:
                    members.add(int(j))
                    todo.append(int(j))
        seen |= members
        found.append(sorted(members))
    return sorted(found, key=lambda members: (-len(members), members[0]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_affinity_is_the_sum_of_magnitudes(dtype, rng):
    C = (rng.standard_normal((50, 50)) * (rng.random((50, 50)) < 0.2)).astype(dtype)
    np.fill_diagonal(C, 0)
    for convert in (sparse.csc_array, sparse.csr_array):
        W = affinity(convert(C))
        assert isinstance(W, sparse.csr_array)
        assert W.dtype == dtype
        assert W.has_canonical_format
        assert_array_equal(W.toarray(), np.abs(C) + np.abs(C).T)
        assert_array_equal(W.toarray(), W.T.toarray())


@given(arrays(np.float64, st.integers(1, 14).map(lambda n: (n, n)), elements=st.sampled_from([0.0] * 12 + [1.0, 0.5])))
def test_components_are_those_of_a_flood_fill(A):
    W = A + A.T
    np.fill_diagonal(W, 0)
    n_found, labels = components(sparse.csr_array(W))
    expected = flood_fill(W)
    assert n_found == len(expected)
    assert_array_equal(labels == -1, ~W.any(axis=1))
    for number, members in enumerate(expected):
        assert_array_equal(np.flatnonzero(labels == number), members)


def test_stored_zeros_are_no_edges():
    i, j = np.array([0, 1, 2, 3, 1, 2, 4, 5]), np.array([1, 0, 3, 2, 2, 1, 5, 4])
    W = sparse.csr_array((np.array([0.5, 0.5, 2, 2, 0, 0, 0, 0]), (i, j)), shape=(6, 6))
    n_found, labels = components(W)
    assert n_found == 2
    assert_array_equal(labels, [0, 0, 1, 1, -1, -1])


def test_a_point_with_a_loop_is_a_component():
    n_found, labels = components(sparse.csr_array(np.diag([0.0, 2, 0, 3])))
    assert n_found == 2
    assert_array_equal(labels, [-1, 0, -1, 1])


# ------------------------------------------------------------------ joining


def blocks_with_weak_ties(sizes, rng, weak=1e-3):
    """Coefficients strong within blocks and weak between them."""
    n = sum(sizes)
    block = np.repeat(np.arange(len(sizes)), sizes)
    C = np.zeros((n, n))
    C[:] = weak * (0.5 + rng.random((n, n)))
    C[block[:, None] == block] += 0.5 + rng.random(int((np.bincount(block) ** 2).sum()))
    C *= rng.choice([-1, 1], (n, n))
    np.fill_diagonal(C, 0)
    return C


def strong_graph(C: np.ndarray, threshold: float = 0.1) -> sparse.csr_array:
    return affinity(sparse.csc_array(np.where(np.abs(C) > threshold, C, 0)))


def check_only_added_edges(before, after):
    assert isinstance(after, sparse.csr_array)
    assert after.dtype == before.dtype
    assert_array_equal(after.toarray(), after.T.toarray())
    change = after.toarray() - before.toarray()
    assert (change >= 0).all()
    assert_array_equal(before.toarray()[change > 0], 0)
    assert (after.diagonal() == 0).all()
    return change


@given(st.lists(st.integers(2, 6), min_size=1, max_size=12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_joining_reaches_the_number_for_any_blocks(sizes, n_clusters, seed):
    C = blocks_with_weak_ties(sizes, np.random.default_rng(seed))
    W = strong_graph(C)
    joined = join_components(W, from_dense(C), n_clusters)
    check_only_added_edges(W, joined)
    assert components(joined)[0] == min(n_clusters, len(sizes))


def test_joining_in_blocks_gives_the_same(rng, monkeypatch):
    from subspaces.graphs import affinity as module

    C = blocks_with_weak_ties([3, 9, 4, 4, 12, 6], rng)
    W = affinity(truncate(from_dense(C), 2))
    expected = join_components(W, from_dense(C), 3).toarray()
    real = module.row_blocks
    monkeypatch.setattr(module, "row_blocks", lambda n, size: real(n, size, 5 * size))
    assert_array_equal(join_components(W, from_dense(C), 3).toarray(), expected)


def join_by_hand(W: np.ndarray, C: np.ndarray, n_clusters: int) -> np.ndarray:
    """What join_components promises, with lists and loops: pieces, their strongest ways out, the smallest first."""
    W, A = W.copy(), np.abs(C)
    scaled = np.array([column / column.max() if column.any() else column for column in A.T]).T
    S = scaled + scaled.T
    while True:
        pieces = flood_fill(W) + [[i] for i in range(len(W)) if not W[i].any() and A[:, i].any()]
        n_joins = len(pieces) - n_clusters
        piece_of = {i: number for number, members in enumerate(pieces) for i in members}
        ways_out = []
        for number, members in enumerate(pieces):
            out = [(S[i, j], -i, -j) for i in members for j in piece_of if piece_of[j] != number and S[i, j] > 0]
            if out:  # of equal ones the first
                weight, i, j = max(out)
                ways_out.append((len(members), -weight, number, -i, -j))
        if n_joins <= 0 or not ways_out:
            return W
        group = list(range(len(pieces)))
        for size, minus_weight, number, i, j in sorted(ways_out):
            mine, other = group[number], group[piece_of[j]]
            if size <= 2 * min(ways_out)[0] and n_joins > 0 and mine != other:
                W[i, j] = W[j, i] = -minus_weight
                group = [other if g == mine else g for g in group]
                n_joins -= 1


@pytest.mark.parametrize("wrap", [from_dense, lambda C: from_sparse(sparse.csr_array(C))])
@pytest.mark.parametrize("density", [0.04, 0.3])
def test_joining_is_what_it_promises(wrap, density, rng):
    """Random coefficients, a graph of the largest few: pairs, loose points, pieces that nothing leaves."""
    for _ in range(60):
        n = int(rng.integers(6, 25))
        C = rng.standard_normal((n, n)) * (rng.random((n, n)) < density)
        np.fill_diagonal(C, 0)
        W = strong_graph(C, rng.uniform(0.5, 2.5))
        n_clusters = int(rng.integers(1, 6))
        joined = join_components(W, wrap(C), n_clusters)
        assert_allclose(joined.toarray(), join_by_hand(W.toarray(), C, n_clusters), rtol=1e-12)


@pytest.mark.parametrize("wrap", [from_dense, lambda C: from_sparse(sparse.csr_array(C))])
def test_a_point_that_is_used_but_not_represented_does_not_stop_the_joining(wrap):
    """The loose point 6 leans most on 7, which has no coefficients of its own; the next best is the first block."""
    C = np.zeros((8, 8))
    C[:3, :3] = C[3:6, 3:6] = 1 - np.eye(3)
    C[7, 6], C[0, 6] = 0.09, 0.05
    _, labels = components(join_components(strong_graph(C), wrap(C), 2))
    assert_array_equal(labels, [0, 0, 0, 1, 1, 1, 0, -1])


def test_equal_ties_make_no_cycle():
    """Three pairs tied in a ring by equal coefficients, and a fourth: three edges join them, none of them twice."""
    C = np.kron(np.eye(4), 1 - np.eye(2))
    for i, j, c in ((0, 3, 0.05), (1, 4, 0.05), (2, 5, 0.05), (0, 6, 0.01)):
        C[i, j] = C[j, i] = c
    W = strong_graph(C)
    joined = join_components(W, from_dense(C), 1)
    assert components(joined)[0] == 1
    assert joined.nnz == W.nnz + 2 * 3


def test_edge_distances_and_their_fence(rng):
    X = rng.standard_normal((30, 4))
    W = (rng.random((30, 30)) < 0.2) * rng.random((30, 30))
    W[7] = 0
    lengths = np.linalg.norm(X[:, None] - X, axis=2)
    with np.errstate(invalid="ignore"):
        expected = (W * lengths).sum(axis=1) / W.sum(axis=1)
    found = edge_distances(sparse.csr_array(W), X)
    assert_allclose(found, expected, rtol=1e-12)
    assert_array_equal(np.isnan(found), np.arange(30) == 7)
    low, high = np.quantile(np.log(expected[np.arange(30) != 7]), [0.25, 0.75])
    assert_allclose(np.log(fence(np.r_[found, 0.0])), high + 1.5 * (high - low))  # copies do not count
    assert fence(np.zeros(3)) == np.inf
