"""Displays of scores: confusion with known classes, mean ranks, and an automatic choice."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from subspaces.inspection.plots import parts, style
from subspaces.metrics import accuracy
from subspaces.metrics.significance import LEVEL, Ranking
from subspaces.selection import ClusterCount, Selection, Trial
from subspaces.selection.candidates import NEIGHBORS
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array

_MAX_CLASSES = 1000
_WRITTEN = 14  # classes up to which every cell shows its number


class ConfusionDisplay(style.Display):
    """Samples of each class (down) in each cluster (across), clusters in the order of the best matching.

    What lies on the diagonal counts for the accuracy. Colours show the share of the class, so that small classes are
    seen as well as large ones.

    Attributes
    ----------
    counts : (n_classes, n_clusters)
    classes, clusters : names of rows and columns
    accuracy : share of samples on the diagonal
    """

    def __init__(self, counts: Array, classes: list[str], clusters: list[str], accuracy: float) -> None:
        self.counts, self.classes, self.clusters, self.accuracy = counts, classes, clusters, accuracy
        side = float(np.clip(0.42 * max(counts.shape), 3.6, 7.5))
        self._figsize = (side + 0.8, side * max(0.4, counts.shape[0] / counts.shape[1]) + 0.8)

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, labels: ArrayLike, *, ax: Any = None, **keywords: Any) -> Self:
        """Draw labels of any origin against the classes."""
        share = accuracy(y_true, labels)  # refuses what are no labels
        table = contingency_matrix(y_true, labels, sparse=True)
        if max(table.shape) > _MAX_CLASSES:
            raise ValueError(
                f"a confusion matrix of {table.shape[0]} classes and {table.shape[1]} clusters cannot be "
                f"read: at most {_MAX_CLASSES} of each are drawn. Draw some classes, or print clustering_scores."
            )
        counts = table.toarray()
        rows, columns = linear_sum_assignment(counts, maximize=True)
        matched = counts[rows, columns] > 0
        down, across = (
            np.concatenate([chosen[matched], np.setdiff1d(np.arange(n), chosen[matched])])
            for chosen, n in zip((rows, columns), counts.shape, strict=True)
        )
        classes, clusters = ([str(value) for value in np.unique(values)] for values in (y_true, labels))
        names = [classes[row] for row in down], [clusters[column] for column in across]
        return cls(counts[np.ix_(down, across)], *names, share).plot(ax, **keywords)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        n_rows, n_columns = self.counts.shape
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        colors = {"cmap": style.sequential(ax), "vmin": 0, "vmax": 1.0, **keywords}
        self.im_ = ax.imshow(np.ma.masked_equal(shares, 0), aspect="auto", interpolation="nearest", **colors)
        is_small = max(n_rows, n_columns) <= _WRITTEN
        if is_small:
            for (i, j), count in np.ndenumerate(self.counts):
                if count:
                    color = style.readable_on(self.im_.cmap(self.im_.norm(shares[i, j])))
                    ax.text(j, i, f"{count:,}", ha="center", va="center", fontsize=7, color=color)
        font = {"fontsize": 8 if is_small else 7}
        ax.set_yticks(*style.thinned(np.arange(n_rows), self.classes, n_rows / 34), **font)
        longest = max(map(len, self.clusters))
        ax.set_xticks(*style.thinned(np.arange(n_columns), self.clusters, longest * n_columns / 58), **font)
        ax.tick_params(length=0)
        ax.set(xlabel="cluster, in the order of the best matching", ylabel="class")
        ax.set_title(f"{100 * self.accuracy:.1f} % on the diagonal")
        self.colorbar_ = ax.figure.colorbar(self.im_, ax=ax, fraction=0.046, pad=0.03, label="share of the class")


class CriticalDifferenceDisplay(style.Display):
    """Mean ranks of methods over data sets, the best at the left, with Nemenyi's critical difference (Demšar 2006).

    Methods under one bar are not different; the ruler at the top is as long as a difference must be. Needs
    scikit-posthocs (extra ``stats``).
    """

    def __init__(self, ranking: Ranking) -> None:
        self.ranking = ranking
        self._figsize = (7.4, 1.4 + 0.3 * len(ranking.names))

    @classmethod
    def from_comparison(cls, comparison: Any, metric: str = "AC", *, level: float = LEVEL, ax: Any = None) -> Self:
        """Draw what :func:`subspaces.compare` found, by one metric."""
        return cls(comparison.ranking(metric, level=level)).plot(ax)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        try:
            from pandas import DataFrame
            from scikit_posthocs import critical_difference_diagram
        except ImportError:
            text = "a critical-difference plot needs scikit-posthocs: pip install 'subspaces[stats]'."
            raise ImportError(text) from None
        ranking, ink = self.ranking, style.foreground(ax)
        ranks = dict(zip(ranking.names, ranking.ranks.tolist(), strict=True))
        apart = np.abs(ranking.ranks[:, None] - ranking.ranks) > ranking.critical_difference
        p_values = DataFrame(np.where(apart, 0.0, 1.0), index=ranking.names, columns=ranking.names)
        look = {"elbow_props": {"color": ink, "linewidth": 0.9, **keywords}, "marker_props": {"marker": ""}}
        look["crossbar_props"] = {"color": style.main_color(ax), "linewidth": 3}
        formats = {"label_fmt_left": "{label}  {rank:.2f}", "label_fmt_right": "{rank:.2f}  {label}"}
        critical_difference_diagram(ranks, p_values, cd=ranking.critical_difference, ax=ax, **look, **formats)
        last = max(len(ranks), min(ranks.values()) + ranking.critical_difference)  # few data sets tell nothing apart
        ax.set_xlim(1, last)
        ax.set_title(
            f"Mean ranks on {ranking.n_datasets} data sets, 1 is best (Friedman: p = {ranking.pvalue:.2g}; "
            f"Nemenyi: {ranking.level:g})",
            pad=24,
        )


def _selection_of(estimator: Any) -> Selection:
    estimator = parts.clusterer_of(estimator)
    selection: Selection | None = getattr(estimator, "selection_", None)
    if selection is None:
        problem = "has no selection_: fit SubspaceClustering, which searches."
        raise ValueError(f"{type(estimator).__name__} {problem}")
    return selection


class SelectionDisplay(style.Display):
    """Score of every setting as a map: kernels and penalties down, truncations across, the winner framed.

    The letter tells the cut (m modularity, k k-means); `criterion` is a column of the selection's table.
    """

    def __init__(self, selection: Selection, criterion: str = "score") -> None:
        self.selection, self.criterion = selection, criterion
        kept = [trial for trial in selection.trials if np.isfinite(trial.score)]
        self.row_names = list(dict.fromkeys(_row(trial) for trial in kept))
        self.sizes = list(dict.fromkeys(trial.n_nonzero for trial in kept))
        self.values: Array = np.full((len(self.row_names), len(self.sizes)), np.nan)
        self.cuts = np.full(self.values.shape, "", dtype="<U1")
        for trial in kept:
            cell = self.row_names.index(_row(trial)), self.sizes.index(trial.n_nonzero)
            self.values[cell], self.cuts[cell] = getattr(trial, criterion), trial.assign_labels[0]
        self._figsize = (4.5 + 0.5 * len(self.sizes), 1.5 + 0.26 * len(self.row_names))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, criterion: str = "score", ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator that chose its parameters; X is not needed."""
        return cls(_selection_of(estimator), criterion).plot(ax, **keywords)

    def _draw(self, ax: Any, **keywords: Any) -> None:
        from matplotlib.patches import Rectangle

        image = ax.imshow(self.values, aspect="auto", **{"cmap": "viridis", **keywords})
        for (i, j), value in np.ndenumerate(self.values):
            if np.isfinite(value):
                text = f"{value:.2f} {self.cuts[i, j]}"
                color = style.readable_on(image.cmap(image.norm(value)))
                ax.text(j, i, text, ha="center", va="center", fontsize=7, color=color)
        winner = self.selection.winner
        x, y = self.sizes.index(winner.n_nonzero), self.row_names.index(_row(winner))
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=style.ACCENT, linewidth=2.5))
        settings = counted(int(np.isfinite(self.values).sum()), "setting")
        letters = " (m: modularity, k: k-means)" if {"m", "k"} <= set(self.cuts.ravel()) else ""
        ax.set_title(f"{self.criterion.replace('_', ' ')} of {settings}{letters}")
        ax.set_xlabel("coefficients, or neighbours, per sample (n_nonzero)")
        ax.set_xticks(range(len(self.sizes)), [str(size) for size in self.sizes])
        ax.set_yticks(range(len(self.row_names)), self.row_names, fontsize=8)
        self.colorbar_ = ax.figure.colorbar(image, ax=ax)


