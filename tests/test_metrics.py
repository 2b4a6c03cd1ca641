from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as sk
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from subspaces import _contingency, metrics
from subspaces.metrics import (
    CONSTANT,
    Contingency,
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
KEYS = ["accuracy", "nmi", "ari", "f_score", "precision", "recall", "purity"]
AVERAGES = ["max", "arithmetic", "geometric", "min"]

# Reproducible and independent of the speed of the machine; the tests hold for any seed
properties = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])

TRUE = [0, 0, 0, 1, 1, 1]
PRED = [0, 0, 1, 1, 2, 2]


@st.composite
def labellings(draw, max_size=25, max_labels=5):
    n = draw(st.integers(1, max_size))
    labels = st.lists(st.integers(0, max_labels - 1), min_size=n, max_size=n)
    return draw(labels), draw(labels)


def random_labels(n, n_classes, n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n), rng.integers(0, n_clusters, n)


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


def as_table(counts):
    counts = np.asarray(counts)
    return Contingency(counts, np.arange(counts.shape[0]), np.arange(counts.shape[1]))


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


# ---------------------------------------------------------------- kinds of labels


INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extreme_integers(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, info.max - 1, info.max], dtype=dtype)
    true, pred = random_labels(50, 4, 3)
    table = contingency(values[true], values[pred])
    np.testing.assert_array_equal(table.counts, contingency_matrix(true, pred))
    np.testing.assert_array_equal(table.classes, values)
    assert table.classes.dtype == dtype
    assert clustering_scores(values[true], values[pred]) == clustering_scores(true, pred)


@pytest.mark.parametrize("offset", [10**15, -(10**15), 2**63 - 10, -(2**63), -3])
def test_offset_integers(offset):
    true, pred = random_labels(80, 4, 5)
    table = contingency(true + offset, 3 * pred)
    np.testing.assert_array_equal(table.classes, np.arange(4) + offset)
    np.testing.assert_array_equal(table.clusters, 3 * np.arange(5))
    np.testing.assert_array_equal(table.counts, contingency_matrix(true, pred))


@pytest.mark.parametrize(
    "values",
    [
        np.array(["ape", "bee", "cat", "dog"]),
        np.array(["ape", "bee", "cat", "dog"], dtype=object),
        np.array([b"ape", b"bee", b"cat", b"dog"]),
        np.array([0.25, 0.5, 1.0, np.inf]),
        np.array([-2.0, 0.0, 3.0, 4.0]),
        np.array([1, 2, 3, 4], dtype=np.float16),
        np.array([0, 1, 2, 10**12]),
        np.array([1j, 2j, 3j, 1 + 1j]),
        np.array(["2020-01-01", "2020-01-02", "2020-01-03", "2021-01-01"], dtype="M8[D]"),
        np.array([1, "1", b"1", frozenset([1])], dtype=object),
        np.array([10**30, -(10**30), 0, 1], dtype=object),
    ],
    ids=lambda values: f"{values.dtype}-{values[0]}",
)
def test_any_labels(values):
    true, pred = random_labels(60, 4, 4)
    expected = clustering_scores(true, pred)
    assert clustering_scores(values[true], pred) == expected
    assert clustering_scores(true, values[pred]) == expected
    assert clustering_scores(values[true].tolist(), values[pred].tolist()) == expected
    assert len(contingency(values[true], pred).classes) == 4


def test_booleans():
    table = contingency([True, False, True], np.array([False, False, True]))
    np.testing.assert_array_equal(table.counts, [[1, 0], [1, 1]])
    assert table.classes.dtype == table.clusters.dtype == bool


def test_mixed_lists_keep_their_labels_apart():
    assert len(contingency([1, "1", 1, "1"], [0, 1, 0, 1]).classes) == 2
    assert accuracy([1, "1", 1, "1"], [0, 1, 0, 1]) == 1.0
    for labels in ([2**53, 2**53 + 1, 0.5], [2**63, 2**63 + 1, -1], [10**30, 10**30 + 1, 0]):
        assert contingency(labels, labels).counts.tolist() == np.eye(3).tolist()


def test_objects_of_any_kind():
    labels = np.empty(4, dtype=object)
    labels[:] = [(1, 2), (1, 3), None.__class__, (1, 2)]
    assert accuracy(labels, [0, 1, 2, 0]) == 1.0
    assert best_matching(labels, [0, 1, 2, 0]).tolist() == labels.tolist()


def test_lists_of_floats_stay_numbers():
    assert contingency([1.0, 2.5], [0, 1]).classes.dtype == np.float64


