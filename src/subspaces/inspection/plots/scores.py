"""Where the truth is known: which class went where, and how a score falls as data is damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from subspaces.inspection.plots import parts, style
from subspaces.metrics import accuracy, contingency
from subspaces.utils.types import Array

_MAX_CLASSES = 1000
_WRITTEN = 14  # classes up to which every cell shows its number


class ConfusionDisplay:
    """Points of each class (down) in each cluster (across), clusters in the order of the best matching.

    What lies on the diagonal counts for the accuracy. Colours show the share of the class, so that small classes are
    seen as well as large ones.

    Parameters
    ----------
    counts : array of shape (n_classes, n_clusters)
    classes, clusters : names of rows and columns
    accuracy : share of points on the diagonal

    Attributes
    ----------
    ax_, figure_, im_ : of Matplotlib
    """

    def __init__(self, counts: Array, classes: list[str], clusters: list[str], accuracy: float) -> None:
        self.counts, self.classes, self.clusters, self.accuracy = counts, classes, clusters, accuracy

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        y_true: ArrayLike | None = None,
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Draw the labels of a fitted estimator, or with X those it predicts, against the classes `y` (or `y_true`)."""
        y_true = y if y_true is None else y_true
        if y_true is None:
            raise ValueError("y, the classes of the points, is missing: from_estimator(estimator, X, y).")
        labels = parts.clusterer_of(estimator).labels_ if X is None else estimator.predict(X)
        return cls.from_predictions(y_true, labels, ax=ax, **keywords)

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, labels: ArrayLike, *, ax: Any = None, **keywords: Any) -> Self:
        """Draw labels of any origin against the classes."""
        table = contingency(y_true, labels)
        if max(table.counts.shape) > _MAX_CLASSES:
            raise ValueError(
                f"a confusion matrix of {table.counts.shape[0]} classes and {table.counts.shape[1]} clusters cannot be "
                f"read: at most {_MAX_CLASSES} of each are drawn. Draw some classes, or print clustering_scores."
            )
        counts = table.counts if isinstance(table.counts, np.ndarray) else table.counts.toarray()
        rows, columns = table.matching()
        order = np.argsort(rows)
        row_order = np.concatenate([rows[order], np.setdiff1d(np.arange(counts.shape[0]), rows)])
        column_order = np.concatenate([columns[order], np.setdiff1d(np.arange(counts.shape[1]), columns)])
        classes = [str(table.classes[row]) for row in row_order]
        clusters = [str(table.clusters[column]) for column in column_order]
        ordered = counts[np.ix_(row_order, column_order)]
        return cls(ordered, classes, clusters, accuracy(y_true, labels)).plot(ax, **keywords)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``imshow``."""
        n_rows, n_columns = self.counts.shape
        side = float(np.clip(0.42 * max(n_rows, n_columns), 3.6, 7.5))
        ax = style.axes_of(ax, (side + 0.8, side * max(0.4, n_rows / n_columns) + 0.8))
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        colors = {"cmap": style.sequential(ax), "vmin": 0, "vmax": 1.0, **keywords}
        self.im_ = ax.imshow(np.ma.masked_equal(shares, 0), aspect="auto", interpolation="nearest", **colors)
        if max(n_rows, n_columns) <= _WRITTEN:
            for (i, j), count in np.ndenumerate(self.counts):
                if count:
                    color = style.readable_on(self.im_.cmap(self.im_.norm(shares[i, j]))[:3])
                    ax.text(j, i, f"{count:,}", ha="center", va="center", fontsize=7, color=color)
        small = 7 if max(n_rows, n_columns) > _WRITTEN else 8
        ax.set_yticks(*style.thinned(np.arange(n_rows), self.classes, n_rows / 34), fontsize=small)
        longest = max(map(len, self.clusters))
        ax.set_xticks(*style.thinned(np.arange(n_columns), self.clusters, longest * n_columns / 58), fontsize=small)
        ax.tick_params(length=0)
        ax.set(xlabel="cluster, in the order of the best matching", ylabel="class")
        ax.set_title(f"{100 * self.accuracy:.1f} % on the diagonal")
        self.colorbar_ = ax.figure.colorbar(self.im_, ax=ax, fraction=0.046, pad=0.03, label="share of the class")
        self.colorbar_.outline.set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class NoiseDisplay:
    """Curves of a score against the level of damage, one for each method; a band where runs were repeated.

    Parameters
    ----------
    levels : array of shape (n_levels,)
    scores : for each method, array of shape (n_levels,) or (n_levels, n_repeats)
    score_name, level_name : what the axes show

    Attributes
    ----------
    mean_, deviation_ : of each method's scores at each level
    ax_, figure_ : of Matplotlib
    """

    def __init__(
        self, levels: Array, scores: Mapping[str, Array], score_name: str = "accuracy", level_name: str = "level"
    ) -> None:
        self.levels, self.scores = levels, scores
        self.score_name, self.level_name = score_name, level_name
        self.mean_ = {name: values.reshape(len(levels), -1).mean(axis=1) for name, values in scores.items()}
        self.deviation_ = {name: values.reshape(len(levels), -1).std(axis=1) for name, values in scores.items()}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y_true: ArrayLike,
        corrupt: Callable[..., Array],
        levels: ArrayLike,
        n_repeats: int = 1,
        score: Callable[[ArrayLike, ArrayLike], float] = accuracy,
        level_name: str = "level",
        ax: Any = None,
    ) -> Self:
        """Fit copies of one estimator, or of several given by name, on damaged points and draw the scores.

        ``corrupt(X, level, random_state=repeat)`` damages the points
        (:func:`~subspaces.datasets.salt_and_pepper`, :func:`~subspaces.datasets.add_gaussian_noise`).
        """
        named = dict(estimator) if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
        levels = np.asarray(levels, dtype=np.float64)
        scores = {name: np.empty((len(levels), n_repeats)) for name in named}
        for i, level in enumerate(levels):
            for repeat in range(n_repeats):
                damaged = corrupt(X, float(level), random_state=repeat)  # the same for every method
                for name, model in named.items():
                    scores[name][i, repeat] = score(y_true, clone(model).fit_predict(damaged))
        score_name = getattr(score, "__name__", "score").replace("_", " ")
        return cls(levels, scores, score_name, level_name).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        levels: ArrayLike,
        scores: Mapping[str, ArrayLike],
        *,
        score_name: str = "accuracy",
        level_name: str = "level",
        ax: Any = None,
    ) -> Self:
        """Draw scores that are there already: for each method one value, or one per repeat, at each level."""
        levels = np.asarray(levels, dtype=np.float64)
        checked = {str(name): np.asarray(values, dtype=np.float64) for name, values in scores.items()}
        for name, values in checked.items():
            if values.ndim not in (1, 2) or len(values) != len(levels):
                raise ValueError(
                    f"scores[{name!r}] must have one row for each of the {len(levels)} levels; got {values.shape}."
                )
        return cls(levels, checked, score_name, level_name).plot(ax)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``plot``. Colour, marker and dashes change together."""
        ax = style.axes_of(ax, (6.0, 4.0))
        for i, (name, mean) in enumerate(self.mean_.items()):
            color = style.OKABE_ITO[i % len(style.OKABE_ITO)]
            look = {
                "color": color,
                # beyond eight, neither marker nor dashes come back with the same colour
                "marker": style.MARKERS[(i + i // len(style.OKABE_ITO)) % len(style.MARKERS)],
                "linestyle": style.LINES[(i + i // len(style.OKABE_ITO)) % len(style.LINES)],
                "markersize": 5,
                **keywords,
            }
            ax.plot(self.levels, mean, label=name, **look)
            spread = self.deviation_[name]
            if spread.any():
                ax.fill_between(self.levels, mean - spread, mean + spread, color=color, alpha=0.15, linewidth=0)
        ax.set(xlabel=self.level_name, ylabel=self.score_name)
        ax.set_title(f"{self.score_name.capitalize()} against damage")
        ax.grid(alpha=0.25)
        if len(self.mean_) > 1:
            ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
