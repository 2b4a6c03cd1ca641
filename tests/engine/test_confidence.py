"""Confidence of labels: against a slow reference, in range for every method, and informative on real data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import block_diag
from scipy.stats import binom
from sklearn.cluster import KMeans
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import normalize

from method_data import METHODS
from subspaces import KTRR, TRR
from subspaces.engine import confidence
from subspaces.engine.confidence import Summary, memberships, summarize, summarize_graph
from subspaces.graphs.affinity import edge_distances, far_points
from subspaces.metrics import best_matching


def random_graph(rng, n=40, k=4, dtype=np.float64):
    """Blocks with a few ties between them, every point with some edge."""
    labels = np.sort(rng.integers(k, size=n))
    labels[:k] = np.arange(k)
    labels = np.sort(labels)
    A = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < np.where(labels[:, None] == labels, 0.5, 0.05))
    W = np.triu(A, 1)
    W = W + W.T
    W[np.arange(n), (np.arange(n) + 1) % n] += 0.01
    W[(np.arange(n) + 1) % n, np.arange(n)] += 0.01
    return sparse.csr_array(W.astype(dtype)), labels


def slow_memberships(W, labels):
    """The definition, with dense matrices and loops."""
    n, k = W.shape[0], labels.max() + 1
    P = W / W.sum(axis=1, keepdims=True)
    walk = np.linalg.matrix_power((np.eye(n) + P) / 2, confidence.N_STEPS)
    S = np.array([[walk[i, labels == c].sum() / W[labels == c].sum() for c in range(k)] for i in range(n)])
    S /= np.linalg.norm(S, axis=1, keepdims=True)
    centres = np.array([S[labels == c].mean(axis=0) for c in range(k)])
    margins, sure, second, support = [], [], [], []
    for i in range(n):
        d = np.linalg.norm(S[i] - centres, axis=1)
        others = [c for c in range(k) if c != labels[i]]
        best = min(others, key=lambda c: d[c])
        a, b = d[labels[i]], d[best]
        margins.append(b - a)
        sure.append(max(0, (b - a) / max(a, b)))
        second.append(best)
        support.append(max(((P[i] + (P @ P)[i]) / 2)[labels == c].sum() for c in range(k)))
    return np.array(sure), np.array(margins), np.array(second), np.array(support)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_memberships_are_as_defined(rng, dtype):
    W, labels = random_graph(rng, dtype=dtype)
    found = memberships(W, labels)
    sure, margin, second, support = slow_memberships(W.toarray().astype(np.float64), labels)
    tolerance = {"rtol": 1e-7, "atol": 1e-7} if dtype == np.float64 else {"rtol": 1e-3, "atol": 2e-4}
    np.testing.assert_allclose(found.walk, sure, **tolerance)
    np.testing.assert_allclose(found.margin, margin, **tolerance)
    np.testing.assert_allclose(found.support, support, **tolerance)
    assert (found.second == second).mean() >= (1.0 if dtype == np.float64 else 0.95)
    assert found.walk.dtype == found.margin.dtype == dtype


def test_many_clusters_are_projected_and_nearly_the_same(rng, monkeypatch):
    W, labels = random_graph(rng, n=300, k=30)
    exact = memberships(W, labels)
    monkeypatch.setattr(confidence, "MAX_COLUMNS", 25)
    rough = memberships(W, labels)
    assert np.corrcoef(exact.walk, rough.walk)[0, 1] > 0.7


def test_components_are_certain_and_have_no_second():
    W = sparse.csr_array(block_diag(*[np.ones((4, 4)) - np.eye(4)] * 3))
    summary = summarize_graph(sparse.csr_array(W), np.repeat([5, 7, 9], 4))
    np.testing.assert_allclose(memberships(W, np.repeat([0, 1, 2], 4)).walk, 1, atol=1e-6)
    assert 0.5 < summary.confidence.min() < 1  # so few prove little
    assert summary.confidence.max() == pytest.approx(summary.confidence.min())
    assert set(summary.second_cluster) == {-1}
    assert set(summary.nearest) == {-1}
    assert summary.clusters.tolist() == [5, 7, 9]
    assert summary.sizes.tolist() == [4, 4, 4]
    np.testing.assert_allclose(summary.tightness, 1)
    assert not summary.fits_nowhere.any()
    assert [row["cluster"] for row in summary.as_rows()] == [5, 7, 9]


def test_point_between_clusters_and_point_without_edges():
    blocks = block_diag(*[np.ones((6, 6)) - np.eye(6)] * 3, np.zeros((2, 2)))
    for j in (0, 6, 12):  # point 18 is tied to one member of each cluster, point 19 to none
        blocks[18, j] = blocks[j, 18] = 1
    labels = np.array([0] * 6 + [1] * 6 + [2] * 6 + [0, 0])
    summary = summarize_graph(sparse.csr_array(blocks), labels)
    assert summary.confidence[18] < summary.confidence[:18].min()
    assert summary.confidence[19] == pytest.approx(1 / 3)  # nothing is known of it
    assert summary.margin[19] == 0
    assert summary.second_cluster[19] == -1
    assert summary.fits_nowhere.tolist() == [False] * 18 + [True, True]
    assert not {18, 19} & {int(i) for members in summary.exemplars for i in members}


def test_wrong_label_has_no_confidence_and_names_the_right_cluster(rng):
    W, labels = random_graph(rng, n=80, k=4)
    wrong = labels.copy()
    wrong[0] = 3
    summary = summarize_graph(W, wrong)
    assert summary.confidence[0] < np.quantile(summary.confidence, 0.05)
    assert summary.margin[0] < 0
    assert summary.second_cluster[0] == 0


def test_order_of_points_and_names_of_clusters_do_not_matter(rng):
    W, labels = random_graph(rng)
    order = rng.permutation(len(labels))
    names = np.array([30, 10, 40, 20])
    first, second = summarize_graph(W, labels), summarize_graph(W[order][:, order], names[labels][order])
    np.testing.assert_allclose(second.confidence, first.confidence[order], atol=1e-9)
    assert (second.second_cluster == names[first.second_cluster][order]).all()
    assert (second.fits_nowhere == first.fits_nowhere[order]).all()
    np.testing.assert_allclose(second.tightness, first.tightness[np.argsort(names)])


def test_far_points_are_flagged_at_any_scale(rng):
    X = np.vstack([rng.normal(size=(150, 4)), rng.normal(size=(150, 4)) + 6, rng.normal(size=(3, 4)) * 40])
    for scale in (1e-3, 1.0, 1e5):
        summary = summarize(KTRR(2).fit(scale * X), scale * X)
        assert summary.fits_nowhere[-3:].all()
        assert summary.fits_nowhere[:-3].mean() < 0.15


def test_edge_distances_against_a_loop(rng):
    W, _ = random_graph(rng)
    X = rng.normal(size=(40, 3))
    dense = W.toarray()
    expected = [np.average(np.linalg.norm(X - x, axis=1), weights=w) for x, w in zip(X, dense, strict=True)]
    np.testing.assert_allclose(edge_distances(W, X), expected)
    np.testing.assert_allclose(edge_distances(W, sparse.csr_array(X)), expected)
    assert not far_points(np.array([np.nan, 0.0, 0.0])).any()


def test_fence_is_one_and_a_half_ranges_above_the_third_quartile_of_the_logarithms():
    """The quartiles of the logarithms are 0 and 1: the fence is at 2.5, far beyond that of the distances themselves."""
    usual = np.linspace(-0.5, 1.5, 2001)
    for scale in (1e-9, 1.0, 1e9):
        flagged = far_points(scale * np.exp(np.r_[usual, 2.4, 2.6]))
        assert not flagged[:-1].any()
        assert flagged[-1]


def test_of_a_noisy_graph_not_all_points_fit_nowhere():
    """Each point has a third of its weight in its own of five clusters: more than in any other, and less than half."""
    labels = np.repeat(np.arange(5), 12)
    W = np.where(labels[:, None] == labels, 0.4, 0.2)
    np.fill_diagonal(W, 0)
    summary = summarize_graph(sparse.csr_array(W), labels)
    assert not summary.fits_nowhere.any()


def test_in_a_noisy_graph_points_with_less_than_half_of_what_is_usual_fit_nowhere():
    """Twelve clusters get 0.2 of their points' weight; one point ties evenly to all (0.08), one more to the first."""
    labels = np.repeat(np.arange(12), 6)
    W = np.zeros((74, 74))
    W[:72, :72] = np.where(labels[:, None] == labels, 6, 1)
    np.fill_diagonal(W, 0)
    W[72, :72:6] = W[:72:6, 72] = W[73, :72:6] = W[:72:6, 73] = 1e-3
    W[73, 0] = W[0, 73] = 2.4e-3
    summary = summarize_graph(sparse.csr_array(W), np.r_[labels, 0, 0])
    assert np.flatnonzero(summary.fits_nowhere).tolist() == [72]


