"""The number of clusters: probabilities, ranges, edges, and the sentence that says it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.preprocessing import normalize

from subspaces import KTRR, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.metrics import accuracy
from subspaces.selection import choose, count, fitted
from subspaces.selection.candidates import Setting, Tried
from subspaces.selection.count import count_clusters
from subspaces.selection.graphs import Method, candidates_of
from subspaces.selection.outlying import outlying_components, without
from subspaces.selection.result import ClusterCount, verdict
from subspaces.spectral.hierarchy import Merged

TRIED = Tried(tuple(Setting(None, kernel, reg, 5) for kernel, reg in (("rbf", 0.1), ("quadratic", 0.1))), ("kmeans",))


def counted(candidates, probability, **changed):
    k = np.asarray(candidates)
    p = np.asarray(probability, dtype=float)
    nothing = np.zeros(len(k))
    found = {"estimate": int(k[p.argmax()]), "low": int(k[0]), "high": int(k[-1]), "p_value": 0.001}
    return ClusterCount(
        candidates=k, probability=p / p.sum(), agreement=nothing, score=nothing, communities=k, eigenvalues=nothing,
        **{**found, **changed},
    )  # fmt: skip


@pytest.mark.parametrize("k", [3, 6, 12])
def test_unions_are_counted(k):
    X, _ = make_subspaces(k, 3, 30, 40, noise=0.01, random_state=k)
    found = choose(X).n_clusters
    assert found.estimate == k
    assert found.low <= k <= found.high
    assert found.probability.sum() == pytest.approx(1)
    assert found.p_value < 0.01
    assert 0 <= found.sureness <= 1


def test_many_subspaces_are_counted():
    X, y = make_subspaces(20, 3, 50, 40, noise=0.05, random_state=0)
    found = SubspaceClustering().fit(X)
    count_ = found.selection_.n_clusters
    assert (found.n_clusters_, count_.low >= 18, count_.high <= 24) == (20, True, True)
    assert accuracy(y, found.labels_) == 1


def test_agreement_decides_alone_only_where_it_is_nearly_full_and_new():
    candidates = np.arange(2, 22)
    rising = np.linspace(0.1, 1.0, 20)
    assert count._agreed_on(candidates, rising)
    assert not count._agreed_on(candidates, 0.85 * rising)
    assert not count._agreed_on(candidates, 0.8 + 0.2 * rising)
    assert not count._agreed_on(candidates[:1], np.ones(1))


def _graphs(n_communities, kinds):
    """Settings of so many kernels and penalties each, and how many communities of 60 points each of them finds."""
    found = []
    for i, k in enumerate(n_communities):
        setting = SimpleNamespace(scaling=None, kernel="rbf", reg=float(i % kinds))
        found.append(SimpleNamespace(setting=setting, communities=np.arange(60) * k // 60))
    return found


@pytest.mark.parametrize(
    ("n_communities", "kinds", "coinciding"),
    [
        ([6, 6, 6, 2, 3], 5, [0, 1, 2]),  # three of five kinds
        ([6, 6, 2, 3, 4], 5, []),  # two
        ([6, 6, 6, 2, 3, 4, 5, 7, 8, 9], 10, []),  # three of ten
        ([6, 3, 6, 2, 6, 4, 6, 5, 6, 7], 2, []),  # truncations of one kernel and penalty
        ([1, 1, 1, 2, 3], 5, []),  # one community is no answer
    ],
)
def test_settings_that_find_the_same_communities(n_communities, kinds, coinciding):
    graphs = _graphs(n_communities, kinds)
    assert count._coinciding(graphs, [graph.communities for graph in graphs]).tolist() == coinciding


@pytest.mark.full  # takes seconds: .ci/run has it
def test_what_settings_find_by_themselves_needs_no_test():
    """400 of the 1,300 points, 20 of each subspace, look like one cloud; yet every setting finds the same 20."""
    X, y = make_subspaces(20, 5, 120, 65, noise=0.1, random_state=0)
    found = SubspaceClustering().fit(X)
    assert found.selection_.n_clusters.agreed
    assert found.selection_.n_clusters.p_value > 0.03
    assert found.n_clusters_ == 20
    assert accuracy(y, found.labels_) > 0.99


def test_an_estimate_at_the_edge_extends_the_search(monkeypatch):
    X, _ = make_subspaces(4, 2, 12, 40, noise=0.01, random_state=0)
    seen, judged = [], count._judged_numbers

    def listening(graphs, seed, resolution):
        found = judged(graphs, seed, resolution)
        seen.append((resolution, found[0][-1]))
        return found

    monkeypatch.setattr(count, "_judged_numbers", listening)
    choose(X)
    assert len(seen) == 1
    seen.clear()
    monkeypatch.setattr(count, "_agreed_on", lambda candidates, agreement: False)
    monkeypatch.setattr(count, "_KINDS", 1000)
    monkeypatch.setattr(count, "_best", lambda candidates, probability: len(candidates) - 1)
    choose(X)
    assert [resolution for resolution, _ in seen] == [3.0, 6.0, 12.0, 24.0][: len(seen)]
    assert seen[-1][1] > seen[0][1]


def test_range_holds_enough_of_the_probability():
    candidates, probability = np.arange(2, 12), np.array([1, 1, 5, 60, 20, 5, 4, 2, 1, 1]) / 100
    low, high = count._range(candidates, probability)
    inside = probability[(candidates >= low) & (candidates <= high)].sum()
    assert inside >= fitted.MASS
    assert low <= 5 <= high
    assert probability[(candidates > low) & (candidates < high)].sum() < fitted.MASS


def test_neighbouring_numbers_support_each_other():
    candidates = np.arange(2, 42)
    probability = np.zeros(40)
    probability[0], probability[[27, 28, 29]] = 0.4, 0.2
    assert candidates[count._best(candidates, probability)] == 30


def test_splits_are_made_from_the_root_the_most_probable_first():
    """Leaves 0 to 3; merges 0: (0, 1), 1: (2, 3), 2: both."""
    tree = Merged(np.array([[0, 1], [2, 3], [4, 5]]), np.array([1, 1, 1, 1, 2, 2, 4]), np.zeros(0), np.zeros(0))
    assert count._in_order_made(tree, np.array([0.2, 0.7, 0.1])).tolist() == [0.1, 0.7, 0.2]


def test_what_settings_keep_together(rng):
    pieces, own = np.repeat(np.arange(3), 10), [np.repeat([0, 1], [20, 10]), np.repeat([0, 0, 1], 10)]
    tree = Merged(np.array([[0, 1], [3, 2]]), np.array([10, 10, 10, 20, 30]), np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(count._kept_together(tree, pieces, own), [1, 0])


def test_level_features_against_loops(rng):
    candidates = np.arange(2, 9)
    agreement, separation, border = rng.random((3, 7))
    probable = np.sort(rng.random(12))[::-1]
    found = count.level_features(candidates, agreement, separation, border, probable)
    score = agreement * separation
    np.testing.assert_allclose(found[:, 0], np.log(np.maximum(score, 0.01) / score.max()))
    np.testing.assert_allclose(found[:, 5], np.log(candidates))
    for row, k in zip(found, candidates, strict=True):
        assert row[7] == pytest.approx(np.log(np.clip(probable[: k - 1].min(), 1e-3, 1 - 1e-3)))
        nexts = np.clip(probable[k - 1 : k + max(1, k // 4)], 1e-3, 1 - 1e-3)
        assert row[8] == pytest.approx(np.log(1 - nexts).min())


def test_sentences():
    sure = counted(range(2, 30), np.exp(-(np.log(np.arange(2, 30) / 20) ** 2) / 0.005), low=17, high=23)
    assert verdict(sure, 20, 575, 14) == "Probably 20 groups (17 to 23); 14 of 575 items are doubtful."
    flat = counted([2, 8, 20, 41, 60], [1, 3, 1, 2.9, 1])
    assert verdict(flat, 8) == "Probably 8 groups (2 to 60)." or "Perhaps" in verdict(flat, 8)
    unclear = counted(range(2, 60), np.ones(58) + (np.arange(2, 60) == 8) + 0.5 * (np.arange(2, 60) == 41))
    shown = "8 coarse, 41 fine; shown are 8 groups; 1 of 100 items is doubtful."
    assert verdict(unclear, 8, 100, 1) == f"Groups exist, but their number is not clear: {shown}"
    assert verdict(replace(sure, estimate=1, p_value=0.4), 1) == "No groups: the data look like one cloud."
    barely = "Perhaps no groups: the data look much like one cloud. If there are any, perhaps 20."
    assert verdict(replace(sure, estimate=1, p_value=0.1), 1) == barely
    untested = "5 items are too few to tell whether there are groups."
    assert verdict(replace(sure, estimate=1, p_value=np.nan), 1, 5) == untested


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_sentence_says_more_than_was_seen(rng):
    kinds = np.repeat(rng.normal(size=(3, 4)), 10, axis=0)
    for model in (KTRR(5), SubspaceClustering(5)):
        assert model.fit(kinds).verdict_ == "3 groups, where 5 were asked for."
    few = SubspaceClustering().fit(rng.normal(size=(5, 3)))
    assert few.verdict_ == few.selection_.verdict == "5 items are too few to tell whether there are groups."
    assert np.isnan(few.selection_.n_clusters.p_value)
    assert "too few to test" in few.selection_.reason


def test_the_sentence_comes_with_every_fit(rng):
    X, _ = make_subspaces(3, 2, 12, 40, noise=0.01, random_state=1)
    model = SubspaceClustering().fit(X)
    assert "3 groups" in model.verdict_
    assert model.selection_.verdict in model.verdict_ or "doubtful" in model.verdict_
    assert KTRR(3).fit(X).verdict_.startswith("3 groups, as asked")


def test_a_few_tiny_pieces_do_not_decide():
    """Copies of one sentence among many texts: every graph agrees on them and the rest."""
    rng = np.random.default_rng(0)
    centres = normalize(rng.normal(size=(6, 12))) * 5
    X = np.vstack([rng.normal(size=(60, 12)) + centre for centre in centres])
    copies = 12 * normalize(rng.normal(size=(1, 12))) + 0.001 * rng.normal(size=(7, 12))
    graphs = candidates_of(np.vstack([X, copies]), TRIED, Method())
    away, n_pieces = outlying_components(graphs)
    np.testing.assert_array_equal(np.flatnonzero(away), np.arange(len(X), len(X) + 7))
    assert n_pieces == 1
    rest = [without(graph, away) for graph in graphs]
    assert all(graph.W.shape == (len(X), len(X)) for graph in rest)
    assert (count_clusters(graphs, 12).estimate, count_clusters(rest, 12).estimate) == (2, 6)
    assert not outlying_components(rest).away.any()
