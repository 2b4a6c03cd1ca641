"""Splits against chance: what is one piece stays one, what is two is found, and p-values are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import t as student

from subspaces import KTRR, SC, SSC, TRR, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.selection.candidates import Setting, Tried
from subspaces.selection.graphs import Method, candidates_of
from subspaces.spectral import splits
from subspaces.spectral.hierarchy import cluster_tree

TRIED = Tried((Setting(None, "rbf", 0.1, 8), Setting(None, "exponential", 1.0, 8)), ("kmeans",))


def graphs_of(points):
    return [graph.W for graph in candidates_of(points, TRIED, Method())]


def roll(rng, n):
    t = 1.5 * np.pi * (1 + 2 * rng.random(n))
    return np.column_stack([t * np.cos(t), 20 * rng.random(n), t * np.sin(t)])


@pytest.mark.full  # takes seconds: .ci/run has it
@pytest.mark.parametrize(
    "make",
    [
        lambda rng: rng.random((200, 2)),
        lambda rng: rng.random((150, 30)),
        lambda rng: rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6)),
        lambda rng: rng.normal(size=(150, 3)) @ rng.normal(size=(3, 20)),
        lambda rng: roll(rng, 300),
    ],
)
def test_one_piece_is_one(make, rng):
    # each is found to be more than one in less than 5 of 100 draws; three in a row would be a fault
    found = [SubspaceClustering().fit(make(rng)) for _ in range(3)]
    assert min(model.n_clusters_ for model in found) == 1
    one = next(model for model in found if model.n_clusters_ == 1)
    assert one.verdict_ == "No groups: the data look like one cloud."
    assert one.selection_.n_clusters.p_value > 0.03
    assert "no split" in one.selection_.reason


def test_two_pieces_are_two(rng):
    for apart in (8.0, 20.0):
        X = np.vstack([rng.normal(size=(60, 4)), rng.normal(size=(90, 4)) + apart / 2])
        model = SubspaceClustering().fit(X)
        assert model.n_clusters_ == 2
        assert model.selection_.n_clusters.evidence == "gap"
    X, _ = make_subspaces(2, 3, 20, [60, 80], noise=0.01, random_state=3)
    assert SubspaceClustering().fit(X).n_clusters_ == 2


def test_a_small_cluster_is_not_lost(rng):
    """One in twenty points, nine deviations away."""
    X = np.vstack([rng.normal(size=(285, 3)), rng.normal(size=(15, 3)) + 9])
    model = SubspaceClustering().fit(X)
    assert model.n_clusters_ > 1
    assert (model.labels_[285:] == model.labels_[-1]).all()
    assert model.labels_[-1] not in model.labels_[:285]


def test_a_cube_is_not_nearly_two_groups():
    """Its splits are a little clearer than those of a Gaussian, always; that is not significant."""
    cubes = [np.random.default_rng(seed).random((150, 4)) for seed in (4, 6)]
    assert "gap" not in {SubspaceClustering().fit(X).selection_.n_clusters.evidence for X in cubes}


def test_splits_of_small_pieces_need_more_evidence(monkeypatch):
    """Meinshausen's correction: by the share of the points that the divided piece leaves out."""
    monkeypatch.setattr(splits, "_largest_p_value", lambda *args, **keywords: 0.001)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(n, 2)) + np.array([at, 0]) for n, at in ((40, 0), (40, 9), (120, 60))])
    tree = KTRR(3, assign_labels="modularity").fit(X).with_labels(np.repeat([0, 1, 2], [40, 40, 120])).tree_
    np.testing.assert_allclose(tree.p_value[[tree.split(1), tree.split(2)]], [0.001, 0.001 * 200 / 80])


def test_null_model_keeps_columns_of_few_values(rng):
    X = rng.normal(size=(120, 3))
    X[:, 1] = X[:, 0] > 0  # tied to the first
    X[:, 2] = np.arange(120) % 3  # one value too many
    drawn = splits.gaussian_like(X, rng)
    np.testing.assert_array_equal(np.sort(drawn[:, 1]), np.sort(X[:, 1]))
    assert len(np.unique(drawn[:, 0])) == len(np.unique(drawn[:, 2])) == 120
    assert np.corrcoef(drawn[:, :2].T)[0, 1] > 0.4


def test_independent_answers_of_yes_and_no_are_one_piece():
    """A Gaussian has no crowd at each combination of answers: beside it these looked like groups."""
    X = (np.random.default_rng(1).random((400, 12)) < 0.3).astype(float)
    assert SubspaceClustering().fit(X).n_clusters_ == 1


def test_gaussian_has_the_mean_and_covariance_of_the_points(rng):
    X = rng.random((50, 3)) * [1, 2, 5] + [7, 0, -3]
    drawn = np.vstack([splits.gaussian_like(X, rng) for _ in range(400)])
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.06)
    np.testing.assert_allclose(np.cov(drawn.T, ddof=0), np.cov(X.T, ddof=0), rtol=0.15, atol=0.05)


def test_box_is_flat_and_has_the_deviations_of_the_points(rng):
    X = rng.normal(size=(400, 5)) * [9, 4, 1, 0.5, 0.1]
    drawn = splits.box_like(X, 2, rng)
    assert np.linalg.matrix_rank(drawn - drawn.mean(axis=0), tol=1e-6) == 2
    np.testing.assert_allclose(np.sort(drawn.std(axis=0))[-2:], np.sort(X.std(axis=0))[-2:], rtol=0.15)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_intrinsic_dimension(d, rng):
    X = rng.random((400, d)) @ rng.normal(size=(d, 12))
    assert splits.intrinsic_dimension(X) == pytest.approx(d, rel=0.25)
    assert splits.intrinsic_dimension(np.ones((20, 3))) == np.inf
    assert splits.intrinsic_dimension(np.eye(3)) == np.inf


