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


def two_sided(sums, own):
    return min(1.0, 2 * min((sums <= own + 1e-9).mean(), (sums >= own - 1e-9).mean()))


@pytest.mark.parametrize("largest", [1000, 3])
def test_rank_sum_counts_arrangements(largest, rng):
    for sizes in ((3, 4), (5, 5), (2, 6)):
        a, b = (rng.integers(0, largest, size).astype(float) for size in sizes)
        ranks = stats.rankdata(np.concatenate([a, b]))
        sums = np.array([ranks[list(chosen)].sum() for chosen in combinations(range(len(ranks)), len(a))])
        found = rank_sum(a, b)
        assert found.pvalue == pytest.approx(two_sided(sums, ranks[: len(a)].sum()))
        assert (found.n, found.exact) == (sum(sizes), True)


def test_rank_sum_of_alike_and_of_many():
    assert rank_sum(np.arange(10), np.arange(10, 20)).pvalue == pytest.approx(2 / 184756)
    assert rank_sum([1, 1], [1, 1, 1]) == (3.0, 1.0, 5, True)
    assert rank_sum(np.ones(40), np.ones(40)).pvalue == 1
    for many in (rank_sum(np.r_[np.zeros(40), 1], np.ones(40)), rank_sum(np.arange(40), np.arange(40, 80))):
        assert not many.exact
        assert many.pvalue < 1e-6


def test_signed_rank_of_the_textbook():
    ranks, differences = stats.rankdata(np.abs(DIFFERENCES)), np.array(DIFFERENCES)
    split = ranks[differences == 0].sum() / 2  # zeros count half on each side
    sums = np.array(list(product([0, 1], repeat=14))) * (differences != 0) @ ranks + split
    found = signed_rank(DIFFERENCES, np.zeros(14))
    assert found.pvalue == pytest.approx(two_sided(sums, ranks[differences > 0].sum() + split))
    assert (found.statistic, found.exact) == (12, True)  # T; the critical value of 14 data sets is 21


def test_signed_rank_is_exact_up_to_50_pairs(rng):
    a, b = rng.normal(size=9), rng.normal(size=9)
    assert signed_rank(a, b).pvalue == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    assert signed_rank(a, a) == (0.0, 1.0, 9, True)
    assert signed_rank(range(1, 51), np.zeros(50))[1:] == (2 / 2**50, 50, True)
    assert not signed_rank(range(1, 52), np.zeros(51)).exact
    for differences in (np.repeat([-1, 2, 3, 4], 10), np.arange(40)):  # ties, or a zero, of too many to count
        found = signed_rank(differences, np.zeros(40))
        assert not found.exact
        assert 0 < found.pvalue < 1


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
    assert "Mean ranks on 14 data sets: m+cf 1.96, m 2.00" in str(found)
    alike = friedman(np.ones((4, 3)), list("abc"))
    assert (alike.statistic, alike.pvalue, alike.ranks.tolist()) == (0, 1, [2, 2, 2])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rank_sum([], [1]), "first must be a list of finite numbers"),
        (lambda: rank_sum([1], [np.nan]), "second must be a list of finite numbers"),
        (lambda: signed_rank([1, 2], [1]), "must be pairs; got 2 and 1"),
        (lambda: friedman(np.ones((4, 2)), list("ab")), "Use signed_rank for two methods"),
        (lambda: friedman(np.ones((4, 3)), list("ab")), "one name for each"),
        (lambda: friedman(np.ones((1, 3)), list("abc")), "two data sets or more"),
        (lambda: friedman(np.full((4, 3), np.nan), list("abc")), "must be finite"),
        (lambda: friedman(np.ones((4, 3)), list("abc"), best="most"), "best must be max or min; got 'most'"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
