"""Several methods on several data sets: mean ranks on a line, and bars over those that cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from subspaces.inspection.plots import style
from subspaces.metrics.significance import LEVEL, Ranking, friedman

_GAP = 0.34  # inches between the lines of names


class CriticalDifferenceDisplay:
    """Mean ranks of methods over data sets, the best at the left, with Nemenyi's critical difference (Demšar 2006).

    Methods under one bar are not different; the ruler at the top is as long as a difference must be.

    Parameters
    ----------
    ranking : Ranking
        Of ``Comparison.ranking`` or :func:`subspaces.metrics.significance.friedman`.

    Attributes
    ----------
    ax_, figure_ : of Matplotlib
    """

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking

    @classmethod
    def from_comparison(cls, comparison: Any, metric: str = "AC", *, level: float = LEVEL, ax: Any = None) -> Self:
        """Draw what :func:`subspaces.compare` found, by one metric."""
        return cls(comparison.ranking(metric, level=level)).plot(ax)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        names: Sequence[str],
        *,
        level: float = LEVEL,
        best: Literal["max", "min"] = "max",
        ax: Any = None,
    ) -> Self:
        """Draw scores of any origin: an array of shape (n_datasets, n_methods)."""
        return cls(friedman(scores, names, level=level, best=best)).plot(ax)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``plot`` for the lines to the names."""
        ranking = self.ranking
        order = np.argsort(ranking.ranks, kind="stable")
        n = len(order)
        n_left = (n + 1) // 2
        groups = ranking.groups()
        depth = 0.3 + 0.27 * len(groups)  # in lines: the bars lie between the axis and the first name
        n_lines = n_left + depth + 2.1
        ax = style.axes_of(ax, (6.4, max(1.8, _GAP * n_lines)))
        ink = style.foreground(ax)
        last = max(n, 1 + ranking.critical_difference)  # few data sets may tell nothing apart
        ax.set(xlim=(1 - 0.02 * (n - 1), last + 0.02 * (n - 1)), ylim=(n_left + depth + 0.1, -2.0))
        ax.axis("off")
        self._ruler(ax, ink, n)
        look = {"color": ink, "linewidth": 0.9, "clip_on": False, **keywords}
        for place, i in enumerate(order):
            left = place < n_left
            level = depth + 0.5 + (place if left else n - 1 - place)
            edge = 1.0 if left else float(n)
            rank = float(ranking.ranks[i])
            ax.plot([rank, rank, edge], [0, level, level], **look)
            text = f"{ranking.names[i]}  {rank:.2f}" if left else f"{rank:.2f}  {ranking.names[i]}"
            offset, side = ((-4, 0), "right") if left else ((4, 0), "left")
            ax.annotate(text, (edge, level), offset, textcoords="offset points", ha=side, va="center", fontsize=9)
        by_name = dict(zip(ranking.names, ranking.ranks, strict=True))
        for k, group in enumerate(groups):
            ends = [by_name[group[0]] - 0.012 * n, by_name[group[-1]] + 0.012 * n]
            at = 0.32 + 0.27 * k
            ax.plot(ends, [at, at], color=style.main_color(ax), linewidth=3.5, solid_capstyle="butt", clip_on=False)
        ax.set_title(f"Mean ranks on {ranking.n_datasets} data sets, 1 is best (Friedman: p = {ranking.pvalue:.2g})")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _ruler(self, ax: Any, ink: Any, n: int) -> None:
        """The axis of ranks with its numbers, and the critical difference above it."""
        ax.plot([1, n], [0, 0], color=ink, linewidth=1.2, clip_on=False)
        for rank in range(1, n + 1):
            ax.plot([rank, rank], [0, -0.18], color=ink, linewidth=1.2, clip_on=False)
            ax.annotate(str(rank), (rank, -0.18), (0, 2), textcoords="offset points", ha="center", fontsize=9)
        cd = self.ranking.critical_difference
        ax.plot([1, 1 + cd], [-1.25, -1.25], color=style.ACCENT, linewidth=2, clip_on=False)
        for end in (1, 1 + cd):
            ax.plot([end, end], [-1.37, -1.13], color=style.ACCENT, linewidth=2, clip_on=False)
        text = f"critical difference {cd:.2f} (Nemenyi, {self.ranking.level:g})"
        ax.annotate(text, (1, -1.4), (0, 2), textcoords="offset points", ha="left", fontsize=9)