def test_series():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    true, pred = random_labels(40, 3, 4)
    names = np.array(["a", "b", "c", "d"])
    expected = clustering_scores(true, pred)
    index = np.arange(40)[::-1]
    for first in (
        pandas.Series(true, index=index),
        pandas.Series(names[true]),
        pandas.Series(names[true]).astype("category"),
        pandas.Series(true, dtype="Int64"),
        polars.Series(true),
        polars.Series(names[true].tolist()),
    ):
        assert clustering_scores(first, pandas.Series(pred)) == expected
    for missing in (
        pandas.Series([1, None], dtype="Int64"),
        pandas.Series(["a", None]),
        pandas.Series([1, pandas.NA], dtype=object),
        pandas.to_datetime(pandas.Series(["2020-01-01", None])),
        polars.Series([1, None]),
        polars.Series(["a", None]),
    ):
        with pytest.raises(ValueError, match="labels_pred must not hold missing labels"):
            accuracy([0, 1], missing)


def test_arguments_are_not_changed():
    true, pred = random_labels(30, 3, 3)
    copies = true.copy(), pred.copy()
    true.setflags(write=False)
    pred.setflags(write=False)
    clustering_scores(true, pred)
    best_matching(true, pred)
    np.testing.assert_array_equal((true, pred), copies)


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


# ---------------------------------------------------------------- large tables


def total_of_best_matching(counts):
    return counts[linear_sum_assignment(counts, maximize=True)].sum()


@properties
@given(labellings(max_size=60, max_labels=9))
def test_sparse_table_gives_the_dense_scores(pair):
    dense, expected = contingency(*pair), clustering_scores(*pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_contingency, "DENSE_CELLS", 0)
        table = contingency(*pair)
        assert sparse.issparse(table.counts)
        np.testing.assert_array_equal(table.counts.toarray(), dense.counts)
        assert clustering_scores(*pair) == expected
        assert np.mean(best_matching(*pair) == np.asarray(pair[0])) == pytest.approx(expected["accuracy"])


@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (4, 30), (30, 4), (40, 40)])
@pytest.mark.parametrize("density", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("largest", [2, 50])
def test_sparse_matching_is_optimal(shape, density, largest):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, largest, shape) * (rng.random(shape) < density)
        counts[0, 0] += 1
        rows, columns = counts.nonzero()
        for matched in (
            _contingency._match_sparse(rows, columns, counts[rows, columns]),
            _contingency.match(as_table(counts)),
            _contingency.match(Contingency(sparse.csr_array(counts), np.arange(shape[0]), np.arange(shape[1]))),
        ):
            assert len(set(matched[0])) == len(set(matched[1])) == len(matched[0])
            assert np.all(counts[matched] > 0)
            assert counts[matched].sum() == total_of_best_matching(counts)


def test_scipy_gets_what_stays_doubtful(monkeypatch):
    # Blocks [[5, 4], [4, 5]]: no cell outweighs both of its rivals
    left = []
    solve = _contingency._match_sparse
    monkeypatch.setattr(_contingency, "_match_sparse", lambda *cells: left.append(len(cells[0])) or solve(*cells))
    counts = sparse.block_diag([np.array([[5, 4], [4, 5]])] * 30 + [np.array([[9]])] * 70, format="csr")
    rows, columns = _contingency.match(Contingency(sparse.csr_array(counts), np.arange(130), np.arange(130)))
    assert left == [120]
    np.testing.assert_array_equal(np.sort(rows), np.arange(130))
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == {(i, i) for i in range(130)}


def test_every_point_its_own_cluster():
    n = 50_000
    points = np.random.default_rng(0).permutation(n)
    table = contingency(points, points[::-1])
    assert sparse.issparse(table.counts)
    assert table.counts.nnz == n
    assert set(clustering_scores(points, points[::-1]).values()) == {1.0}
    scores = clustering_scores(points % 7, points)
    assert scores["accuracy"] == 7 / n
    assert scores["purity"] == 1.0
    assert scores["nmi"] == pytest.approx(math.log(7) / math.log(n), rel=1e-6)


