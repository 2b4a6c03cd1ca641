"""The number of clusters: evidence, range, small clusters, and the sentence that says it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score

from subspaces import KTRR, SubspaceClustering
from subspaces.datasets import make_subspaces
from subspaces.metrics import accuracy
from subspaces.selection import choose, count
from subspaces.selection.count import ClusterCount
from subspaces.selection.result import verdict


def counted(agreement, natural, estimate=2, evidence="none", best=None, **changed):
    """Return what is known of the numbers from two on."""
    agreement = np.asarray(agreement, dtype=float)
    candidates = np.arange(2, len(agreement) + 2)
    best = agreement if best is None else np.asarray(best, dtype=float)
    low, high = changed.pop("low", estimate), changed.pop("high", estimate)
    natural = np.array([1, natural, natural, natural, 99])
    return ClusterCount(estimate, low, high, evidence, candidates, agreement, best, natural, **changed)


def unequal(sizes, n_features, seed):
    """Gaussians of these sizes, eight deviations apart along the axes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.vstack([np.zeros(n_features), 8 * np.eye(n_features)])[: len(sizes)]
    order = rng.permutation(len(y))
    return (rng.normal(size=(len(y), n_features)) + centres[y])[order], y[order]


@pytest.mark.parametrize("k", [3, 12])
def test_unions_are_counted(k):
    X, _ = make_subspaces(k, 3, 30, 40, noise=0.01, random_state=k)
    found = choose(X).n_clusters
    assert (found.estimate, found.evidence) == (k, "gap")
    assert found.low <= k <= found.high


def test_many_subspaces_are_counted_and_need_no_test():
    X, y = make_subspaces(20, 3, 50, 40, noise=0.05, random_state=0)
    found = SubspaceClustering().fit(X)
    number = found.selection_.n_clusters
    assert (found.n_clusters_, number.low >= 18, number.high <= 24) == (20, True, True)
    assert np.isnan(number.p_value)
    assert accuracy(y, found.labels_) == 1


@pytest.mark.parametrize("sizes", [(1000, 100, 20), (300, 30)])
@pytest.mark.parametrize("k", [None, "given"])
def test_small_clusters_are_found(sizes, k):
    X, y = unequal(sizes, 5, 0)
    assert adjusted_rand_score(y, SubspaceClustering(None if k is None else len(sizes)).fit_predict(X)) > 0.98


def test_the_agglomerative_cut_keeps_five_samples():
    X, y = unequal((500, 50, 5), 5, 0)
    assert adjusted_rand_score(y, KTRR(3, n_nonzero=10, assign_labels="agglomerative").fit_predict(X)) > 0.98
    assert adjusted_rand_score(y, KTRR(3, n_nonzero=10).fit_predict(X)) < 0.5


def test_a_division_without_a_gap_is_said_to_be_one():
    """Malignant and benign: two crowds that run into each other."""
    X, y = load_breast_cancer(return_X_y=True)
    model = SubspaceClustering().fit(X)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(y, model.labels_) > 0.6


@pytest.mark.parametrize("n_features", [5, 10, 40])
def test_noise_is_nothing(n_features, rng):
    model = SubspaceClustering().fit(rng.normal(size=(400, n_features)))
    assert model.selection_.n_clusters.evidence == "none"
    assert model.n_clusters_ == 1


def test_groups_on_a_line(rng):
    y = np.repeat(np.arange(2), 200)
    model = SubspaceClustering().fit((rng.normal(size=400) + 6 * y)[:, np.newaxis])
    assert model.n_clusters_ <= 3


