"""Hyperspectral images: a cube of spectra in, a map of clusters out."""

from __future__ import annotations

from subspaces.applications.hyperspectral.image import ImageClusters, cluster_image, image_features
from subspaces.applications.hyperspectral.neighbourhood import patches, propagate, unit_components
from subspaces.applications.hyperspectral.superpixels import segment_means, superpixels

__all__ = [
    "ImageClusters",
    "cluster_image",
    "image_features",
    "patches",
    "propagate",
    "segment_means",
    "superpixels",
    "unit_components",
]
