"""Scores where rounding decides: huge tables, scores next to 0 and to 1 (see docs/mutation.md)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from subspaces.metrics import normalized_mutual_info, score_table
from subspaces.metrics.scores import _scores as all_scores
from subspaces.metrics.tables import Contingency


def table_of(counts: np.ndarray) -> Contingency:
    return Contingency(counts, np.arange(counts.shape[0]), np.arange(counts.shape[1]))


@pytest.mark.parametrize("n", [10**3, 10**6, 10**9])
def test_adjusted_rand_next_to_zero_has_all_its_digits(n):
    """Nearly independent labels: the difference of two numbers of 36 digits is what counts."""
    counts = np.array([[n + 1, n], [n, n]])
    cells, classes, clusters, total = (
        sum(math.comb(int(s), 2) for s in sizes)
        for sizes in (counts.ravel(), counts.sum(axis=1), counts.sum(axis=0), [counts.sum()])
    )
    chance = Fraction(classes * clusters, total)
    expected = (cells - chance) / (Fraction(classes + clusters, 2) - chance)
    assert all_scores(table_of(counts))["ari"] == pytest.approx(float(expected), rel=1e-12, abs=0)


@pytest.mark.parametrize("n", [2**31 - 1, 2**31, 2**31 + 1, 3_100_000_000, 2**32 - 1, 2**32, 10**12])
def test_pairs_of_one_huge_class(n):
    """From 3.04·10⁹ points on n (n − 1) is beyond int64."""
    scores = all_scores(table_of(np.array([[n - 3, 3]])))
    pairs = math.comb(n - 3, 2) + 3
    assert scores["precision"] == 1.0
    assert scores["recall"] == pairs / math.comb(n, 2)
    assert scores["f_score"] == pytest.approx(2 * pairs / (math.comb(n, 2) + pairs), rel=1e-15, abs=0)


def test_information_is_never_more_than_the_smaller_entropy(rng):
    """Clusters that split classes know all about them: 1, whatever the rounding of two sums of logarithms."""
    for _ in range(200):
        pred = rng.integers(0, 12, 60)
        true = rng.integers(0, 4, 12)[pred]
        score = normalized_mutual_info(true, pred, average="min")
        if len(np.unique(true)) > 1:
            assert score == pytest.approx(1, abs=1e-12)
        assert score <= 1


def test_names_stand_on_the_left_and_numbers_on_the_right():
    lines = str(score_table([0, 0, 1, 1], {"a": [0, 0, 1, 1], "bc": [0, 1, 0, 1]})).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["%", "a", "bc", "constant label"]
    assert [line[-5:] for line in lines] == ["urity", "100.0", " 50.0", " 50.0"]