def test_walks_have_forty_steps():
    """On a ring a walk of 40 steps, every other at rest, goes as far as 80 coins say; confidence is calibrated so."""
    n = np.arange(100)
    ring = sparse.csr_array((np.ones(200), (np.r_[n, n], np.r_[n - 1, n + 1] % 100)))
    ends = confidence.walk_ends(ring, (n >= 50).astype(int))
    np.testing.assert_allclose(ends[:25, 1], binom.cdf(39 - n[:25], 80, 0.5), atol=1e-6)


@pytest.mark.parametrize("share", [0.35, 0.45, 0.49, 0.51, 0.6])
def test_point_without_half_of_its_ties_in_one_cluster_fits_nowhere(share):
    W = block_diag(*[1000 * (np.ones((6, 6)) - np.eye(6))] * 3, [[0]])
    W[18, [0, 6, 12]] = W[[0, 6, 12], 18] = [share, (1 - share) / 2, (1 - share) / 2]
    summary = summarize_graph(sparse.csr_array(W), np.r_[np.repeat([0, 1, 2], 6), 0])
    assert summary.fits_nowhere[18] == (share < 0.5)
    assert not summary.fits_nowhere[:18].any()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_it(name, rng):
    X = np.kron(np.eye(3), rng.normal(size=(14, 3))) + 0.01 * rng.normal(size=(42, 9))
    estimator = METHODS[name](3).fit(X)
    summary = summarize(estimator, X)
    assert isinstance(summary, Summary)
    assert ((summary.confidence >= 0) & (summary.confidence <= 1)).all()
    assert summary.sizes.sum() == len(X)
    assert ((summary.tightness >= 0) & (summary.tightness <= 1 + 1e-6)).all()
    for members, label in zip(summary.exemplars, summary.clusters, strict=True):
        assert 1 <= len(members) <= 5
        assert (summary.labels[members] == label).all()


