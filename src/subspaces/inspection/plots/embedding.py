"""The spectral embedding in two dimensions, and the eigenvalues of the normalised Laplacian that belong to it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from subspaces.inspection.plots import parts, style
from subspaces.inspection.plots.layout import plane
from subspaces.spectral.embedding import spectral_embedding
from subspaces.utils.spelling import counted
from subspaces.utils.types import Array, Labels

_EXPLAINED = {
    "pca": "principal plane of the spectral embedding",
    "map": "map of the spectral embedding: typical points in the middle of a disc,\ndoubtful ones between discs",
}


class EmbeddingDisplay:
    """Points in two dimensions (:mod:`subspaces.inspection.plots.layout`), coloured and numbered by cluster.

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
        self.noun = "cluster"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        method: str = "auto",
        ax: Any = None,
        **keywords: Any,
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        `method`: ``"pca"``, ``"map"`` or ``"auto"``, which takes the plane for up to three clusters and the map for
        more. X is not needed. With `y`, the known classes, points are coloured and numbered by them and not by
        cluster.
        """
        embedding, labels, of_whom = parts.part_of(estimator, "embedding_")
        display = cls._from_rows(embedding, labels if y is None else y, method, of_whom)
        display.noun = "cluster" if y is None else "class"
        return display.plot(ax, **keywords)

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
        from matplotlib.patheffects import withStroke

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
        rim = withStroke(linewidth=2.5, foreground=ax.get_facecolor())  # readable on points
        look = {"path_effects": [rim], "zorder": 3, "fontweight": "bold", "fontsize": 7 if k > 40 else 9}
        for (x, y), name in zip(self.centres, self.names, strict=True):
            ax.text(x, y, name, ha="center", va="center", **look)
        groups = counted(k, self.noun, {"class": "classes"}.get(self.noun))
        ax.set(title=f"Embedding of {n:,} points, {groups}", aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_alpha(0.25)
        whose = f" of {self.of_whom}" if self.of_whom else ""
        style.caption(ax, _EXPLAINED[self.method] + whose)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class SpectrumDisplay:
    """Smallest eigenvalues of L = I − D^(−1/2) W D^(−1/2) (eq. 3.14); the gap after the last cluster is marked.

    As many zeros as the graph has components; a wide gap after the k-th value says that k clusters stand apart.

    Parameters
    ----------
    eigenvalues : ascending
    n_clusters : number of clusters k
    of_whom : whose points these are, where not all

    Attributes
    ----------
    gap_ : step from the k-th to the next eigenvalue, nan where that was not computed
    widest_ : the number of clusters after which the step is widest
    ax_, figure_ : of Matplotlib
    """

    def __init__(self, eigenvalues: Array, n_clusters: int, of_whom: str = "") -> None:
        self.eigenvalues: Array = np.asarray(eigenvalues)
        self.n_clusters, self.of_whom = int(n_clusters), of_whom
        steps = np.diff(self.eigenvalues)
        known = 0 < self.n_clusters <= len(steps)
        self.gap_ = float(steps[self.n_clusters - 1]) if known else float("nan")
        self.widest_ = int(steps.argmax()) + 1 if len(steps) else self.n_clusters

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, n_eigenvalues: int | None = None, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw from a fitted estimator, pipeline or search.

        The fit computed one eigenvalue for each cluster; to show the gap, half as many more are computed here, for up
        to 20,000 points or where `n_eigenvalues` asks for them.
        """
        W, labels, of_whom = parts.part_of(estimator, "affinity_matrix_")
        n_clusters, fitted = len(np.unique(labels)), getattr(parts.clusterer_of(estimator), "eigenvalues_", None)
        if n_eigenvalues is None and W.shape[0] > parts.MANY_POINTS and fitted is not None and not of_whom:
            return cls(fitted, n_clusters).plot(ax, **keywords)
        return cls(_eigenvalues(W, n_clusters, n_eigenvalues), n_clusters, of_whom).plot(ax, **keywords)

    @classmethod
    def from_predictions(
        cls, affinity: Any, n_clusters: int, *, n_eigenvalues: int | None = None, ax: Any = None, **keywords: Any
    ) -> Self:
        """Draw the spectrum of any affinity matrix, sparse or dense."""
        W = sparse.csr_array(affinity)
        return cls(_eigenvalues(W, n_clusters, n_eigenvalues), n_clusters).plot(ax, **keywords)

    def plot(self, ax: Any = None, **keywords: Any) -> Self:
        """Draw; `keywords` go to Matplotlib's ``plot``."""
        ax = style.axes_of(ax, (5.6, 3.8))
        values, k = self.eigenvalues, self.n_clusters
        ranks = np.arange(1, len(values) + 1)
        look = {"marker": ".", "linestyle": "", "color": style.main_color(ax), "markersize": 7, **keywords}
        ax.plot(ranks, values, **look)
        text = f"k = {k}"
        if np.isfinite(self.gap_):
            ax.axvspan(k, k + 1, color=style.ACCENT, alpha=0.3, linewidth=0)
            ax.plot([k, k, k + 1], [values[k - 1], values[k], values[k]], color=style.ACCENT, linewidth=2)
            text = f"gap {self.gap_:.2g} after {counted(k, 'cluster')}"
        else:
            ax.axvline(k, color=style.ACCENT, linewidth=1)
        ax.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", title=f"Spectrum: {text}")
        ax.set_ylim(-0.03 * max(float(values.max(initial=0)), 1e-12), None)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if self.of_whom:
            style.caption(ax, f"graph of {self.of_whom}")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _eigenvalues(W: Any, n_clusters: int, wanted: int | None) -> Array:
    wanted = n_clusters + max(5, n_clusters // 2) if wanted is None else wanted
    if W.nnz == 0:
        raise ValueError("the affinity matrix has no entry, so it has no spectrum to show.")
    return spectral_embedding(W, min(wanted, W.shape[0] - 1)).eigenvalues
