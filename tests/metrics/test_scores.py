"""Scores against slow and other references, their properties, labels of every kind and errors."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from subspaces import metrics
from subspaces.metrics import (
    CONSTANT,
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

KEYS = ["accuracy", "nmi", "ari", "f_score", "precision", "recall", "purity"]
AVERAGES = ["max", "arithmetic", "geometric", "min"]
TRUE, PRED = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]

# reproducible and independent of the speed of the machine; the tests hold for any seed
properties = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def labellings(draw, max_size=25, max_labels=5):
    n = draw(st.integers(1, max_size))
    labels = st.lists(st.integers(0, max_labels - 1), min_size=n, max_size=n)
    return draw(labels), draw(labels)


def random_labels(n, n_classes, n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n), rng.integers(0, n_clusters, n)


# ---------------------------------------------------------------- against slow and other references


def slow_accuracy(true, pred):
    """Try every one-to-one naming of clusters."""
    clusters = sorted(set(pred))
    names = [*sorted(set(true)), *(("unmatched", i) for i in range(len(clusters)))]
    best = 0
    for chosen in itertools.permutations(names, len(clusters)):
        name = dict(zip(clusters, chosen, strict=True))
        best = max(best, sum(t == name[p] for t, p in zip(true, pred, strict=True)))
    return best / len(true)


@properties
@given(labellings(max_size=10, max_labels=4))
def test_accuracy_and_purity_by_trying_all(pair):
    true, pred = pair
    assert accuracy(true, pred) == pytest.approx(slow_accuracy(true, pred), rel=1e-15)
    largest = (max(Counter(t for t, p in zip(true, pred, strict=True) if p == c).values()) for c in set(pred))
    assert purity(true, pred) == pytest.approx(sum(largest) / len(true), rel=1e-15)


@properties
@given(labellings())
def test_pair_scores_count_pairs(pair):
    true, pred = pair
    kinds = Counter((true[i] == true[j], pred[i] == pred[j]) for i, j in itertools.combinations(range(len(true)), 2))
    both, only_cluster, only_class = kinds[True, True], kinds[False, True], kinds[True, False]
    expected = [1.0] * 4
    if only_cluster or only_class:
        chance = Fraction((both + only_class) * (both + only_cluster), kinds.total())
        mean = Fraction(2 * both + only_class + only_cluster, 2)
        expected = [
            both / (both + only_cluster) if both + only_cluster else 0.0,
            both / (both + only_class) if both + only_class else 0.0,
            2 * both / (2 * both + only_cluster + only_class),
            float((both - chance) / (mean - chance)),
        ]
    found = [f(*pair) for f in (pairwise_precision, pairwise_recall, pairwise_f_score, adjusted_rand)]
    assert found == pytest.approx(expected, rel=1e-15, abs=0)  # whole numbers, divided once


@properties
@given(labellings(max_size=60, max_labels=8))
def test_agrees_with_scikit_learn(pair):
    assert adjusted_rand(*pair) == pytest.approx(sk.adjusted_rand_score(*pair), rel=1e-12, abs=1e-14)
    for average in AVERAGES:
        theirs = sk.normalized_mutual_info_score(*pair, average_method=average)
        assert normalized_mutual_info(*pair, average=average) == pytest.approx(theirs, rel=1e-10, abs=1e-10)
    (_, only_cluster), (only_class, both) = pair_confusion_matrix(*pair).tolist()
    if only_cluster or only_class:
        assert pairwise_f_score(*pair) == pytest.approx(2 * both / (2 * both + only_class + only_cluster))
    np.testing.assert_array_equal(contingency(*pair).counts.toarray(), contingency_matrix(*pair))


def test_values_worked_by_hand():
    expected = {
        "accuracy": 4 / 6,
        "ari": 8 / 33,
        "f_score": 4 / 9,
        "precision": 2 / 3,
        "recall": 1 / 3,
        "purity": 5 / 6,
    }
    expected["nmi"] = 2 / 3 * math.log(2) / math.log(3)  # divided by the larger entropy
    assert clustering_scores(TRUE, PRED) == pytest.approx(expected, rel=1e-15)
    assert normalized_mutual_info(TRUE, PRED, "min") == pytest.approx(2 / 3)
    assert normalized_mutual_info(TRUE, PRED, "arithmetic") == pytest.approx(4 / 3 * math.log(2) / math.log(6))


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
def test_symmetry_and_single_scores(pair):
    true, pred = pair
    found, turned = clustering_scores(true, pred), clustering_scores(pred, true)
    assert found == {score.name: score.function(true, pred) for score in metrics.SCORES}
    assert list(found) == KEYS
    assert [found[key] for key in KEYS[:4]] == [turned[key] for key in KEYS[:4]]
    assert found["precision"] == turned["recall"]
    for average in AVERAGES:
        assert normalized_mutual_info(true, pred, average) == normalized_mutual_info(pred, true, average)


@properties
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.permutations(range(7)))
def test_the_same_partition_scores_exactly_one(labels, names):
    renamed = [names[label] for label in labels]
    assert set(clustering_scores(labels, renamed).values()) == {1.0}
    assert {normalized_mutual_info(labels, renamed, average) for average in AVERAGES} == {1.0}


def test_information_is_never_more_than_the_smaller_entropy(rng):
    """Clusters that split classes know all about them: 1, whatever the rounding of two sums of logarithms."""
    for _ in range(200):
        pred = rng.integers(0, 12, 60)
        true = rng.integers(0, 4, 12)[pred]
        assert normalized_mutual_info(true, pred, average="min") <= 1


def test_degenerate_labellings():
    true = np.repeat(np.arange(10), 200)
    found = clustering_scores(true, np.zeros(2000))
    assert [found[key] for key in KEYS] == pytest.approx([0.1, 0, 0, 0.181074, 0.099549774, 1, 0.1], abs=5e-7)
    assert [normalized_mutual_info(true, np.zeros(2000), average) for average in AVERAGES] == [0.0] * 4
    assert set(clustering_scores([3], ["a"]).values()) == {1.0}
    assert list(clustering_scores([0, 0, 0, 0], [0, 1, 2, 3]).values()) == [0.25, 0, 0, 0, 0, 0, 1]
    assert list(clustering_scores([0, 1, 2, 3], [0, 0, 0, 0]).values()) == [0.25, 0, 0, 0, 0, 0, 0.25]
    independent = np.divmod(np.arange(60), 6)
    assert normalized_mutual_info(*independent) == 0.0
    assert adjusted_rand(*independent) < 0


# ---------------------------------------------------------------- large tables


def test_every_sample_its_own_cluster():
    n = 2000
    samples = np.random.default_rng(0).permutation(n)
    assert set(clustering_scores(samples, samples[::-1]).values()) == {1.0}
    found = clustering_scores(samples % 7, samples)
    assert found["accuracy"] == 7 / n
    assert found["nmi"] == pytest.approx(math.log(7) / math.log(n), rel=1e-5)


def test_a_matching_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("subspaces.utils.memory.available_bytes", lambda: 2**20)
    samples = np.arange(1025)
    with pytest.raises(MemoryError, match="the matching of 1025 classes with 1025 clusters needs"):
        accuracy(samples, samples)
    assert purity(samples, samples) == adjusted_rand(samples, samples) == accuracy(samples[1:], samples[1:]) == 1


def test_adjusted_rand_next_to_zero_has_all_its_digits():
    """Nearly independent labels of 400,001 samples: products of pairs are beyond int64."""
    n = 100_000
    true, pred = np.repeat([0, 0, 1, 1], [n + 1, n, n, n]), np.repeat([0, 1, 0, 1], [n + 1, n, n, n])
    cells, classes, total = (
        sum(math.comb(s, 2) for s in sizes) for sizes in ([n + 1, n, n, n], [2 * n + 1, 2 * n], [4 * n + 1])
    )
    chance = Fraction(classes**2, total)
    assert adjusted_rand(true, pred) == pytest.approx(float((cells - chance) / (classes - chance)), rel=1e-12, abs=0)


# ---------------------------------------------------------------- kinds of labels


@pytest.mark.parametrize(
    "values",
    [
        np.array(["ape", "bee", "cat", "dog"]),
        np.array([b"ape", b"bee", b"cat", b"dog"], dtype=object),
        np.array([0.25, 0.5, 1.0, np.inf]),
        np.array([-128, -127, 126, 127], dtype=np.int8),
        np.array([0, 1, 2, 2**64 - 1], dtype=np.uint64),
        np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2021-01-01"], dtype="M8[D]"),
        np.array([10**30, -(10**30), 0, 1], dtype=object),
    ],
    ids=lambda values: f"{values.dtype}-{values[0]}",
)
def test_labels_of_any_kind(values):
    true, pred = random_labels(60, 4, 4)
    expected = clustering_scores(true, pred)
    assert clustering_scores(values[true], pred) == clustering_scores(true, values[pred]) == expected
    assert clustering_scores(values[true].tolist(), values[pred].tolist()) == expected
    assert len(contingency(values[true], pred).classes) == 4


def test_series():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    true, pred = random_labels(40, 3, 4)
    names = np.array(["a", "b", "c", "d"])
    expected = clustering_scores(true, pred)
    for first in (
        pandas.Series(true, index=np.arange(40)[::-1]),
        pandas.Series(names[true]).astype("category"),
        pandas.Series(true, dtype="Int64"),
        polars.Series(names[true].tolist()),
    ):
        assert clustering_scores(first, pandas.Series(pred)) == expected
    for missing in (
        pandas.Series([1, None], dtype="Int64"),
        pandas.Series([1, pandas.NA], dtype=object),
        pandas.to_datetime(pandas.Series(["2020-01-01", None])),
        polars.Series(["a", None]),
    ):
        with pytest.raises(ValueError, match="labels_pred must not hold missing labels"):
            accuracy([0, 1], missing)


# ---------------------------------------------------------------- renaming


@properties
@given(labellings())
def test_best_matching_renames_clusters_one_to_one(pair):
    true, pred = map(np.asarray, pair)
    renamed = best_matching(true, pred)
    assert np.mean(renamed == true) == pytest.approx(accuracy(true, pred))
    table = contingency(pred, renamed).counts.toarray()
    assert table.shape[0] == table.shape[1]
    assert np.all(np.count_nonzero(table, axis=0) == 1)
    new = np.setdiff1d(renamed, true)
    np.testing.assert_array_equal(new, true.max() + 1 + np.arange(new.size))


def test_names_of_unmatched_clusters():
    assert sorted(best_matching(["a", "b", "a"], [3, 4, 5])) == ["a", "b", "unmatched 1"]
    assert sorted(best_matching([1.5, 1.5], [0, 1])) == [1.5, 2.0]
    labels = np.array([255, 255, 254], dtype=np.uint8)
    assert best_matching(labels, [0, 0, 1]).dtype == np.uint8
    assert sorted(best_matching(labels, [0, 2, 1])) == [254, 255, 256]
    # cluster 9 shares samples with class 0 only, which cluster 8 takes; class 1 stays without a cluster
    assert best_matching([0, 0, 0, 0, 0, 1], [8, 8, 8, 9, 9, 8]).tolist() == [0, 0, 0, 2, 2, 0]


# ---------------------------------------------------------------- tables of scores and errors


def test_score_table():
    table = score_table(TRUE, {"a|b": PRED, "same": TRUE})
    assert list(table.rows) == ["a|b", "same", CONSTANT]
    assert table.rows["a|b"] == clustering_scores(TRUE, PRED)
    assert table.rows[CONSTANT] == clustering_scores(TRUE, [0] * 6)
    assert str(table).splitlines()[1].split() == ["a|b", "66.7", "42.1", "24.2", "44.4", "66.7", "33.3", "83.3"]
    assert list(score_table(TRUE, PRED).rows) == ["labels", CONSTANT]
    slightly_below_zero = score_table([0, 1] * 500, [0, 0, 1, 1] * 250)
    assert slightly_below_zero.rows["labels"]["ari"] < 0
    assert "-0.0" not in str(slightly_below_zero)


def test_score_table_errors_name_the_row():
    with pytest.raises(ValueError, match=r"labels_true and labels_pred\['b'\] .* lengths 6 and 1"):
        score_table(TRUE, {"a": PRED, "b": [0]})
    with pytest.raises(ValueError, match="must not name a row 'constant label'"):
        score_table(TRUE, {CONSTANT: PRED})


@pytest.mark.parametrize("score", [accuracy, contingency, best_matching, clustering_scores, score_table])
def test_errors(score):
    with pytest.raises(ValueError, match=r"labels_true and labels_pred .* lengths 3 and 2"):
        score([0, 0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"labels_true must .* not empty, got shape \(0,\)"):
        score([], [])
    with pytest.raises(ValueError, match=r"labels_pred must be one-dimensional .* got shape \(2, 1\)"):
        score([0, 1], [[0], [1]])
    for missing in ([0, np.nan], np.array([0, np.nan]), [0, None], ["a", float("nan")]):
        with pytest.raises(ValueError, match="labels_pred must not hold missing labels"):
            score([0, 1], missing)
    with pytest.raises(ValueError, match="labels_true must not hold missing labels"):
        score(np.array(["2020-01-01", "NaT"], dtype="M8[D]"), [0, 1])


def test_unknown_average():
    with pytest.raises(ValueError, match="average must be one of max, arithmetic, geometric, min, got 'mean'"):
        normalized_mutual_info(TRUE, PRED, average="mean")
