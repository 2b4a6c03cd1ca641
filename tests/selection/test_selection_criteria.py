"""Criteria against slow references that share no code with them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from subspaces.selection import count
from subspaces.selection.criteria import (
    leading_components,
    normalized_cut,
    stability,
    subspace_residuals,
    support,
)
from subspaces.spectral.agreement import pairwise_agreement
from subspaces.spectral.partition import merge_communities, merge_steps, modularity


def random_graph(rng, n=24, density=0.3):
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return W + W.T


def test_modularity_is_the_sum_over_pairs(rng):
    W, labels = random_graph(rng), rng.integers(0, 4, 24)
    degree, total = W.sum(axis=1), W.sum()
    expected = sum(
        (W[i, j] - degree[i] * degree[j] / total) / total
        for i, j in itertools.product(range(24), repeat=2)
        if labels[i] == labels[j]
    )
    assert modularity(sparse.csr_array(W), labels) == pytest.approx(expected)


def test_normalized_cut_is_the_mean_share_that_leaves(rng):
    W, labels = random_graph(rng), rng.permutation(np.arange(24) % 4)
    shares = [W[labels == c][:, labels != c].sum() / W[labels == c].sum() for c in range(4)]
    assert normalized_cut(sparse.csr_array(W), labels) == pytest.approx(np.mean(shares))


def test_separate_components_have_no_cut():
    W = sparse.csr_array(np.kron(np.eye(3), np.ones((4, 4)) - np.eye(4)))
    assert normalized_cut(W, np.repeat(np.arange(3), 4)) == 0


def test_a_graph_without_edges_has_the_worst_cut():
    assert normalized_cut(sparse.csr_array((4, 4)), np.array([0, 0, 1, 1])) == 1


def test_subspace_residuals_are_those_of_a_plain_svd(rng):
    X, labels = rng.standard_normal((60, 8)), rng.integers(0, 4, 60)
    labels[:5] = 4  # fewer points than features
    expected = np.zeros(3)
    for c in range(5):
        part = X[labels == c] - X[labels == c].mean(axis=0)
        singular = np.linalg.svd(part, compute_uv=False)
        expected += [np.sum(singular[d:] ** 2) for d in (1, 3, 6)]
    assert subspace_residuals(X, [labels], (1, 3, 6))[0] == pytest.approx(expected)


def test_clusters_that_are_subspaces_leave_nothing(rng):
    X = np.vstack([rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20)) + 5 * c for c in range(4)])
    labels = np.repeat(np.arange(4), 30)
    right, mixed = subspace_residuals(X, [labels, rng.permutation(labels)], (3,)).ravel()
    assert right < 1e-12 * mixed


def test_a_cluster_of_one_point_leaves_nothing():
    assert subspace_residuals(np.eye(3), [np.arange(3)]).tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_leading_components_keep_the_distances(convert, rng):
    X = rng.standard_normal((90, 4)) @ rng.standard_normal((4, 70))
    found = leading_components(convert(X), 10)
    assert found.shape == (90, 10)
    assert np.linalg.norm(found[3] - found[8]) == pytest.approx(np.linalg.norm(X[3] - X[8]))
    assert leading_components(convert(X[:, :5])).shape == (90, 5)


def test_pairwise_agreement_is_the_adjusted_rand_index(rng):
    partitions = [rng.integers(0, k, 50) for k in (2, 3, 5, 9)] + [np.zeros(50, dtype=int)]
    found = pairwise_agreement(partitions)
    for i, j in itertools.product(range(5), repeat=2):
        assert found[i, j] == pytest.approx(adjusted_rand_score(partitions[i], partitions[j]))


def test_agreement_does_not_see_the_names_of_clusters(rng):
    labels = rng.integers(0, 4, 30)
    assert pairwise_agreement([labels, 3 - labels])[0, 1] == pytest.approx(1)


def test_support_prefers_the_dense_spot_to_the_middle():
    # three partitions that agree, five that agree with nobody but are nearer to all on average
    agreement = np.full((8, 8), 0.4)
    agreement[:3, :3] = 0.9
    agreement[:3, 3:] = agreement[3:, :3] = 0.1
    np.fill_diagonal(agreement, 1)
    found = support(agreement, least=2)
    assert found.argmax() < 3
    assert found[0] == pytest.approx(0.9)


def test_support_of_a_single_partition_is_one():
    assert support(np.ones((1, 1))) == 1


def test_stability_of_separate_blocks_is_one(seed):
    W = sparse.csr_array(np.kron(np.eye(3), np.ones((10, 10)) - np.eye(10)))
    labels = np.repeat(np.arange(3), 10)

    def components_of(part):
        return sparse.csgraph.connected_components(part)[1]

    assert stability(W, labels, components_of, seed=seed) == pytest.approx(1)


def test_merge_steps_are_the_merges_of_merge_communities(rng):
    W, labels = sparse.csr_array(random_graph(rng)), np.arange(24) % 8
    target = np.arange(8)
    for n_left, (kept, gone) in zip(range(7, 1, -1), merge_steps(W, labels, 2), strict=True):
        target[target == gone] = kept
        assert adjusted_rand_score(target[labels], merge_communities(W, labels, n_left)) == 1


@pytest.mark.parametrize("n_alone", [0, 7])
def test_partitions_into_every_number(n_alone, rng):
    """By modularity and by ties: from all fine communities down to two, clusters joined and never split."""
    W = sparse.csr_array(sparse.block_diag([random_graph(rng, 200, 0.02), sparse.csr_array((n_alone, n_alone))]))
    isolated = np.asarray(W.sum(axis=1)).ravel() == 0
    cuts = count.cuts_of(SimpleNamespace(W=W, communities=np.where(isolated, -1, 0)), seed=0)
    for by_number in (cuts.by_modularity, cuts.by_ties):
        assert sorted(by_number) == count._spread(max(by_number), len(isolated))
        finer = None
        for k in sorted(by_number, reverse=True):
            labels = by_number[k]
            assert len(np.unique(labels)) == k
            assert (labels[isolated] == 0).all()
            if finer is not None:
                assert len(set(zip(finer[~isolated], labels[~isolated], strict=True))) == len(
                    np.unique(finer[~isolated])
                )
            finer = labels
    assert set(cuts.returns) == set(cuts.by_ties)


def test_nobody_returns_across_a_gap(rng):
    W = sparse.csr_array(sparse.block_diag([random_graph(rng, 60, 0.2)] * 3))
    returns = count.cuts_of(SimpleNamespace(W=W, communities=np.zeros(180)), seed=0).returns
    assert returns[2] == returns[3] == 0 < 0.1 < returns[4]


def test_numbers_that_are_looked_at():
    assert count._spread(1, 10) == [1]
    assert count._spread(40, 50) == list(range(2, 41))
    assert 465 < count._spread(10**9, 2000)[-1] <= 500
    assert 950 < count._spread(10**9, 10**9)[-1] <= 1000