def decided(monkeypatch, agreement, natural=5, *, ties=(), returns=(), largest=0.5, n_features=9):
    """Return what is counted where the cuts into two clusters and more agree, and are crossed back, like this."""
    known = {}

    def cuts_that_agree(values):
        big = round(100 * largest)
        cuts = {k: np.append(np.zeros(big, int), 1 + np.arange(100 - big) % (k - 1)) for k in range(2, len(values) + 2)}
        known.update({id(labels): (value, value) for labels, value in zip(cuts.values(), values, strict=True)})
        return cuts

    by_modularity = cuts_that_agree(agreement) or {1: np.zeros(100, int)}
    cuts = count.Cuts(by_modularity, cuts_that_agree(ties), dict(enumerate(returns, 2)))
    monkeypatch.setattr(count, "most_supported", lambda graphs: [0])
    monkeypatch.setattr(count, "_natural", lambda graph: natural)
    monkeypatch.setattr(count, "cuts_of", lambda graph, seed: cuts)
    monkeypatch.setattr(count, "_agreement", lambda found: known.get(id(found[0]), (1, 1)) if found else (0, 0))
    return count.count_clusters([SimpleNamespace(W=np.zeros((100, 100)))], n_features)


THREE = {"ties": [1, 1, 0.8, 0.74], "returns": [0.12, 0.24, 0.3, 0.4]}
"""Three clusters with gaps between them: a fourth is none, and the settings disagree on four and five."""
ALIKE = [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("agreement", "changed", "found"),
    [
        ([0.5, 0.5, 0.5, 0.69], {"largest": 0.7}, (3, 3, 5, "gap")),  # the settings agree on no number
        ([0.5, 0.5, 0.5, 0.69], {"returns": [0.12, 0.26, 0.3, 0.4]}, (5, 5, 5, "none")),  # three are no gap
        ([0.5, 0.5, 0.5, 0.69], {"ties": [1, 1, 0.8, 0.76]}, (5, 5, 5, "none")),  # they agree on five nearly as well
        ([0.5, 0.5, 0.5, 0.69], {"ties": ALIKE, "returns": [0.05, 0.09, 0.23, 0.4]}, (3, 3, 5, "gap")),  # none returns
        ([0.5, 0.5, 0.5, 0.69], {"ties": ALIKE, "returns": [0.05, 0.09, 0.21, 0.4]}, (5, 5, 5, "none")),
        ([0.5, 0.5, 0.5, 0.69], {"ties": ALIKE, "returns": [0.05, 0.11, 0.25, 0.4]}, (5, 5, 5, "none")),
        ([0.5, 0.5, 0.5, 0.69], {"ties": ALIKE, "returns": [0.12, 0.05, 0.2, 0.4]}, (5, 5, 5, "none")),
        ([0.5, 0.5, 0.5, 0.69], {"ties": ALIKE, "returns": [0.12] * 4}, (5, 5, 5, "gap")),  # nothing is finer
        ([0.5, 0.5, 0.5, 0.69], {"ties": [1, 0.7, 0.7, 0.4], "returns": [0.12] * 3 + [0.4]}, (4, 4, 5, "gap")),
        ([0.5, 0.5, 0.5, 0.71], {"largest": 0.7}, (5, 5, 5, "none")),  # a few outliers beside five clusters
        ([0.5, 0.5, 0.5, 0.71], {"largest": 0.61}, (5, 5, 5, "none")),
        ([0.5, 0.5, 0.5, 0.71], {"largest": 0.59}, (3, 3, 5, "gap")),
        ([0.5, 0.5, 0.5, 0.94], {}, (3, 3, 5, "gap")),  # three: 1 less 0.1 log(5/3), 0.949
        ([0.5, 0.5, 0.5, 0.96], {}, (5, 5, 5, "gap")),
        ([0.5, 0.8, 0.5, 0.5], {"largest": 0.7}, (3, 3, 3, "gap")),  # both say three
        ([0.3, 0.3, 0.5, 0.5, 0.6, 0.6, 0.6], {}, (3, 3, 6, "gap")),  # the range ends at twice the number of the gaps
        ([0.6, 0.2, 0.2, 0.2], {}, (3, 2, 3, "gap")),  # and holds that number
        ([], {"ties": ()}, (1, 1, 1, "none")),  # that all have one community is no agreement
        ([0.5, 0.5, 0.5, 0.91], {"ties": ()}, (5, 5, 5, "gap")),
        ([0.5, 0.5, 0.5, 0.89], {"ties": ()}, (5, 5, 5, "none")),
        ([0.5, 0.69, 0.62, 0.8], {"ties": ()}, (5, 5, 5, "none")),
        ([0.5, 0.73, 0.69, 0.8], {"ties": ()}, (5, 3, 5, "none")),
    ],
)
def test_gaps_and_agreement_decide(monkeypatch, agreement, changed, found):
    number = decided(monkeypatch, agreement, **{**THREE, **changed})
    assert (number.estimate, number.low, number.high, number.evidence) == found


