"""Rank tests against arrangements counted one by one, SciPy and the examples of Demšar (2006)."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from subspaces.metrics.significance import friedman, holm, rank_sum, signed_rank

# Demšar (2006): ranks of C4.5, with m, with cf and with both, on 14 data sets (Table 6)
DEMSAR = """
4 3 2 1  1 2 3 4  4 1 2 3  4 1 3 2  4 2 3 1  1 2.5 4 2.5  3 2 4 1  2.5 2.5 4 1  4 3 2 1  2.5 2.5 2.5 2.5
4 2.5 1 2.5  3 2 4 1  4 1 2 3  3 1 4 2
"""
RANKS = np.array(DEMSAR.split(), dtype=float).reshape(14, 4)
# and the differences of the first two (Table 2)
DIFFERENCES = [0.005, -0.008, 0.017, 0.033, 0.006, -0.005, 0.007, 0, 0.063, 0, 0.022, 0.047, 0.009, 0.021]


def rank_sum_by_counting(a, b):
    ranks = stats.rankdata(np.concatenate([a, b]))
    sums = np.array([ranks[list(chosen)].sum() for chosen in combinations(range(len(ranks)), len(a))])
    own, middle = ranks[: len(a)].sum(), sums.mean()
    low, high = (sums <= own + 1e-9).mean(), (sums >= own - 1e-9).mean()
    return min(1.0, 2 * min(low, high)), middle


@pytest.mark.parametrize("largest", [1000, 3])
def test_rank_sum_is_exact(largest, rng):
    for sizes in ((3, 4), (5, 5), (2, 6)):
        a, b = (rng.integers(0, largest, size).astype(float) for size in sizes)
        found = rank_sum(a, b)
        assert found.exact
        assert found.pvalue == pytest.approx(rank_sum_by_counting(a, b)[0])
        assert found.n == sum(sizes)


def test_rank_sum_of_few_runs():
    assert rank_sum([1, 2, 3], [4, 5, 6]).pvalue == pytest.approx(2 / 20)
    assert rank_sum(np.arange(10), np.arange(10, 20)).pvalue == pytest.approx(2 / 184756)
    assert rank_sum([1, 1], [1, 1, 1]) == (3.0, 1.0, 5, True)
    many = rank_sum(np.r_[np.zeros(40), 1], np.ones(40))
    assert not many.exact
    assert many.pvalue < 1e-6


def signed_rank_by_counting(differences):
    ranks = stats.rankdata(np.abs(differences))
    split = (ranks * (np.array(differences) == 0)).sum() / 2
    signs = np.array(list(product([0, 1], repeat=len(differences)))) * (np.array(differences) != 0)
    own = (ranks * (np.array(differences) > 0)).sum() + split
    sums = signs @ ranks + split
    return min(1.0, 2 * min((sums <= own + 1e-9).mean(), (sums >= own - 1e-9).mean()))


def test_signed_rank_of_the_textbook():
    found = signed_rank(DIFFERENCES, np.zeros(14))
    assert found.statistic == 12  # T, zeros split
    assert found.exact
    assert found.pvalue == pytest.approx(signed_rank_by_counting(DIFFERENCES))
    assert found.pvalue < 0.05  # the critical value of 14 data sets is 21


def test_signed_rank(rng):
    a, b = rng.normal(size=9), rng.normal(size=9)
    assert signed_rank(a, b).pvalue == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    assert signed_rank(a, a) == (0.0, 1.0, 9, True)
    assert signed_rank(range(1, 6), np.zeros(5)).pvalue == 2 / 2**5
    assert signed_rank(range(1, 51), np.zeros(50))[1:] == (2 / 2**50, 50, True)  # exact up to 50 pairs without ties
    assert not signed_rank(range(1, 52), np.zeros(51)).exact
    long = signed_rank(np.round(rng.normal(0.5, size=60), 1), np.zeros(60))
    assert not long.exact
    assert 0 < long.pvalue < 1


def test_holm():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1, 1]
    assert holm([]).size == 0


def test_friedman_and_nemenyi_of_the_textbook():
    found = friedman(RANKS, ["C4.5", "m", "cf", "m+cf"], best="min")
    assert found.ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    # 9.28 in the paper, which does not correct for the ties: 1 − Σ(t³ − t) / (n k (k² − 1))
    assert found.statistic * (1 - (3 * 6 + 60) / (14 * 60)) == pytest.approx(9.28, abs=0.005)
    assert (found.statistic, found.pvalue) == pytest.approx(tuple(stats.friedmanchisquare(*RANKS.T)))
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)
    assert found.groups() == [("m+cf", "m", "cf", "C4.5")]
    assert "Mean ranks on 14 data sets: m+cf 1.96, m 2.00" in str(found)


@pytest.mark.parametrize(("k", "quantile"), [(3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_values_of_the_textbook(k, quantile, rng):
    found = friedman(rng.normal(size=(6, k)), [str(i) for i in range(k)])
    assert found.critical_difference == pytest.approx(quantile * np.sqrt(k * (k + 1) / 36), rel=5e-4)


def test_groups_follow_from_nemenyi(rng):
    found = friedman(rng.normal(size=(40, 6)) + np.linspace(3, 0, 6), list("abcdef"))
    p, groups = found.nemenyi(), found.groups()
    assert np.allclose(np.diag(p), 1)
    alike = {frozenset(pair) for group in groups for pair in combinations(group, 2)}
    for i, j in combinations(range(6), 2):
        assert (p[i, j] >= 0.05) == (frozenset((found.names[i], found.names[j])) in alike)
    assert not any(set(one) < set(other) for one in groups for other in groups)


def test_all_alike():
    found = friedman(np.ones((4, 3)), list("abc"))
    assert (found.statistic, found.pvalue) == (0, 1)
    assert found.ranks.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rank_sum([], [1]), "first must be a list of finite numbers"),
        (lambda: rank_sum([1], [np.nan]), "second must be a list of finite numbers"),
        (lambda: signed_rank([1, 2], [1]), "must be pairs; got 2 and 1"),
        (lambda: friedman(np.ones((4, 2)), list("ab")), "Use signed_rank for two methods"),
        (lambda: friedman(np.ones((4, 3)), list("ab")), "one name for each"),
        (lambda: friedman(np.full((4, 3), np.nan), list("abc")), "must be finite"),
        (lambda: friedman(np.ones((4, 3)), list("abc"), best="most"), "best must be max or min; got 'most'"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
