"""The number of clusters: evidence, range, small clusters, and the sentence that says it."""

from __future__ import annotations

from dataclasses import replace

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
    natural = np.full(3, natural)
    return ClusterCount(estimate, low, high, evidence, candidates, agreement, best, natural, **changed)


def unequal(sizes, n_features, seed):
    """Gaussians of these sizes, eight deviations apart along the axes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.vstack([np.zeros(n_features), 8 * np.eye(n_features)])[: len(sizes)]
    order = rng.permutation(len(y))
    return (rng.normal(size=(len(y), n_features)) + centres[y])[order], y[order]


@pytest.mark.parametrize("k", [3, 6, 12])
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


def test_without_a_gap_the_best_third_decide():
    agreement = [0.5, 0.55, 0.6, 0.5]
    found = counted(agreement, natural=4, estimate=4, best=[0.95, 0.7, 0.7, 0.6])
    assert found.tested(0.01).evidence == "gap"
    assert (found.tested(0.01).estimate, found.tested(0.5).estimate) == (4, 2)
    assert found.tested(0.5).evidence == "steady"
    weak = replace(found, best_agreement=0.5 * found.best_agreement).tested(0.1)
    assert (weak.evidence, weak.estimate, weak.otherwise) == ("none", 1, 2)
    assert replace(found, best_agreement=0.5 * found.best_agreement).tested(0.5).otherwise is None


def test_a_number_far_from_the_natural_one_needs_a_larger_agreement():
    agreement = np.full(20, 0.6)
    natural = counted(agreement, natural=6)
    assert natural.candidates[natural.score.argmax()] == 6
    agreement[10] = 0.6 + count.ABOVE * np.log(12 / 6) - 0.01
    assert natural.candidates[counted(agreement, natural=6).score.argmax()] == 6
    agreement[10] += 0.02
    assert natural.candidates[counted(agreement, natural=6).score.argmax()] == 12
    agreement[0] = 1.0  # 0.1 for each e-fold below
    assert natural.candidates[counted(agreement, natural=6).score.argmax()] == 2


def test_sentences():
    some = counted(np.linspace(0.5, 1, 30), 20, 20, "gap", low=17, high=23)
    assert verdict(some, 20, 575, 14) == "Probably 20 groups (17 to 23); 14 of 575 items are doubtful."
    assert verdict(replace(some, low=12), 20) == "Perhaps 20 groups (12 to 23)."
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