@pytest.mark.parametrize(("n_features", "found"), [(3, (2, "steady")), (4, (1, "none"))])
def test_shapes_may_be_divided_by_ties(monkeypatch, n_features, found):
    """In the plane a division that ties make counts as well, and a small number costs nothing."""
    ties = {"ties": [0.6, 0.59, 0.58, 0.57], "returns": [0.5] * 4}
    number = decided(monkeypatch, [0.5] * 4, **ties, n_features=n_features).tested(0.5)
    assert (number.estimate, number.evidence) == found


def test_without_a_gap_the_best_third_decide():
    found = counted([0.5, 0.55, 0.6, 0.5], natural=4, estimate=4, high=5, best=[0.95, 0.7, 0.7, 0.6])
    gap, steady = found.tested(0.03), found.tested(0.031)
    assert [(one.estimate, one.evidence) for one in (gap, steady)] == [(4, "gap"), (2, "steady")]
    assert (gap.agreed, steady.agreed) == (0.6, 0.95)
    for (best, p_value), evidence in {(0.91, 0.2): "gap", (0.91, 0.21): "steady", (0.89, 0.2): "steady"}.items():
        assert replace(found, best_agreement=np.full(4, best)).tested(p_value).evidence == evidence
    for best, evidence in ((0.58, "steady"), (0.56, "none")):
        weak = replace(found, best_agreement=np.array([best, 0.4, 0.4, 0.4]))
        assert (weak.tested(0.2).evidence, weak.tested(0.2).otherwise) == (evidence, 2 if evidence == "none" else None)
        assert weak.tested(0.21).otherwise is None


def test_a_steady_division_is_also_that_of_random_parts():
    """The product of its two agreements is 0.57 or more; its own counts twice where the other is not known."""
    for agreed, stability, lasts in (
        (0.95, 0.61, True),
        (0.95, 0.59, False),
        (0.76, np.nan, True),
        (0.75, np.nan, False),
    ):
        steady = counted([0.1, 0.1], natural=2, high=3, evidence="steady", best=[agreed, 0.1])
        found = steady.steadied(stability)
        assert found is steady if lasts else (found.estimate, found.high, found.evidence) == (1, 2, "none")
    gap = counted([0.9, 0.1], natural=2, evidence="gap")
    assert gap.steadied(0.1) is gap


def test_one_community_is_no_division():
    one = ClusterCount(1, 1, 1, "none", np.array([1]), np.ones(1), np.ones(1), np.ones(3))
    assert one.tested(0.5).evidence == "none"


def test_a_graph_in_many_pieces_does_not_set_the_numbers(monkeypatch):
    def cuts(graph, seed):
        return count.Cuts({k: np.arange(100) % k for k in range(2, graph.n_pieces + 1)}, {}, {})

    monkeypatch.setattr(count, "most_supported", lambda graphs: [0, 1, 2])
    monkeypatch.setattr(count, "_natural", lambda graph: 5)
    monkeypatch.setattr(count, "cuts_of", cuts)
    graphs = [SimpleNamespace(W=np.zeros((100, 100)), n_pieces=n) for n in (5, 5, 30)]
    assert count.count_clusters(graphs, 9).candidates.tolist() == [2, 3, 4, 5]


