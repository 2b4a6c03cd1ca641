"""Is a difference more than chance: SciPy's rank tests, exact where they can be, for runs and for data sets.

*Runs* of two methods on one data set are two samples: :func:`rank_sum`. Scores of two methods on several *data sets*
are pairs: :func:`signed_rank`. Several methods on several data sets: :func:`friedman`, with Nemenyi's critical
difference (J. Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006) 1-30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subspaces.utils.types import Array

LEVEL = 0.05
"""Below this p-value a difference counts."""

MANY = 20_000
"""Arrangements of tied values that are all counted; above, the normal distribution stands for them."""


class Outcome(NamedTuple):
    """What a test found.

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
    """Wilcoxon's rank-sum test (Mann and Whitney's U test) of two samples.

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
    n = len(a) + len(b)
    if len(np.unique(np.concatenate([a, b]))) == n:
        method: object = "exact" if comb(n, len(a)) < 10**12 else "asymptotic"
    else:
        method = stats.PermutationMethod(n_resamples=inf) if comb(n, len(a)) <= MANY else "asymptotic"
    if np.ptp(np.concatenate([a, b])) == 0:
        return Outcome(len(a) * len(b) / 2, 1.0, n, True)
    found = stats.mannwhitneyu(a, b, method=method)
    return Outcome(float(found.statistic), min(1.0, float(found.pvalue)), n, method != "asymptotic")


def signed_rank(first: ArrayLike, second: ArrayLike) -> Outcome:
    """Wilcoxon's signed-rank test of paired scores: two methods on the same data sets.

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
    difference = a - b
    if not difference.any():
        return Outcome(0.0, 1.0, len(a), True)
    simple = len(np.unique(np.abs(difference))) == len(a) and difference.all()
    if simple:
        method: object = "exact" if len(a) <= 50 else "asymptotic"
    else:
        method = stats.PermutationMethod(n_resamples=inf) if 2 ** len(a) <= MANY else "asymptotic"
    found = stats.wilcoxon(difference, zero_method="zsplit", method=method)
    return Outcome(float(found.statistic), min(1.0, float(found.pvalue)), len(a), method != "asymptotic")


def holm(pvalues: ArrayLike) -> Array:
    """P-values of several tests that may be read together (S. Holm 1979).

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
    """Mean ranks of methods over data sets, 1 is best, and how far apart they must be.

    Attributes
    ----------
    names : of the methods, as given
    ranks : mean rank of each
    n_datasets : that all of them were ranked on
    statistic, pvalue : of Friedman's test that all are alike
    critical_difference : mean ranks that differ by more are different (Nemenyi) at `level`
    level : of the critical difference
    """

    names: tuple[str, ...]
    ranks: Array
    n_datasets: int
    statistic: float
    pvalue: float
    critical_difference: float
    level: float = LEVEL

    def nemenyi(self) -> Array:
        """P-values of Nemenyi's test, (n_methods, n_methods)."""
        k = len(self.names)
        distance = np.abs(self.ranks[:, None] - self.ranks[None]) / _spread(k, self.n_datasets)
        return np.asarray(stats.studentized_range.sf(distance * sqrt(2), k, inf))

    def groups(self) -> list[tuple[str, ...]]:
        """Methods that cannot be told apart, from the best on: the bars of a critical-difference plot."""
        order = np.argsort(self.ranks, kind="stable")
        ranks = self.ranks[order]
        ends = np.searchsorted(ranks, ranks + self.critical_difference, side="right")
        starts = [i for i, end in enumerate(ends) if end - i > 1 and (i == 0 or end > ends[i - 1])]
        return [tuple(self.names[j] for j in order[i : ends[i]]) for i in starts]

    def __str__(self) -> str:
        order = np.argsort(self.ranks, kind="stable")
        ranks = ", ".join(f"{self.names[i]} {self.ranks[i]:.2f}" for i in order)
        return (
            f"Mean ranks on {self.n_datasets} data sets: {ranks}. Friedman: chi² = {self.statistic:.2f}, "
            f"p = {self.pvalue:.3g}; critical difference (Nemenyi, {self.level:g}): {self.critical_difference:.2f}."
        )


def friedman(scores: ArrayLike, names: Sequence[str], *, level: float = LEVEL, best: str = "max") -> Ranking:
    """Rank methods on each data set: Friedman's test, corrected for ties, and Nemenyi's critical difference.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
    names : of the methods
    level : float, default=0.05
    best : {"max", "min"}, default="max"
        Whether more is better.

    Examples
    --------
    >>> found = friedman([[9, 7, 5], [8, 6, 7], [9, 8, 1], [7, 6, 2]], ["a", "b", "c"])
    >>> found.ranks.tolist(), round(found.critical_difference, 2)
    ([1.0, 2.25, 2.75], 1.66)
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2 or table.shape[1] < 3 or table.shape[1] != len(names):
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
    found = (0.0, 1.0) if alike else stats.friedmanchisquare(*ranks.T)
    quantile = float(stats.studentized_range.ppf(1 - level, k, inf)) / sqrt(2)
    test = (float(found[0]), float(found[1]))
    return Ranking(tuple(names), ranks.mean(axis=0), n, *test, quantile * _spread(k, n), level)


def _spread(n_methods: int, n_datasets: int) -> float:
    """Standard deviation of the difference of two mean ranks, where all methods are alike."""
    return sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))


def _sample(values: ArrayLike, argument: str) -> Array:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample) or not np.isfinite(sample).all():
        raise ValueError(f"{argument} must be a list of finite numbers, at least one; got shape {sample.shape}")
    return sample
