"""Display objects in scikit-learn's manner: compute once, keep the data, draw with ``plot(ax=)``. Needs Matplotlib.

``from_estimator`` takes a fitted estimator, pipeline or search, ``from_predictions`` arrays of any origin; both draw,
into `ax` if it is given. ``plot`` draws again, elsewhere. Colours and captions:
:mod:`subspaces.inspection.plots.style`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from subspaces.inspection.plots import parts, style
from subspaces.inspection.plots.gallery import GalleryDisplay
from subspaces.inspection.plots.graph import AffinityDisplay, CoefficientsDisplay, EmbeddingDisplay, SpectrumDisplay
from subspaces.inspection.plots.images import LabelMapDisplay, SpectraDisplay, TracksDisplay
from subspaces.inspection.plots.scores import (
    ConfusionDisplay,
    CriticalDifferenceDisplay,
    NumberOfClustersDisplay,
    SelectionDisplay,
)
from subspaces.inspection.plots.tree import TreeDisplay
from subspaces.utils.spelling import counted

__all__ = [
    "AffinityDisplay",
    "CoefficientsDisplay",
    "ConfusionDisplay",
    "CriticalDifferenceDisplay",
    "EmbeddingDisplay",
    "GalleryDisplay",
    "LabelMapDisplay",
    "NumberOfClustersDisplay",
    "SelectionDisplay",
    "SpectraDisplay",
    "SpectrumDisplay",
    "TracksDisplay",
    "TreeDisplay",
    "show",
]


def show(estimator: Any, X: Any = None, *, image_shape: tuple[int, ...] | None = None, figure: Any = None) -> Any:
    """Draw what a fitted estimator found: affinity, spectrum, embedding and gallery in one figure.

    What a method does not have (a method for many samples may make no graph) is left out.

    Parameters
    ----------
    estimator : a fitted estimator, a pipeline or a search that ends with one
    X : the samples; left out, those the estimator kept
    image_shape : (height, width) or (height, width, 3), where the samples are images
    figure : a Matplotlib figure to draw into; left out, a new one
    """
    clusterer = parts.clusterer_of(estimator)
    drawings: list[Any] = []
    graph = parts.find_part(clusterer, "affinity_matrix_")
    if graph is not None and graph.matrix.nnz:
        drawings += [AffinityDisplay.from_estimator, SpectrumDisplay.from_estimator]
    if parts.find_part(clusterer, "embedding_") is not None:
        drawings.append(EmbeddingDisplay.from_estimator)
    if X is not None or parts.kept_points(clusterer) is not None:
        drawings.append(partial(GalleryDisplay.from_estimator, X=X, image_shape=image_shape))
    if not drawings:
        raise ValueError(f"{type(clusterer).__name__} keeps no graph and no samples: give these as the argument X.")
    n_columns = min(2, len(drawings))
    n_rows = -(-len(drawings) // 2)
    if figure is None:
        figure = style.pyplot().figure(figsize=(6.4 * n_columns, 5.6 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for draw, ax in zip(drawings, axes, strict=False):
        draw(estimator, ax=ax)
    for ax in axes[len(drawings) :]:
        ax.set_axis_off()
    clusters = counted(clusterer.n_clusters_, "cluster")
    figure.suptitle(f"{type(clusterer).__name__}: {len(clusterer.labels_):,} samples, {clusters}")
    return style.shown_once(figure)
