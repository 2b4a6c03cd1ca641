"""Labels of every kind, and the names that clusters get."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from sklearn.metrics.cluster import contingency_matrix

from metrics_data import labellings, properties, random_labels
from subspaces.metrics import accuracy, best_matching, clustering_scores, contingency

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