def _row(trial: Trial) -> str:
    scaling = "" if trial.scaling is None else f", {trial.scaling}"
    if trial.kernel == NEIGHBORS:
        return f"nearest neighbours{scaling}"
    return f"{'affine ' if trial.affine else ''}{trial.kernel}{scaling}, reg {trial.reg:g}"


class NumberOfClustersDisplay:
    """Agreement of the settings for each number of clusters, and the natural numbers of their graphs."""

    def __init__(self, count: ClusterCount) -> None:
        self.count = count

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Draw from an estimator fitted with the number left open; X is not needed."""
        count = _selection_of(estimator).n_clusters
        if count is None:
            raise ValueError("the number of clusters was given: fit SubspaceClustering() without it.")
        return cls(count).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw into two axes, given as a sequence or made here."""
        if ax is None:
            _, ax = style.pyplot().subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        left, right = ax
        count, blue = self.count, style.main_color(left)
        left.plot(count.candidates, count.agreement, color=style.OKABE_ITO[-1], label="agreement between settings")
        left.plot(
            count.candidates, count.score, color=blue, marker=".", label="less the distance from the natural numbers"
        )
        numbers, times = np.unique(count.natural, return_counts=True)
        right.bar(numbers, times, color=blue)
        right.set(xlabel="number of clusters", ylabel="graphs", title="distinct communities of each graph")
        span = f"{count.low} to {count.high}" if count.low < count.high else "no other as good"
        left.set(xlabel="number of clusters", title=f"{counted(count.estimate, 'cluster')} ({span})", ylim=(0, 1.02))
        for axis in (left, right):
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.axvline(count.estimate, color=style.ACCENT, linewidth=1, label="estimate")
        left.axvspan(count.low - 0.3, count.high + 0.3, color=style.ACCENT, alpha=0.12, label="range")
        left.legend(fontsize=8)
        self.ax_, self.figure_ = (left, right), left.figure
        return self
