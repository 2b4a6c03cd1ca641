"""Test whether a difference is more than chance, with rank tests of SciPy and scikit-posthocs, exact where possible.

*Runs* of two methods on one data set are two samples: :func:`rank_sum`. Scores of two methods on several *data sets*
are pairs: :func:`signed_rank`. Several methods on several data sets: :func:`friedman`, with Nemenyi's critical
difference (J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006) 1-30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subspaces.utils.types import Array

LEVEL = 0.05
"""A difference with a smaller p-value counts."""

MANY = 20_000
"""Arrangements of tied values up to which all are counted; above, the normal approximation is used."""


class Outcome(NamedTuple):
    """Result of a test.

    Attributes
    ----------
    statistic : of SciPy's test
    pvalue : two-sided
    n : observations, or pairs
    exact : whether the p-value counts arrangements; otherwise it is that of a limiting distribution
    """

    statistic: float
    pvalue: float
    n: int
    exact: bool


def rank_sum(first: ArrayLike, second: ArrayLike) -> Outcome:
    """Test two samples by Wilcoxon's rank-sum test (Mann and Whitney's U test).

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Scores of the runs of two methods; their numbers may differ.

    Examples
    --------
    >>> round(rank_sum([1, 2, 3], [4, 5, 6]).pvalue, 6)  # 0.0495 by the approximation of scipy.stats.ranksums
    0.1
    """
    a, b = _sample(first, "first"), _sample(second, "second")
    n, arrangements = len(a) + len(b), comb(len(a) + len(b), len(a))
    n_distinct = len({*a.tolist(), *b.tolist()})
    if n_distinct == 1:
        return Outcome(len(a) * len(b) / 2, 1.0, n, True)
    method = _method(n_distinct < n, arrangements, exact=arrangements < 10**12)
    found = stats.mannwhitneyu(a, b, method=method)
    return Outcome(float(found.statistic), min(1.0, float(found.pvalue)), n, method != "asymptotic")


def signed_rank(first: ArrayLike, second: ArrayLike) -> Outcome:
    """Test paired scores, of two methods on the same data sets, by Wilcoxon's signed-rank test.

    Pairs without a difference keep their ranks, half of them on each side (Demšar 2006). With fewer than six pairs no
    difference can have a p-value below 0.05.

    Examples
    --------
    >>> signed_rank([0.9, 0.8, 0.7, 0.9, 0.6, 0.8], [0.5, 0.6, 0.6, 0.4, 0.3, 0.79]).pvalue
    0.03125
    """
    a, b = _sample(first, "first"), _sample(second, "second")
    if len(a) != len(b):
        raise ValueError(f"first and second must be pairs; got {len(a)} and {len(b)} values. Give one per data set.")
    difference, n = a - b, len(a)
    if not difference.any():
        return Outcome(0.0, 1.0, n, True)
    tied = len(np.unique(np.abs(difference))) < n or not difference.all()
    method = _method(tied, 2**n, exact=n <= 50)
    found = stats.wilcoxon(difference, zero_method="zsplit", method=method)
    return Outcome(float(found.statistic), min(1.0, float(found.pvalue)), n, method != "asymptotic")


def _method(tied: bool, arrangements: int, *, exact: bool) -> Any:
    """Return SciPy's way to a p-value: tables assume distinct values, arrangements of ties are counted if not many."""
    if tied:
        return stats.PermutationMethod(n_resamples=inf) if arrangements <= MANY else "asymptotic"
    return "exact" if exact else "asymptotic"


def holm(pvalues: ArrayLike) -> Array:
    """Adjust the p-values of several tests so that they may be read together (S. Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


@dataclass(frozen=True)
class Ranking:
    """Ranks of methods over data sets, 1 is best, and how far apart their means must be.

    Attributes
    ----------
    names : of the methods, as given
    table : rank of every method (columns) on every data set (rows)
    statistic, pvalue : of Friedman's test that all methods are alike
    critical_difference : mean ranks that differ by more are different (Nemenyi) at `level`
    level : of the critical difference
    """

    names: tuple[str, ...]
    table: Array
    statistic: float
    pvalue: float
    critical_difference: float
    level: float = LEVEL

    @property
    def ranks(self) -> Array:
        """Mean rank of each method."""
        return np.asarray(self.table.mean(axis=0))

    @property
    def n_datasets(self) -> int:
        """Data sets that all methods were ranked on."""
        return len(self.table)

    def __str__(self) -> str:
        order = np.argsort(self.ranks, kind="stable")
        ranks = ", ".join(f"{self.names[i]} {self.ranks[i]:.2f}" for i in order)
        return (
            f"Mean ranks on {self.n_datasets} data sets: {ranks}. Friedman: chi² = {self.statistic:.2f}, "
            f"p = {self.pvalue:.3g}; critical difference (Nemenyi, {self.level:g}): {self.critical_difference:.2f}."
        )


def friedman(
    scores: ArrayLike, names: Sequence[str], *, level: float = LEVEL, best: Literal["max", "min"] = "max"
) -> Ranking:
    """Rank methods on each data set: Friedman's test, corrected for ties, and Nemenyi's critical difference.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
    names : of the methods
    level : float, default=0.05
    best : {"max", "min"}, default="max"
        Whether more or less is better.

    Examples
    --------
    >>> found = friedman([[9, 7, 5], [8, 6, 7], [9, 8, 1], [7, 6, 2]], ["a", "b", "c"])
    >>> found.ranks.tolist(), round(found.critical_difference, 2)
    ([1.0, 2.25, 2.75], 1.66)
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 3 or table.shape[1] != len(names):
        raise ValueError(
            f"scores must hold two data sets or more (rows) of three methods or more (columns), one name for each; got "
            f"shape {table.shape} and {len(names)} names. Use signed_rank for two methods."
        )
    if not np.isfinite(table).all():
        raise ValueError("scores must be finite; got NaN or infinity. Leave out data sets that a method failed on.")
    if best not in ("max", "min"):
        raise ValueError(f"best must be max or min; got {best!r}")
    ranks = stats.rankdata(-table if best == "max" else table, axis=1)
    n, k = table.shape
    alike = bool((ranks == ranks[:, :1]).all())
    statistic, pvalue = (0.0, 1.0) if alike else map(float, stats.friedmanchisquare(*ranks.T))
    quantile = float(stats.studentized_range.ppf(1 - level, k, inf)) / sqrt(2)
    # sqrt(k (k + 1) / 6 n) is the standard deviation of the difference of two mean ranks if all methods are alike
    return Ranking(tuple(names), ranks, statistic, pvalue, quantile * sqrt(k * (k + 1) / (6 * n)), level)


def _sample(values: ArrayLike, argument: str) -> Array:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample) or not np.isfinite(sample).all():
        raise ValueError(f"{argument} must be a list of finite numbers, at least one; got shape {sample.shape}")
    return sample
