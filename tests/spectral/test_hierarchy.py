"""The tree of clusters: levels that nest, numbers against plain loops, formats that can be read back, odd graphs."""

from __future__ import annotations

import json
import sys
from itertools import chain

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from subspaces import KTRR
from subspaces.datasets import make_subspaces
from subspaces.metrics import adjusted_rand
from subspaces.spectral.hierarchy import ClusterTree, cluster_tree, cut_agglomeratively, merged
from subspaces.utils.ordering import in_order


def split_one_by_one(cuts, n_clusters, p_values=()) -> ClusterTree:
    """One leaf more than cuts, split off one by one; cuts and p-values of the splits, the coarsest first."""
    m = len(cuts) + 1
    merges = np.array([(0 if i == 0 else m + i - 1, i + 1) for i in range(m - 1)])
    sizes = np.r_[np.ones(m, dtype=int), np.arange(2, m + 1)]
    found = np.array(p_values or [np.nan] * (m - 1))[::-1]
    return ClusterTree(np.arange(m), merges, sizes, np.array(cuts)[::-1], np.zeros(m - 1), n_clusters, found)


def test_layers_are_where_the_next_split_cuts_much_more():
    """Twice as much as any above; three times, where the layer is finer than the labels."""
    cuts = [0.01, 0.05, 0.12, 0.4, 0.5]
    assert split_one_by_one(cuts, 2).layers == [2, 4]
    assert split_one_by_one(cuts, 4).layers == [2, 3, 4]
    assert split_one_by_one([0.01, 0.019, 0.05], 1).layers == [1]
    assert split_one_by_one([0.01, 0.019, 0.05], 3).layers == [3]


def test_no_layer_below_a_split_by_chance():
    cuts, p = [0.01, 0.05, 0.2, 0.9], [0.01, np.nan, 0.3, 0.01]
    assert split_one_by_one(cuts, 1).layers == [1, 2]  # no finer than twice the labels
    assert split_one_by_one(cuts, 2).layers == [2, 3, 4]
    assert split_one_by_one(cuts, 2, p).layers == [2, 3]
    assert split_one_by_one(cuts, 2, [0.01, 0.3, np.nan, np.nan]).layers == [2]


