"""What an automatic fit tried: the surface of its criterion, and how the number of clusters was found."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from subspaces.inspection.plots import parts, style
from subspaces.selection import ClusterCount, Selection, Trial
from subspaces.selection.candidates import NEIGHBORS
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array


def _selection_of(estimator: Any) -> Selection:
    estimator = parts.clusterer_of(estimator)
    selection = getattr(estimator, "selection_", None)
    if selection is None:
        problem = 'has no selection_: fit it with at least one parameter set to "auto".'
        raise ValueError(f"{type(estimator).__name__} {problem}")
    assert isinstance(selection, Selection)
    return selection


class SelectionDisplay:
    """Score of every setting as a map: kernels and penalties down, truncations across, the winner framed.

    The letter tells the cut (m modularity, k k-means).

    Parameters
    ----------
    selection : Selection
    criterion : name of a column of the table, default ``"score"``
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

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, criterion: str = "score", ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator some of whose parameters were ``"auto"``; X is not needed."""
        return cls(_selection_of(estimator), criterion).plot(ax, **keywords)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``imshow``."""
        from matplotlib.patches import Rectangle

        ax = style.axes_of(ax, (4.5 + 0.5 * len(self.sizes), 1.5 + 0.26 * len(self.row_names)))
        image = ax.imshow(self.values, aspect="auto", **{"cmap": "viridis", **keywords})
        for (i, j), value in np.ndenumerate(self.values):
            if np.isfinite(value):
                text = f"{value:.2f} {self.cuts[i, j]}"
                color = style.readable_on(image.cmap(image.norm(value))[:3])
                ax.text(j, i, text, ha="center", va="center", fontsize=7, color=color)
        winner = self.selection.winner
        x, y = self.sizes.index(winner.n_nonzero), self.row_names.index(_row(winner))
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=style.ACCENT, linewidth=2.5))
        settings = counted(int(np.isfinite(self.values).sum()), "setting")
        ax.set(
            xlabel="coefficients, or neighbours, per point (n_nonzero)",
            title=f"{self.criterion.replace('_', ' ')} of {settings}"
            + (" (m: modularity, k: k-means)" if {"m", "k"} <= set(self.cuts.ravel()) else ""),
        )
        ax.set_xticks(range(len(self.sizes)), [str(size) for size in self.sizes])
        ax.set_yticks(range(len(self.row_names)), self.row_names, fontsize=8)
        self.colorbar_ = ax.figure.colorbar(image, ax=ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class NumberOfClustersDisplay:
    """How well the settings agree for each number of clusters, and the spectrum of the graph that decided.

    Parameters
    ----------
    count : ClusterCount
    """

    def __init__(self, count: ClusterCount) -> None:
        self.count = count

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Draw from an estimator fitted with ``n_clusters="auto"``; X is not needed."""
        count = _selection_of(estimator).n_clusters
        if count is None:
            raise ValueError('the number of clusters was given: fit with n_clusters="auto".')
        return cls(count).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw into two axes, given as a sequence or made here."""
        if ax is None:
            _, ax = style.pyplot().subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        left, right = ax
        count = self.count
        left.plot(count.candidates, count.agreement, color=style.OKABE_ITO[-1], label="agreement between settings")
        blue = style.main_color(left)
        left.plot(count.candidates, count.score, color=blue, marker=".", label="agreement × (1 − normalised cut)")
        right.plot(np.arange(1, len(count.eigenvalues) + 1), count.eigenvalues, ".", color=blue)
        right.set(xlabel="k", ylabel="eigenvalue", title="smallest eigenvalues of the Laplacian")
        span = f"{count.low} to {count.high}" if count.low < count.high else "no other as good"
        left.set(xlabel="number of clusters", title=f"{counted(count.estimate, 'cluster')} ({span})", ylim=(0, 1.02))
        for axis, step in ((left, 0.0), (right, 0.5)):
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.axvline(count.estimate + step, color=style.ACCENT, linewidth=1, label="estimate")
        left.axvspan(count.low - 0.3, count.high + 0.3, color=style.ACCENT, alpha=0.12, label="range")
        left.legend(fontsize=8)
        self.ax_, self.figure_ = (left, right), left.figure
        return self


def _row(trial: Trial) -> str:
    scaling = "" if trial.scaling is None else f", {trial.scaling}"
    if trial.kernel == NEIGHBORS:
        return f"nearest neighbours{scaling}"
    return f"{'affine ' if trial.affine else ''}{trial.kernel}{scaling}, reg {trial.reg:g}"