@pytest.mark.parametrize("factor", [1, 10**5, 10**7, 10**9])
def test_large_counts_do_not_overflow(factor):
    counts = np.random.default_rng(1).integers(0, 50, (7, 7)) * factor + 3
    cells, classes, clusters, total = (
        sum(math.comb(int(s), 2) for s in sizes)
        for sizes in (counts.ravel(), counts.sum(axis=1), counts.sum(axis=0), [counts.sum()])
    )
    chance = Fraction(classes * clusters, total)
    scores = metrics._scores(as_table(counts))
    assert scores["precision"] == cells / clusters
    assert scores["recall"] == cells / classes
    assert scores["f_score"] == pytest.approx(2 * cells / (classes + clusters), rel=1e-15)
    ari = float((cells - chance) / (Fraction(classes + clusters, 2) - chance))
    assert scores["ari"] == pytest.approx(ari, rel=1e-14)
    small = metrics._scores(as_table(counts.astype(np.float64) / counts.sum() * 1e6 // 1))
    for key in ("accuracy", "nmi", "purity"):
        assert scores[key] == pytest.approx(small[key], abs=1e-4)
    assert scores["accuracy"] == total_of_best_matching(counts) / counts.sum()


def test_many_points_in_blocks():
    # More points than one block of the table
    true, pred = random_labels(1_300_000, 7, 5)
    np.testing.assert_array_equal(contingency(true, pred).counts, np.histogram2d(true, pred, bins=(7, 5))[0])


# ---------------------------------------------------------------- renaming


@properties
@given(labellings())
def test_best_matching_renames_clusters_one_to_one(pair):
    true, pred = map(np.asarray, pair)
    renamed = best_matching(true, pred)
    assert np.mean(renamed == true) == pytest.approx(accuracy(true, pred))
    table = contingency(pred, renamed).counts
    assert table.shape[0] == table.shape[1]
    assert np.all(np.count_nonzero(table, axis=0) == 1)
    new = np.setdiff1d(renamed, true)
    np.testing.assert_array_equal(new, true.max() + 1 + np.arange(new.size))


def test_best_matching_names():
    assert best_matching([1, 1, 2, 2], [0, 0, 5, 5]).tolist() == [1, 1, 2, 2]
    assert best_matching(["a", "a", "b"], [3, 4, 5]).tolist()[2] == "b"
    renamed = best_matching(["a", "unmatched 1", "a"], [3, 4, 5])
    assert sorted(renamed) == ["a", "unmatched 1", "unmatched 2"]
    assert sorted(best_matching([1.5, 1.5], [0, 1])) == [1.5, 2.0]
    assert sorted(map(str, best_matching([-np.inf, -np.inf], [0, 1]))) == ["-inf", "unmatched 1"]
    assert sorted(best_matching([True, True, True], [0, 1, 2])) == [1, 2, 3]
    huge = 2**64 - 1
    renamed = best_matching(np.array([huge, huge], dtype=np.uint64), [0, 1]).tolist()
    assert huge in renamed
    assert "unmatched 1" in renamed


def test_best_matching_dtype():
    labels = np.array([255, 255, 254], dtype=np.uint8)
    assert best_matching(labels, [0, 0, 1]).dtype == np.uint8
    renamed = best_matching(labels, [0, 2, 1])
    assert renamed.dtype == np.int64
    assert sorted(renamed) == [254, 255, 256]


def test_match_without_common_point_is_no_match():
    # Cluster 9 shares points with class 0 only, which cluster 8 takes; class 1 stays without a cluster
    assert best_matching([0, 0, 0, 0, 0, 1], [8, 8, 8, 9, 9, 8]).tolist() == [0, 0, 0, 2, 2, 0]


# ---------------------------------------------------------------- score table


def test_score_table_rows():
    table = score_table(TRUE, {"ours": PRED, "theirs": TRUE})
    assert list(table.rows) == ["ours", "theirs", CONSTANT]
    assert table.rows["ours"] == clustering_scores(TRUE, PRED)
    assert table.rows[CONSTANT] == clustering_scores(TRUE, [0] * 6)
    copy = table.to_dict()
    assert copy == table.rows
    copy["ours"]["nmi"] = 5.0
    assert table.rows["ours"]["nmi"] < 1


def test_score_table_of_one_array():
    assert list(score_table(TRUE, PRED).rows) == ["labels", CONSTANT]
    assert list(score_table(TRUE, {}).rows) == [CONSTANT]


def test_score_table_is_aligned():
    lines = str(score_table(TRUE, {"a": PRED, "a name that is rather long": TRUE})).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["%", *KEYS]
    assert lines[1].split() == ["a", "66.7", "42.1", "24.2", "44.4", "66.7", "33.3", "83.3"]
    assert lines[2].endswith("100.0   100.0   100.0")


def test_score_table_prints_no_minus_zero():
    true, pred = random_labels(20_000, 10, 10, seed=3)
    pred[:10] = true[:10]
    assert "-0.0" not in str(score_table(true, pred))
    assert f"{-0.0001:z.1f}" == "0.0"


def test_score_table_markdown():
    lines = score_table(TRUE, {"a|b": PRED}).to_markdown().splitlines()
    assert lines[0] == "| % | accuracy | nmi | ari | f_score | precision | recall | purity |"
    assert lines[1] == "| --- |" + " ---: |" * 7
    assert lines[2] == r"| a\|b | 66.7 | 42.1 | 24.2 | 44.4 | 66.7 | 33.3 | 83.3 |"
    assert lines[3].startswith("| constant label | 50.0 | 0.0 | 0.0 |")


def test_score_table_errors_name_the_row():
    with pytest.raises(ValueError, match=r"labels_true and labels_pred\['b'\] .* lengths 6 and 1"):
        score_table(TRUE, {"a": PRED, "b": [0]})
    with pytest.raises(ValueError, match="must not name a row 'constant label'"):
        score_table(TRUE, {CONSTANT: PRED})