def blocks(rng, sizes, inside=0.5, between=0.03):
    """A graph with blocks of these sizes, more tightly tied inside than between; and the block of each point."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    share = np.where(labels[:, None] == labels, inside, between)
    upper = np.triu(rng.random(share.shape) < share, 1) * rng.uniform(0.2, 1, size=share.shape)
    return sparse.csr_array(upper + upper.T), labels


def shuffled(W, labels, rng):
    order = rng.permutation(len(labels))
    return sparse.csr_array(W[order][:, order]), labels[order], order


@pytest.fixture
def tree(rng):
    return cluster_tree(*blocks(rng, [30, 20, 25, 15, 40]))


@pytest.fixture(scope="module")
def data():
    return make_subspaces(4, 2, 12, 30, noise=0.05, random_state=0)


# ---------------------------------------------------------------- levels


def test_levels_nest(tree):
    finer = tree.labels_at(tree.n_leaves)
    np.testing.assert_array_equal(finer, in_order(tree.leaves))
    for k in range(tree.n_leaves - 1, 0, -1):
        labels = tree.labels_at(k)
        assert labels.max() + 1 == k
        assert len(set(zip(finer.tolist(), labels.tolist(), strict=True))) == k + 1  # one pair of pieces became one
        split = tree.split(k)  # and it is the pair that the tree says
        rows = tree.members(tree.n_leaves + split)
        assert len(set(labels[rows].tolist())) == 1
        assert len(set(finer[rows].tolist())) == 2
        finer = labels


def test_the_level_of_the_labels_is_the_labels(rng):
    W, labels = blocks(rng, [20, 30, 10, 25])
    for given in (labels, in_order(rng.integers(0, 7, len(labels))), 3 * labels - 5):
        tree = cluster_tree(W, given)
        assert tree.n_clusters == len(set(given.tolist()))
        np.testing.assert_array_equal(tree.labels_at(tree.n_clusters), in_order(given))


@pytest.mark.parametrize("k", [0, -1, 10_000])
def test_levels_that_are_not_there(tree, k):
    with pytest.raises(ValueError, match=rf"n_clusters={k} must be from 1 to {tree.n_leaves}, the leaves of this tree"):
        tree.labels_at(k)


def test_layers_are_levels_of_nested_blocks(rng):
    _, fine = blocks(rng, [25] * 6)
    coarse = fine // 3
    share = np.where(fine[:, None] == fine, 0.6, np.where(coarse[:, None] == coarse, 0.06, 0.003))
    upper = np.triu(rng.random(share.shape) < share, 1).astype(float)
    tree = cluster_tree(sparse.csr_array(upper + upper.T), fine)
    assert tree.layers[:2] == [2, 6]
    assert adjusted_rand(coarse, tree.labels_at(2)) == 1
    chance = ClusterTree(**{**vars(tree), "p_value": np.full(len(tree.merges), 0.5)})
    assert chance.layers == [6]  # splits that are chance carry no layer, the labels stay


# ---------------------------------------------------------------- slow references


def slow_cut(W, one, other):
    def inside(piece):
        return sum(W[i, j] for i in piece for j in piece)

    crossing = sum(W[i, j] for i in one for j in other)
    total = min(inside(one), inside(other)) + crossing
    return crossing / total if total else 0.0


def slow_return(W, one, other):
    """A walker crosses an edge, each as likely as it is heavy; how likely does the next step cross again?"""
    back = weight = 0.0
    for here, there in ((one, other), (other, one)):
        for j in there:
            arrives = sum(W[i, j] for i in here)
            if arrives:
                leaves = sum(W[j, i] for i in here)
                back += arrives * leaves / (leaves + sum(W[j, i] for i in there))
                weight += arrives
    return back / weight if weight else 0.0


def slow_merges(W, pieces, groups):
    """Pairs of sets of points, in the order in which they are merged."""
    alive = {p: (np.flatnonzero(pieces == p).tolist(), groups[p]) for p in range(pieces.max() + 1)}
    total, pairs = W.sum(), []

    def tie(a, b):
        volumes = [W[points].sum() / total for points, _ in (alive[a], alive[b])]
        return (W[np.ix_(alive[a][0], alive[b][0])].sum() / total) / (volumes[0] * volumes[1]) ** 0.75

    while len(alive) > 1:
        every = [(a, b) for a in alive for b in alive if a < b]
        own = [(a, b) for a, b in every if alive[a][1] == alive[b][1]] or every
        a, b = max(own, key=lambda pair: tie(*pair))
        pairs.append((alive[a][0], alive[b][0]))
        alive[a] = (alive[a][0] + alive[b][0], alive[a][1])
        del alive[b]
    return pairs


def test_cut_and_return_are_those_of_loops(rng):
    W, labels = blocks(rng, [9, 7, 12, 6])
    tree, dense = cluster_tree(W, labels), W.toarray()
    assert len(tree.merges) >= 4
    for i, (a, b) in enumerate(tree.merges):
        one, other = tree.members(a), tree.members(b)
        assert tree.cut[i] == pytest.approx(slow_cut(dense, one, other), abs=1e-12)
        assert tree.returns[i] == pytest.approx(slow_return(dense, one, other), abs=1e-12)
    assert ((tree.cut >= 0) & (tree.cut <= 1)).all()
    assert ((tree.returns >= 0) & (tree.returns <= 1)).all()


def test_merges_are_those_of_loops(rng):
    W, _ = blocks(rng, [8, 8, 8, 8], between=0.2)
    pieces, groups = np.arange(32) // 4, np.array([0, 0, 1, 1, 1, 2, 2, 2])
    found = merged(W, pieces, groups)
    points = [set(np.flatnonzero(pieces == p).tolist()) for p in range(8)]
    for (a, b), (one, other) in zip(found.merges, slow_merges(W.toarray(), pieces, groups), strict=True):
        assert {frozenset(points[a]), frozenset(points[b])} == {frozenset(one), frozenset(other)}
        points.append(points[a] | points[b])
    assert found.sizes.tolist() == [len(piece) for piece in points]


# ---------------------------------------------------------------- formats


def leaves_of(piece):
    return [piece] if "points" in piece else [leaf for child in piece["children"] for leaf in leaves_of(child)]


def test_dictionary_holds_the_tree(tree):
    found = json.loads(tree.to_json())
    assert found["n_clusters"] == tree.n_clusters
    root = found["tree"]
    assert root["size"] == len(tree.leaves)
    assert {"cut", "returns", "p_value", "stability"} <= root.keys()
    assert root["p_value"] is None
    points = [leaf["points"] for leaf in leaves_of(root)]
    assert sorted(chain(*points)) == list(range(len(tree.leaves)))
    for rows in points:
        assert len(set(tree.leaves[rows].tolist())) == 1

    def clusters(piece):
        if "cluster" in piece:
            yield piece["cluster"], sorted(chain(*(leaf["points"] for leaf in leaves_of(piece))))
        else:
            for child in piece["children"]:
                yield from clusters(child)

    labels = tree.labels_at(tree.n_clusters)
    assert dict(clusters(root)) == {k: np.flatnonzero(labels == k).tolist() for k in range(tree.n_clusters)}


def test_chain_of_the_most_pieces_can_be_written():
    """The deepest tree there is: each merge adds one leaf."""
    m = 600
    merges = np.array([[0, 1], *([m + i, i + 2] for i in range(m - 2))])
    sizes = np.r_[np.ones(m, int), np.arange(2, m + 1)]
    tree = ClusterTree(np.arange(m), merges, sizes, np.full(m - 1, 0.1), np.full(m - 1, 0.1), 3)
    text = tree.to_json()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)  # of the reader
    try:
        assert json.loads(text) == {"n_clusters": 3, "tree": tree.to_dict()}
    finally:
        sys.setrecursionlimit(limit)


# ---------------------------------------------------------------- odd graphs


def test_points_without_edges(rng):
    W, labels = blocks(rng, [12, 12])
    n = len(labels) + 3
    W = sparse.csr_array(sparse.block_diag([W, sparse.csr_array((3, 3))]))
    tree = cluster_tree(W, np.r_[labels, 0, 0, 1])
    assert len(tree.leaves) == n
    assert len(set(tree.leaves[-3:-1].tolist()) & set(tree.leaves[:-3].tolist())) == 0  # in a piece of their own
    assert np.isfinite(tree.cut).all()
    assert np.isfinite(tree.returns).all()
    assert tree.labels_at(1).max() == 0


@pytest.mark.parametrize("n", [1, 2, 5])
def test_graph_without_edges(n):
    tree = cluster_tree(sparse.csr_array((n, n)), np.arange(n) % 2)
    assert tree.labels_at(tree.n_clusters).tolist() == (np.arange(n) % 2).tolist()
    assert not tree.cut.any()


def test_two_points():
    W = sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])
    one, two = cluster_tree(W, np.zeros(2, int)), cluster_tree(W, np.arange(2))
    assert one.labels_at(1).tolist() == [0, 0]
    assert two.labels_at(2).tolist() == [0, 1]
    assert two.cut.tolist() == [1.0]
    assert two.returns.tolist() == [1.0]
    assert two.layers == [2]


def test_separate_components_are_cut_at_no_cost(rng):
    W, labels = blocks(rng, [15, 20, 25], between=0)
    tree = cluster_tree(W, labels)
    for k in (1, 2):
        assert tree.cut[tree.split(k)] == tree.returns[tree.split(k)] == 0
    assert tree.cut[tree.split(3)] > 0
    assert tree.layers[0] == 3
    assert json.loads(tree.to_json())["tree"]["cut"] == 0


def test_order_of_the_rows_changes_nothing(rng):
    W, labels = blocks(rng, [30, 20, 25, 15], inside=0.3)
    tree = cluster_tree(W, labels)
    W, labels, order = shuffled(W, labels, rng)
    again = cluster_tree(W, labels)
    np.testing.assert_array_equal(again.merges, tree.merges)
    np.testing.assert_array_equal(again.leaves, tree.leaves[order])
    np.testing.assert_allclose(again.cut, tree.cut)


# ---------------------------------------------------------------- estimators


def test_estimators_hand_it_over(data):
    model = KTRR(4).fit(data[0])
    assert model.tree_ is model.tree_  # made once
    np.testing.assert_array_equal(model.labels_at(4), model.labels_)
    old = model.tree_
    assert model.fit(data[0][:60]).tree_ is not old


def test_ties_are_weights_over_volumes_to_the_power_of_three_quarters():
    """Of a piece and its tie to one as small or to one of 16 times its weight; 16^¾ is 8."""
    for ratio, first in ((6, {0, 1}), (12, {0, 2})):
        W = np.kron(np.diag([1, 1, 16]), [[0, 1], [1, 0]]).astype(float)
        W[0, 2] = W[2, 0] = 1e-3
        W[0, 4] = W[4, 0] = ratio * 1e-3
        assert set(merged(sparse.csr_array(W), np.repeat([0, 1, 2], 2)).merges[0].tolist()) == first


def test_the_agglomerative_cut_gives_the_number_asked_for():
    sizes = [12, 12, 3]
    W = sparse.csr_array(sparse.block_diag([np.ones((n, n)) - np.eye(n) for n in sizes]))
    assert_array_equal(cut_agglomeratively(W, 3), np.repeat([0, 1, 2], sizes))
    W = sparse.csr_array(np.kron(np.eye(2), np.ones((6, 6))))
    assert [len(np.unique(cut_agglomeratively(W, k))) for k in (2, 5, 12)] == [2, 5, 12]