def test_other_libraries_and_precomputed_kernels(rng):
    X = rng.normal(size=(60, 4)) + 9 * (np.arange(60) % 3)[:, None]
    assert summarize(KMeans(3, random_state=0).fit(X), X).confidence.mean() > 0.5
    with pytest.raises(ValueError, match="give the points X"):
        summarize(KMeans(3, random_state=0).fit(X))
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / 50)
    assert summarize(KTRR(3, kernel="precomputed").fit(K), K).confidence.mean() > 0.5


def test_degenerate_clusterings(rng):
    X = rng.normal(size=(12, 3))
    one = summarize(TRR(1).fit(X)).confidence
    assert ((one > 0.5) & (one < 1)).all()
    each = summarize(TRR(12).fit(X))
    assert each.sizes.tolist() == [1] * 12
    assert np.isfinite(each.confidence).all()


def test_informative_on_digits():
    from sklearn.datasets import load_digits

    digits = load_digits()
    estimator = KTRR(10, assign_labels="modularity").fit(normalize(digits.data))
    right = np.asarray(best_matching(digits.target, estimator.labels_)) == digits.target
    sure = summarize(estimator).confidence
    half = np.argsort(-sure)[: len(sure) // 2]
    assert right[half].mean() > np.delete(right, half).mean() + 0.03
    assert roc_auc_score(right, sure) > 0.7


@pytest.mark.parametrize("name", ["orl", "coil20"])
def test_informative_on_faces_and_objects(name, data_home):
    from subspaces import datasets

    data = getattr(datasets, f"load_{name}")(data_home=data_home)
    X = normalize(np.asarray(data.data, dtype=np.float64).reshape(len(data.target), -1))
    estimator = KTRR(len(np.unique(data.target))).fit(X)
    right = np.asarray(best_matching(data.target, estimator.labels_)) == data.target
    sure = summarize(estimator).confidence
    half = np.argsort(-sure)[: len(sure) // 2]
    assert right[half].mean() > np.delete(right, half).mean() + 0.15
    assert roc_auc_score(right, sure) > 0.7
