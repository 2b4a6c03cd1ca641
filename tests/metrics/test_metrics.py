"""Scores against slow and other references, their properties, borders and errors."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from metrics_data import AVERAGES, KEYS, PRED, TRUE, labellings, properties, random_labels
from subspaces import metrics
from subspaces.metrics import (
    accuracy,
    adjusted_rand,
    best_matching,
    clustering_scores,
    contingency,
    normalized_mutual_info,
    pairwise_f_score,
    pairwise_precision,
    pairwise_recall,
    purity,
    score_table,
)

SCORES = [
    accuracy,
    normalized_mutual_info,
    adjusted_rand,
    pairwise_f_score,
    pairwise_precision,
    pairwise_recall,
    purity,
]
SYMMETRIC = [accuracy, normalized_mutual_info, adjusted_rand, pairwise_f_score]


def slow_accuracy(true, pred):
    """Try every one-to-one naming of clusters."""
    clusters = sorted(set(pred))
    names = [*sorted(set(true)), *(("unmatched", i) for i in range(len(clusters)))]
    best = 0
    for chosen in itertools.permutations(names, len(clusters)):
        name = dict(zip(clusters, chosen, strict=True))
        best = max(best, sum(t == name[p] for t, p in zip(true, pred, strict=True)))
    return best / len(true)


def slow_pairs(true, pred):
    """Pairs together in both, only in clusters, only in classes, in neither."""
    kinds = Counter((true[i] == true[j], pred[i] == pred[j]) for i, j in itertools.combinations(range(len(true)), 2))
    return kinds[True, True], kinds[False, True], kinds[True, False], kinds[False, False]


def slow_purity(true, pred):
    largest = (max(Counter(t for t, p in zip(true, pred, strict=True) if p == c).values()) for c in set(pred))
    return sum(largest) / len(true)


# ---------------------------------------------------------------- against slow and other references


@properties
@given(labellings(max_size=10, max_labels=4))
def test_accuracy_tries_all_permutations(pair):
    assert accuracy(*pair) == pytest.approx(slow_accuracy(*pair), rel=1e-15)


@pytest.mark.parametrize(("n_classes", "n_clusters"), [(2, 5), (5, 2), (1, 4), (4, 1), (4, 4)])
def test_accuracy_of_rectangular_tables(n_classes, n_clusters):
    for seed in range(10):
        true, pred = (x.tolist() for x in random_labels(12, n_classes, n_clusters, seed))
        assert accuracy(true, pred) == pytest.approx(slow_accuracy(true, pred), rel=1e-15)


@properties
@given(labellings())
def test_pair_scores_count_pairs(pair):
    both, only_cluster, only_class, neither = slow_pairs(*pair)
    if only_cluster == only_class == 0:
        expected = [1.0] * 4
    else:
        total = both + only_cluster + only_class + neither
        chance = Fraction((both + only_class) * (both + only_cluster), total)
        mean = Fraction(2 * both + only_class + only_cluster, 2)
        expected = [
            both / (both + only_cluster) if both + only_cluster else 0.0,
            both / (both + only_class) if both + only_class else 0.0,
            2 * both / (2 * both + only_cluster + only_class),
            float((both - chance) / (mean - chance)),
        ]
    scores = [f(*pair) for f in (pairwise_precision, pairwise_recall, pairwise_f_score, adjusted_rand)]
    assert scores == pytest.approx(expected, rel=1e-14, abs=1e-15)


@properties
@given(labellings())
def test_purity_counts_the_largest_class(pair):
    assert purity(*pair) == pytest.approx(slow_purity(*pair), rel=1e-15)


@properties
@given(labellings(max_size=60, max_labels=8))
def test_agrees_with_scikit_learn(pair):
    assert adjusted_rand(*pair) == pytest.approx(sk.adjusted_rand_score(*pair), rel=1e-12, abs=1e-14)
    for average in AVERAGES:
        ours = normalized_mutual_info(*pair, average=average)
        theirs = sk.normalized_mutual_info_score(*pair, average_method=average)
        assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-10)
    (_, only_cluster), (only_class, both) = pair_confusion_matrix(*pair).tolist()
    if only_cluster or only_class:
        assert pairwise_f_score(*pair) == pytest.approx(2 * both / (2 * both + only_class + only_cluster))
    np.testing.assert_array_equal(contingency(*pair).counts, contingency_matrix(*pair))


def test_values_worked_by_hand():
    both, only_cluster, only_class = 2, 1, 4
    assert accuracy(TRUE, PRED) == 4 / 6
    assert pairwise_precision(TRUE, PRED) == both / (both + only_cluster)
    assert pairwise_recall(TRUE, PRED) == both / (both + only_class)
    assert pairwise_f_score(TRUE, PRED) == 4 / 9
    assert adjusted_rand(TRUE, PRED) == pytest.approx(8 / 33, rel=1e-15)
    assert purity(TRUE, PRED) == 5 / 6
    information = 2 / 3 * math.log(2)
    h_true, h_pred = math.log(2), math.log(3)
    assert normalized_mutual_info(TRUE, PRED) == pytest.approx(information / h_pred)
    assert normalized_mutual_info(TRUE, PRED, "min") == pytest.approx(2 / 3)
    assert normalized_mutual_info(TRUE, PRED, "geometric") == pytest.approx(information / math.sqrt(h_true * h_pred))
    assert normalized_mutual_info(TRUE, PRED, "arithmetic") == pytest.approx(2 * information / (h_true + h_pred))


def test_default_average_divides_by_the_larger_entropy():
    by_average = [normalized_mutual_info(TRUE, PRED, average) for average in AVERAGES]
    assert normalized_mutual_info(TRUE, PRED) == by_average[0] == min(by_average)


# ---------------------------------------------------------------- properties


@properties
@given(labellings(), st.randoms(use_true_random=False))
def test_names_and_order_change_nothing(pair, random):
    true, pred = pair
    names_true, names_pred = list(range(-2, 3)), [f"cluster {i}" for i in range(5)]
    random.shuffle(names_true)
    random.shuffle(names_pred)
    order = list(range(len(true)))
    random.shuffle(order)
    renamed = [names_true[true[i]] for i in order], [names_pred[pred[i]] for i in order]
    assert clustering_scores(*renamed) == clustering_scores(*pair)


@properties
@given(labellings())
def test_symmetry(pair):
    true, pred = pair
    for score in SYMMETRIC:
        assert score(true, pred) == score(pred, true)
    for average in AVERAGES:
        assert normalized_mutual_info(true, pred, average) == normalized_mutual_info(pred, true, average)
    assert pairwise_precision(true, pred) == pairwise_recall(pred, true)


@properties
@given(labellings())
def test_ranges_and_order(pair):
    scores = clustering_scores(*pair)
    assert list(scores) == KEYS
    assert all(isinstance(value, float) for value in scores.values())
    assert all(0 <= scores[key] <= 1 for key in KEYS if key != "ari")
    assert -1 <= scores["ari"] <= 1
    assert 0 < scores["accuracy"] <= scores["purity"]
    nmi = [normalized_mutual_info(*pair, average=average) for average in AVERAGES]
    assert all(
        low <= high + 1e-14 for low, high in zip([nmi[0], nmi[1], nmi[2]], [nmi[1], nmi[2], nmi[3]], strict=True)
    )


@properties
@given(labellings())
def test_clustering_scores_are_the_single_scores(pair):
    assert list(clustering_scores(*pair).values()) == [score(*pair) for score in SCORES]
    assert clustering_scores(*pair) == {score.name: score.function(*pair) for score in metrics.SCORES}


@properties
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.permutations(range(7)))
def test_the_same_partition_scores_exactly_one(labels, names):
    renamed = [names[label] for label in labels]
    assert set(clustering_scores(labels, renamed).values()) == {1.0}
    assert {normalized_mutual_info(labels, renamed, average) for average in AVERAGES} == {1.0}


# ---------------------------------------------------------------- degenerate labellings


def test_constant_labels():
    true = np.repeat(np.arange(10), 200)
    scores = clustering_scores(true, np.zeros(2000))
    assert scores["accuracy"] == scores["purity"] == 0.1
    assert scores["nmi"] == scores["ari"] == 0.0
    assert scores["recall"] == 1.0
    assert scores["f_score"] == pytest.approx(0.181074, abs=5e-7)
    assert [normalized_mutual_info(true, np.zeros(2000), average) for average in AVERAGES] == [0.0] * 4


@pytest.mark.parametrize("pair", [([3], ["a"]), ([1, 1, 1], [7, 7, 7]), ([0, 1, 2], ["x", "z", "y"])])
def test_trivial_equal_partitions_score_one(pair):
    assert set(clustering_scores(*pair).values()) == {1.0}


def test_own_cluster_for_each_point_against_one_class():
    scores = clustering_scores([0, 0, 0, 0], [0, 1, 2, 3])
    assert scores == dict(zip(KEYS, [0.25, 0, 0, 0, 0, 0, 1], strict=True))
    scores = clustering_scores([0, 1, 2, 3], [0, 0, 0, 0])
    assert scores == dict(zip(KEYS, [0.25, 0, 0, 0, 0, 0, 0.25], strict=True))


def test_independent_labels_share_no_information():
    true, pred = np.divmod(np.arange(60), 6)
    assert normalized_mutual_info(true, pred) == 0.0
    assert adjusted_rand(true, pred) < 0


def test_noise_is_an_ordinary_label():
    assert clustering_scores([0, 0, 1, 1], [-1, -1, 0, 0]) == clustering_scores([0, 0, 1, 1], [1, 1, 0, 0])


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("score", [*SCORES, contingency, best_matching, clustering_scores, score_table])
def test_errors_of_every_function(score):
    with pytest.raises(ValueError, match=r"labels_true and labels_pred .* lengths 3 and 2"):
        score([0, 0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"labels_true must .* not empty, got shape \(0,\)"):
        score([], [])
    with pytest.raises(ValueError, match=r"labels_pred must be one-dimensional .* got shape \(2, 1\)"):
        score([0, 1], [[0], [1]])
    for missing in ([0, np.nan], np.array([0, np.nan]), [0, None], ["a", float("nan")], np.array([1, None])):
        with pytest.raises(ValueError, match="labels_pred must not hold missing labels"):
            score([0, 1], missing)
    with pytest.raises(ValueError, match="labels_true must not hold missing labels"):
        score(np.array(["2020-01-01", "NaT"], dtype="M8[D]"), [0, 1])


def test_unknown_average():
    with pytest.raises(ValueError, match="average must be one of max, arithmetic, geometric, min, got 'mean'"):
        normalized_mutual_info(TRUE, PRED, average="mean")  # type: ignore[arg-type]