def test_p_value_is_students_with_a_least_spread():
    null = [np.array([0.3, -1.0]), np.array([0.32, -1.2]), np.array([0.28, -0.8])]
    observed = np.array([0.1, -3.0])
    expected = [
        student.cdf((observed[i] - m) / (np.hypot(s, splits.SPREAD[i]) * np.sqrt(4 / 3)), 2)
        for i, (m, s) in enumerate([(0.3, 0.02), (-1.0, 0.2)])
    ]
    assert splits._p_value(observed, null, slice(2)) == pytest.approx(max(expected))
    assert splits._p_value(observed, null, slice(1)) == pytest.approx(expected[0])
    assert splits._p_value(observed, null[:2], slice(2)) == 1.0  # nothing to compare with


def test_splits_of_a_tree(rng):
    """Two groups of two: the coarse split and both fine ones are real, the next is not; none below its parent."""
    centres = np.array([[0, 0], [10, 0], [60, 0], [70, 0]])
    X = np.repeat(centres, 60, axis=0) + rng.normal(size=(240, 2))
    labels = np.repeat(np.arange(4), 60)
    W = graphs_of(X)[0]
    tree = splits.with_stability(splits.with_p_values(cluster_tree(W, labels), W, X, graphs_of), W)
    tested = [tree.p_value[tree.split(k)] for k in (1, 2, 3, 4)]
    assert max(tested[:3]) < 0.05 < tested[3]
    assert tested[0] <= min(tested[1:])
    assert all(0.8 < tree.stability[tree.split(k)] <= 1 for k in (1, 2, 3))
    assert np.isnan(tree.p_value[: tree.split(4)]).all()


def test_borders_are_where_two_sides_are_nearest():
    W = np.kron(np.eye(3), [[0.0, 9.0], [9.0, 0.0]])
    W[1, 3] = W[3, 1] = 1
    W[3, 4] = W[4, 3] = 2
    W = sparse.csr_array(W)
    tree = cluster_tree(W, np.array([0, 0, 1, 1, 2, 2]))
    found = splits.borders(tree, W)
    coarse = found[0]
    assert {tuple(coarse.one), tuple(coarse.other)} == {(0, 1), (2, 3)}


def test_a_single_point_between_two_clusters_does_not_make_them_one(rng):
    """At once the walker is back as often as in one piece, some steps later no more."""
    X = np.vstack([rng.normal(size=(60, 4)), rng.normal(size=(60, 4)) + 5, [[2.5] * 4]])
    W, sides = graphs_of(X)[0], (np.append(np.arange(60), 120), np.arange(60, 120))
    at_once, later = (splits.lasting_return(W, *sides, n_steps) for n_steps in (1, 4))
    assert later < at_once
    assert splits.lasting_return(sparse.csr_array((4, 4)), np.arange(2), np.arange(2, 4)) == 0


def test_return_of_walks_against_loops(rng):
    A = rng.random((9, 9)) * (rng.random((9, 9)) < 0.6)
    W = np.triu(A, 1) + np.triu(A, 1).T
    one, other = np.arange(4), np.arange(4, 8)  # point 8 is on neither side
    P = W[:8, :8] / W[:8, :8].sum(axis=1, keepdims=True)
    walk = np.linalg.matrix_power(P, 4)
    crossed = sum(W[i, j] * (walk[j, one].sum() + walk[i, other].sum()) for i in one for j in other)
    assert splits.lasting_return(sparse.csr_array(W), one, other) == pytest.approx(
        crossed / (2 * W[np.ix_(one, other)].sum())
    )


@pytest.mark.parametrize("method", [KTRR, TRR, SC])
def test_methods_have_tested_trees(method, rng):
    X = np.repeat(9 * np.eye(3), 40, axis=0) + rng.normal(size=(120, 3)) + 20
    model = method(3).fit(X)
    tree = model.tree_
    assert np.isfinite([tree.p_value[tree.split(k)] for k in (1, 2)]).all()
    assert (tree.labels_at(3) == model.labels_).all()
    shuffled = rng.permutation(len(X))
    again = method(3).fit(X[shuffled]).tree_
    np.testing.assert_allclose(again.p_value, tree.p_value, rtol=1e-6)


def test_slow_methods_are_tested_when_asked(rng):
    model = SSC(2).fit(np.vstack([rng.normal(size=(12, 3)), rng.normal(size=(12, 3)) + 9]))
    assert np.isnan(model.tree_.p_value).all()
    assert np.isfinite(model._tested_tree().p_value).any()
    K = KTRR(2, kernel="precomputed").fit(np.eye(20) + 0.5)
    assert np.isnan(K.tree_.p_value).all()  # there are no points to draw from


def test_an_even_piece_is_drawn_only_where_dimensions_are_few_at_every_scale(rng):
    flat = rng.random((120, 2)) @ rng.normal(size=(2, 25))
    for one_piece in (flat, roll(rng, 300)):
        gaussian, box = splits.null_models(one_piece, rng)
        assert (gaussian[1], box[1]) == (slice(2), slice(1))
        assert np.linalg.matrix_rank(box[0]() - one_piece.mean(axis=0)) == 2
    clusters, _ = make_subspaces(10, 4, 25, 30, noise=0.04, random_state=0)  # four dimensions each, in ten directions
    assert splits.intrinsic_dimension(clusters) < 5
    assert len(splits.null_models(clusters, rng)) == 1
