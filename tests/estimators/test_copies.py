"""Rows that occur often: rounded numbers, tables joined twice. Copies represent each other, and nothing else."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from subspaces import SubspaceClustering
from subspaces.numerics.ordering import fingerprints, one_of_each


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


def test_copies_that_are_the_groups_stay():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 5, 200)
    cloud = rng.normal(size=(100, 3))
    cloud[:40] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "raise n_nonzero" would say nothing to a user who cannot set it
        assert adjusted_rand_score(kinds, SubspaceClustering().fit(np.eye(5)[kinds]).labels_) == 1
        assert adjusted_rand_score(np.arange(100) < 40, SubspaceClustering(2).fit(cloud).labels_) > 0.9


def test_few_copies_change_nothing():
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[1] = X[0]
    assert len(one_of_each(fingerprints(X)).rows) == 50