def test_doubt_grows_with_the_range_and_without_a_gap():
    found = counted([0.9, 0.9], natural=2, evidence="gap")
    doubts = [found.doubt, replace(found, high=4).doubt, replace(found, evidence="steady").doubt]
    assert np.allclose(doubts, [-0.6, -0.6 + 0.3 * np.log(2), -0.3])


def test_agreement_of_all_settings_and_of_the_best_third(rng):
    one = np.arange(60) % 3
    mean, best = count._agreement([one] * 5 + [rng.permutation(one) for _ in range(7)])
    assert best == pytest.approx(1)
    assert mean < 0.7
    two_of_four = count._agreement([one, one, rng.permutation(one), rng.permutation(one)])
    assert two_of_four[1] < 0.28  # a third is at least three


def test_graphs_that_others_confirm_decide_one_of_each_kernel_first(rng):
    def graph(kernel, communities):
        return SimpleNamespace(setting=SimpleNamespace(scaling=None, kernel=kernel, reg=1), communities=communities)

    one = np.arange(60) % 3
    graphs = [graph("linear", rng.permutation(one)), *[graph("rbf", one) for _ in range(13)]]
    assert count.most_supported(graphs) == [1, 0, *range(2, 12)]


def test_a_number_far_from_the_natural_one_needs_a_larger_agreement():
    """0.2 for each e-fold above, 0.1 for each below."""
    for k, cost in ((12, 0.2 * np.log(12 / 6)), (2, 0.1 * np.log(6 / 2))):
        for more, best in ((-0.005, 6), (0.005, k)):
            agreement = np.full(20, 0.6)
            agreement[k - 2] += cost + more
            found = counted(agreement, natural=6)
            assert found.candidates[found.score.argmax()] == best


def test_sentences():
    some = counted(np.linspace(0.5, 1, 30), 20, 20, "gap", low=17, high=23)
    assert verdict(some, 20, 575, 14) == "Probably 20 groups (17 to 23); 14 of 575 items are doubtful."
    assert verdict(replace(some, low=14), 20) == "Probably 20 groups (14 to 23)."
    assert verdict(replace(some, low=13), 20) == "Perhaps 20 groups (13 to 23)."
    assert verdict(replace(some, low=6), 20) == "Perhaps 20 groups (6 to 23)."
    assert verdict(replace(some, low=23, high=23), 23) == "Probably 23 groups."
    unclear = "Groups exist, but their number is not clear: 5 coarse, 23 fine; shown are 20 groups"
    assert verdict(replace(some, low=5), 20, 100, 1) == f"{unclear}; 1 of 100 items is doubtful."
    steady = "No gap between groups: one continuous cloud; its steadiest division has 2 parts"
    division = verdict(replace(some, evidence="steady"), 2, stability=0.93)
    assert division == f"{steady} (agreement 0.93 over resamples)."
    assert "between settings" in verdict(replace(some, evidence="steady"), 2)
    none = replace(some, evidence="none", estimate=1, high=3)
    assert verdict(replace(none, p_value=0.4), 1) == "No groups: the data look like one cloud."
    barely = "Perhaps no groups: the data look much like one cloud. If there are any, perhaps 3."
    assert verdict(replace(none, p_value=0.1), 1) == barely
    assert verdict(replace(none, untested=True), 1, 5) == "5 items are too few to tell whether there are groups."


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


def test_a_few_outliers_do_not_hide_the_groups(rng):
    """Near-copies of one sentence among many texts: one gap, beyond which the settings still agree."""
    y = np.repeat(np.arange(6), 60)
    X = rng.normal(size=(360, 12)) + 8 * np.eye(6, 12)[y]
    X = np.vstack([X, 40 * np.eye(12)[11] + 0.01 * rng.normal(size=(7, 12))])
    found = SubspaceClustering().fit(X)
    assert adjusted_rand_score(y, found.labels_[:360]) > 0.9
