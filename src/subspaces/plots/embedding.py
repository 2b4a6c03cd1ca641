"""The spectral embedding in two dimensions, every cluster with its number."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from subspaces.numerics.types import Array, Labels
from subspaces.plots import parts, style
from subspaces.plots.layout import plane

_EXPLAINED = {
    "pca": "principal plane of the spectral embedding",
    "map": "map of the spectral embedding: typical points in the middle of a disc,\ndoubtful ones between discs",
}


class EmbeddingDisplay:
    """Points in two dimensions (:mod:`subspaces.plots.layout`), coloured and numbered by cluster.

    Up to eight clusters have colours of their own; with more, colours and markers only tell neighbours apart and the
    number names the cluster.

    Parameters
    ----------
    points : array of shape (n, 2)
    centres : array of shape (k, 2)
    labels : codes 0 ... k − 1
    names : name of each cluster
    method : ``"pca"`` or ``"map"``
    of_whom : whose points these are, where not all

    Attributes
    ----------
    colors_ : colour of each cluster
    ax_, figure_ : of Matplotlib
    """

    def __init__(
        self, points: Array, centres: Array, labels: Labels, names: list[str], method: str, of_whom: str = ""
    ) -> None:
        self.points, self.centres, self.labels, self.names = points, centres, labels, names
        self.method, self.of_whom = method, of_whom

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, method: str = "auto", ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        `method`: ``"pca"``, ``"map"`` or ``"auto"``, which takes the plane for up to three clusters and the map for
        more. X is not needed.
        """
        embedding, labels, of_whom = parts.embedding_of(estimator)
        return cls._from_rows(embedding, labels, method, of_whom).plot(ax, **keywords)

    @classmethod
    def from_predictions(
        cls, embedding: ArrayLike, labels: ArrayLike, *, method: str = "auto", ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw any embedding (n, m) with labels."""
        return cls._from_rows(np.asarray(embedding), labels, method).plot(ax, **keywords)

    @classmethod
    def _from_rows(cls, embedding: Array, labels: ArrayLike, method: str, of_whom: str = "") -> Self:
        if embedding.ndim != 2:
            raise ValueError(f"embedding must have two dimensions, one row for each point; got {embedding.shape}.")
        codes, names = parts.checked_labels(labels, len(embedding))
        points, centres, used = plane(embedding, codes, method)
        return cls(points, centres, codes, names, used, of_whom)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``scatter``."""
        ax = style.axes_of(ax, (6.4, 5.8))
        n, k = len(self.points), len(self.names)
        palette = style.map_colors(self.centres)
        self.colors_ = [style.OKABE_ITO[color] for color in palette]
        size = float(np.clip(9000 / n, 3, 18))
        for cluster in range(k):
            look = {
                "color": self.colors_[cluster],
                "marker": style.MARKERS[palette[cluster] % len(style.MARKERS)],
                "s": size,
                "linewidths": 0.3,
                "alpha": 0.85,
                "rasterized": n > 5000,
                **keywords,
            }
            ax.scatter(*self.points[self.labels == cluster].T, **look)
        self._write_names(ax)
        ax.set(title=f"Embedding of {n:,} points, {k} clusters", aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_alpha(0.25)
        whose = f" of {self.of_whom}" if self.of_whom else ""
        style.caption(ax, _EXPLAINED[self.method] + whose)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write_names(self, ax: Any) -> None:
        many = len(self.names) > 40
        for (x, y), name in zip(self.centres, self.names, strict=True):
            ax.text(
                x,
                y,
                name,
                ha="center",
                va="center",
                fontsize=7 if many else 9,
                fontweight="bold",
                path_effects=style.outlined(ax),
                zorder=3,
            )
