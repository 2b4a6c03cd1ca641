"""The map of the points: two coordinates for each, and a colour for each cluster; the page's script draws it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from subspaces.app.report._content import Content
from subspaces.app.report._figures import LARGE, Plot
from subspaces.app.report._members import centre_and_spread
from subspaces.inspection.plots.layout import cluster_map, cluster_means
from subspaces.inspection.plots.style import OKABE_ITO, map_colors
from subspaces.utils.components import dense_rows
from subspaces.utils.types import Array, Labels

STEPS = 9999
"""Coordinates are whole numbers up to this: finer than any screen, and short."""

_TEXTS = {
    "map": "Each cluster has a disc of its own with its most typical points in the middle; points between two discs "
    "are drawn to both. Clusters that are alike are neighbours as far as a plane allows.",
    "points": "The plane in which the points vary most (principal components of the values).",
}


@dataclass(frozen=True)
class MapView:
    """Coordinates of points and clusters, whole numbers; the colour of each cluster, an index from 0 to 7."""

    points: Labels
    centres: Labels
    colors: list[int]
    text: str


def map_view(content: Content) -> MapView | None:
    """The map of a run; None where points have no two coordinates."""
    codes = np.searchsorted(content.summary.clusters, content.summary.labels)
    try:
        points, centres, used = _coordinates(content, codes)
    except (ValueError, np.linalg.LinAlgError, MemoryError) as error:  # the page is worth more than it
        warnings.warn(f"the map was left out of the report: {error}", UserWarning, stacklevel=4)
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    side = float(max((high - low).max(), 1e-12))
    whole, middle = (np.rint((found - low) * (STEPS / side)).astype(np.intp) for found in (points, centres))
    return MapView(whole, middle, map_colors(centres).tolist(), _TEXTS[used])


def _coordinates(content: Content, codes: Labels) -> tuple[Array, Array, str]:
    estimator, n = content.estimator, len(codes)
    kept = hasattr(type(estimator), "embedding_") and (n <= LARGE or getattr(estimator, "_embedding", None) is not None)
    embedding = getattr(estimator, "embedding_", None) if kept else None
    if embedding is not None and len(embedding) == n and len(content.summary.clusters) > 1:
        return *cluster_map(np.asarray(embedding, dtype=np.float64), codes), "map"
    if content.X.shape[1] < 2 or n < 3 or np.ptp(codes) == 0 == _variation(content.X):
        points = np.hstack([dense_rows(content.X[:, [0]]).astype(np.float64), np.zeros((n, 1))])
    else:
        from sklearn.decomposition import PCA

        if sparse.issparse(content.X):
            points = PCA(2, svd_solver="arpack", random_state=0).fit_transform(content.X)
        else:
            centre, spread = centre_and_spread(content.X)
            scaled = content.X - centre if content.image_shape is not None else (content.X - centre) / spread
            points = PCA(2, svd_solver="randomized", random_state=0).fit_transform(scaled)
    return points, cluster_means(points, codes), "points"


def _variation(X: Any) -> float:
    """0 where all points are equal."""
    return float(np.abs(X[1:] - X[:-1]).max()) if X.shape[0] > 1 and not sparse.issparse(X) else 1.0


def still_map(content: Content, view: MapView) -> Plot:
    """The same as a picture, for readers without scripts."""
    codes = np.searchsorted(content.summary.clusters, content.summary.labels)

    def draw(figure: Any) -> None:
        ax = figure.subplots()
        colors = np.array([OKABE_ITO[color] for color in view.colors])
        ax.scatter(*view.points.T, s=float(np.clip(9000 / len(codes), 3, 18)), c=colors[codes], linewidths=0)
        for (x, y), name in zip(view.centres, content.summary.clusters, strict=True):
            ax.text(x, y, str(name), ha="center", va="center", fontweight="bold", fontsize=8)
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_alpha(0.25)

    return "Map of the points", "", (6.4, 5.4), draw
