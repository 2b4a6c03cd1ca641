"""Rows that occur often: rounded numbers, tables joined twice, categories. Copies of a row count once."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from subspaces import LSR1, SSC, TRR, SubspaceClustering


def three_groups(seed, share):
    """Groups seven deviations apart, in each of which a share of the rows are copies of one row."""
    rng, y = np.random.default_rng(seed), np.repeat([0, 1, 2], 80)
    X = rng.normal(size=(240, 5)) + 7 / np.sqrt(2) * np.eye(3, 5)[y]
    for group in range(3 if share else 0):
        copies = rng.choice(np.flatnonzero(y == group), int(share * 80), replace=False)
        X[copies] = X[copies[0]]
    return X, y


def one_hot(codes, n_levels=4):
    return np.concatenate([np.eye(n_levels)[column] for column in codes.T], axis=1)


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1], 20)
    return rng.normal(size=(40, 3)) + 9 * y[:, None], y


@pytest.mark.parametrize("n_clusters", [None, 2])
@pytest.mark.parametrize("times", [3, 5])
def test_every_row_several_times_has_the_groups_of_every_row_once(two, times, n_clusters):
    X, y = two
    once = SubspaceClustering(n_clusters).fit(X)
    assert adjusted_rand_score(y, once.labels_) == 1
    order = np.random.default_rng(0).permutation(times * len(X))
    row = np.repeat(np.arange(len(X)), times)[order]
    model = SubspaceClustering(n_clusters).fit(X[row])
    assert adjusted_rand_score(once.labels_[row], model.labels_) == 1
    assert model.verdict_ == once.verdict_
    assert "40 of " in model.selection_.reason
    assert np.array_equal(model.predict(X[row]), model.labels_)
    for known in (model.confidence_, model.membership_, model.outliers_, model.embedding_, model.tree_.leaves):
        assert len(known) == len(row)
    assert model.tree_.sizes[-1] == len(row)
    assert model.affinity_matrix_.shape == model.coefficients_.shape == (len(row), len(row))
    assert abs(model.affinity_matrix_ - model.affinity_matrix_.T).max() == 0
    assert all(np.ptp(model.confidence_[row == i]) == 0 for i in row)
    copy = np.flatnonzero(row == row[-1])[1]
    assert row[model.explain(copy).points].tolist() == [row[copy]]


@pytest.mark.parametrize("seed", range(3))
def test_rounding_makes_no_groups(seed):
    X = np.random.default_rng(seed).normal(size=(300, 2)) * 2
    assert SubspaceClustering().fit(X.round()).n_clusters_ == 1


def test_rounding_does_not_hide_groups():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    points = {
        "scores": (rng.normal(size=(300, 2)) * 1.2).round() + 6 * y[:, None],
        "questionnaire": np.clip(np.where(y == 0, 2, 4)[:, None] + (rng.normal(size=(300, 4)) * 0.7).round(), 1, 5),
    }
    for name, X in points.items():
        assert adjusted_rand_score(y, SubspaceClustering(2).fit(X).labels_) > 0.95, name


@pytest.mark.parametrize("share", [0.2, 0.4, 0.7])
def test_copies_of_one_row_do_not_become_a_group(share):
    X, y = three_groups(1, share)
    assert adjusted_rand_score(y, SubspaceClustering(3).fit(X).labels_) == 1
    found = SubspaceClustering().fit(X)
    assert found.n_clusters_ == 3
    assert adjusted_rand_score(y, found.labels_) == 1


def test_classes_in_one_hot_columns_are_found():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y, typical = rng.integers(0, 3, 400), rng.integers(0, 4, (3, 10))
        codes = np.where(rng.random((400, 10)) < 0.8, typical[y], rng.integers(0, 4, (400, 10)))
        assert adjusted_rand_score(y, SubspaceClustering(3).fit(one_hot(codes)).labels_) > 0.95


@pytest.mark.parametrize("cls", [TRR, SSC, LSR1])
def test_orthogonal_kinds_are_clusters(cls):
    kinds = np.random.default_rng(0).integers(0, 3, 40)
    found = cls(3).fit(np.eye(3)[kinds])
    assert adjusted_rand_score(kinds, found.labels_) == 1
    np.testing.assert_array_equal(found.predict(np.eye(3)[kinds]), found.labels_)


@pytest.mark.parametrize(("n_columns", "n_levels"), [(3, 4), (3, 6), (6, 2), (2, 3)])
def test_independent_categories_are_no_groups(n_columns, n_levels):
    codes = np.random.default_rng(1).integers(0, n_levels, (400, n_columns))
    assert SubspaceClustering().fit(one_hot(codes, n_levels)).n_clusters_ == 1


def test_half_of_the_rows_equal_is_no_group():
    X = np.random.default_rng(0).normal(size=(200, 4))
    X[:100] = X[0]
    assert SubspaceClustering().fit(X).n_clusters_ == 1


def test_a_few_kinds_of_rows_are_the_groups():
    kinds = np.random.default_rng(0).integers(0, 5, 200)
    found = SubspaceClustering().fit(np.eye(5)[kinds])
    assert adjusted_rand_score(kinds, found.labels_) == 1
    assert found.verdict_ == "5 groups: the rows are of 5 kinds."
    assert found.confidence_.min() > 0.9
