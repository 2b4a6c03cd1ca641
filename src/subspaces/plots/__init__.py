"""Display objects in scikit-learn's manner: compute once, keep the data, draw with ``plot(ax=)``. Needs Matplotlib.

``from_estimator`` takes a fitted estimator, pipeline or search, ``from_predictions`` arrays of any origin; both draw,
into `ax` if it is given. ``plot`` draws again, elsewhere. Colours and captions: :mod:`subspaces.plots.style`.
"""

from __future__ import annotations

from subspaces.plots.embedding import EmbeddingDisplay, SpectrumDisplay
from subspaces.plots.gallery import GalleryDisplay
from subspaces.plots.matrices import AffinityDisplay, CoefficientsDisplay
from subspaces.plots.overview import show
from subspaces.plots.scores import ConfusionDisplay, NoiseDisplay
from subspaces.plots.selection import NumberOfClustersDisplay, SelectionDisplay

__all__ = [
    "AffinityDisplay",
    "CoefficientsDisplay",
    "ConfusionDisplay",
    "EmbeddingDisplay",
    "GalleryDisplay",
    "NoiseDisplay",
    "NumberOfClustersDisplay",
    "SelectionDisplay",
    "SpectrumDisplay",
    "show",
]
