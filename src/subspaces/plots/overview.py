"""One figure of a fitted estimator: affinity, spectrum, embedding, gallery."""

from __future__ import annotations

from typing import Any

from subspaces.plots import parts, style
from subspaces.plots.embedding import EmbeddingDisplay
from subspaces.plots.gallery import GalleryDisplay
from subspaces.plots.matrices import AffinityDisplay
from subspaces.plots.spectrum import SpectrumDisplay


def show(estimator: Any, X: Any = None, *, image_shape: tuple[int, ...] | None = None, figure: Any = None) -> Any:
    """Draw what a fitted estimator found: affinity, spectrum, embedding and gallery in one figure.

    What a method does not have (a method for many points may make no graph) is left out.

    Parameters
    ----------
    estimator : a fitted estimator, a pipeline or a search that ends with one
    X : the points; left out, those the estimator kept
    image_shape : (height, width) or (height, width, 3), where the points are images
    figure : a Matplotlib figure to draw into; left out, a new one

    Returns
    -------
    figure
    """
    clusterer = parts.clusterer_of(estimator)
    drawings: list[Any] = []
    inner = getattr(clusterer, "clusterer_", None)  # of a method that samples
    graph = getattr(clusterer, "affinity_matrix_", getattr(inner, "affinity_matrix_", None))
    if graph is not None and graph.nnz:
        drawings += [lambda ax: AffinityDisplay.from_estimator(estimator, ax=ax)]
        drawings += [lambda ax: SpectrumDisplay.from_estimator(estimator, ax=ax)]
    if hasattr(clusterer, "embedding_") or hasattr(inner, "embedding_"):
        drawings += [lambda ax: EmbeddingDisplay.from_estimator(estimator, ax=ax)]
    if X is not None or parts.kept_points(clusterer) is not None:
        drawings += [lambda ax: GalleryDisplay.from_estimator(estimator, X, image_shape=image_shape, ax=ax)]
    if not drawings:
        raise ValueError(f"{type(clusterer).__name__} keeps no graph and no points: give the points as the argument X.")
    n_columns = min(2, len(drawings))
    n_rows = -(-len(drawings) // 2)
    if figure is None:
        figure = style.pyplot().figure(figsize=(6.4 * n_columns, 5.6 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for draw, ax in zip(drawings, axes, strict=False):
        draw(ax)
    for ax in axes[len(drawings) :]:
        ax.set_axis_off()
    figure.suptitle(f"{type(clusterer).__name__}: {len(clusterer.labels_):,} points, {clusterer.n_clusters_} clusters")
    return figure
