"""`cluster_image`: the way from a cube to a map of clusters, and what is known of each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from subspaces.applications.cube import Cube, as_cube, row_pieces
from subspaces.applications.hyperspectral.neighbourhood import patches, propagate, unit_components
from subspaces.applications.hyperspectral.superpixels import segment_means, superpixels
from subspaces.utils.types import Array, Labels

N_COMPONENTS, PATCH_SIZE, N_NONZERO = 8, 7, 20
"""Chosen on made images (`make_cube`); on SalinasA 4 to 16 components and 7 to 9 pixels do as well."""

MAX_PIXELS = 10_000
"""Pixels up to which each is a point of its own; above, where KTRR has no kernel matrix of all, superpixels are."""

PIXELS_EACH, N_SUPERPIXELS = 10, 5_000
"""Superpixels by default: one for so many pixels, at most so many."""


@dataclass(frozen=True)
class ImageClusters:
    """What was found in an image.

    Attributes
    ----------
    labels : array of shape (rows, columns): cluster of each pixel, −1 outside of the mask
    model : the fitted clusterer; its points are the pixels of the mask in reading order, or the superpixels
    X : array of shape (n_samples, n_features), the features it was fitted on
    segments : array of shape (rows, columns), superpixel of each pixel, −1 outside of the mask; None without them
    cube : the image
    """

    labels: Labels
    model: Any
    X: Array
    segments: Labels | None
    cube: Cube

    def spectra(self) -> tuple[Array, Array]:
        """Mean spectrum of each cluster and the standard deviation of its pixels, both (n_clusters, n_bands)."""
        return label_spectra(self.cube.values, self.labels)


def cluster_image(
    cube: Any,
    n_clusters: int | str | None = None,
    *,
    mask: Any = None,
    estimator: Any = None,
    n_components: int = N_COMPONENTS,
    patch_size: int = PATCH_SIZE,
    n_neighbors: int | None = None,
    n_superpixels: int | str | None = "auto",
) -> ImageClusters:
    """Cluster the pixels of a hyperspectral image by their spectra and surroundings.

    Parameters
    ----------
    cube : array of shape (rows, columns, bands), or what `subspaces.app.files.read_cube` returned
        Pixels with a NaN are left out.
    n_clusters : int or "auto", default="auto"
        Number of clusters, for :class:`~subspaces.KTRR` with ``n_nonzero=20``, which then is the clusterer.
    mask : array of shape (rows, columns), default=None
        False (or zero) where a pixel is not to be clustered; it still surrounds others.
    estimator : clusterer, default=None
        Any clusterer with ``fit`` and ``labels_``, in place of `n_clusters`; it is cloned.
    n_components : int, default=8
        Principal components of the spectra, which are scaled to length 1 first.
    patch_size : odd int, default=7
        Side of the square of pixels that describes the one in its centre; 1 for the spectrum alone.
    n_neighbors : int or None, default=None
        Smooth the features over the graph of this many mutual nearest neighbours, as EGCSC does (it takes 30).
    n_superpixels : int, "auto" or None, default="auto"
        Cluster about so many small areas of similar pixels instead of the pixels; ``"auto"`` takes one for
        ten pixels, at most 5,000, above 10,000 pixels.

    Returns
    -------
    ImageClusters

    Examples
    --------
    >>> from subspaces import cluster_image
    >>> from subspaces.datasets import make_cube
    >>> from subspaces.metrics import accuracy
    >>> values, labels, _ = make_cube((40, 40), n_bands=60, n_materials=3, random_state=0)
    >>> found = cluster_image(values, 3)
    >>> found.labels.shape, accuracy(labels.ravel(), found.labels.ravel()) > 0.95
    ((40, 40), True)
    """
    image = as_cube(cube, mask)
    if estimator is not None and n_clusters is not None:
        raise ValueError("n_clusters has no meaning beside estimator, which has its own; give one of them.")
    X, segments = image_features(
        image, n_components=n_components, patch_size=patch_size, n_neighbors=n_neighbors, n_superpixels=n_superpixels
    )
    if estimator is None:
        from subspaces.estimators.ktrr import KTRR
        from subspaces.selection.auto import SubspaceClustering

        given: dict[str, Any] = {"kernel": "rbf", "reg": 1.0, "n_nonzero": N_NONZERO, "scaling": None, "affine": False}
        estimator = KTRR(n_clusters, **given) if n_clusters else SubspaceClustering(assign_labels="kmeans", **given)
    model = clone(estimator, safe=False)  # a copy also of what is no estimator of scikit-learn's
    model.fit(X)
    return ImageClusters(label_map(model.labels_, image.mask, segments), model, X, segments, image)


def image_features(
    cube: Cube,
    *,
    n_components: int = N_COMPONENTS,
    patch_size: int = PATCH_SIZE,
    n_neighbors: int | None = None,
    n_superpixels: int | str | None = "auto",
) -> tuple[Array, Labels | None]:
    """Rows to cluster, and the superpixels they stand for (None where each row is a pixel); see `cluster_image`."""
    for name, value in (("n_components", n_components), ("patch_size", patch_size), ("n_neighbors", n_neighbors)):
        if (value is not None or name != "n_neighbors") and (not isinstance(value, Integral) or value < 1):
            raise ValueError(f"{name} must be a whole number of 1 or more; got {value!r}.")
    if patch_size % 2 == 0:
        raise ValueError(f"patch_size must be odd, so that a pixel is in the centre; got {patch_size}.")
    if n_superpixels not in (None, "auto") and (not isinstance(n_superpixels, Integral) or n_superpixels < 2):
        raise ValueError(f'n_superpixels must be a whole number of 2 or more, "auto" or None; got {n_superpixels!r}.')
    n_pixels = int(cube.mask.sum())
    if n_superpixels == "auto":
        n_superpixels = min(N_SUPERPIXELS, n_pixels // PIXELS_EACH) if n_pixels > MAX_PIXELS else None
    components = unit_components(cube.values, cube.present, n_components)
    if n_superpixels is None:
        segments, X = None, patches(components, cube.mask, patch_size)
    else:
        n_cells = int(n_superpixels) * cube.mask.size // n_pixels  # of the whole image
        segments = superpixels(components, cube.mask, min(n_cells, cube.mask.size))
        X = segment_means(components, segments, int(segments.max()) + 1)
    return X if n_neighbors is None else propagate(X, n_neighbors), segments


def label_map(labels: Labels, mask: Array, segments: Labels | None) -> Labels:
    """Labels of pixels or superpixels as an image; −1 outside of the mask."""
    found = np.full(mask.shape, -1, dtype=np.intp)
    found[mask] = labels if segments is None else labels[segments[mask]]
    return found


def label_spectra(values: Array, labels: Labels) -> tuple[Array, Array]:
    """Mean and standard deviation of the spectra of each label 0, 1, ...; negative labels count nowhere.

    Examples
    --------
    >>> mean, spread = label_spectra(np.array([[[1.0, 2.0], [3.0, 2.0], [9.0, 9.0]]]), np.array([[0, 0, -1]]))
    >>> mean, spread
    (array([[2., 2.]]), array([[1., 0.]]))
    """
    n_labels, bands = int(labels.max()) + 1, values.shape[2]
    counts, total, squares = np.zeros(n_labels), np.zeros((n_labels, bands)), np.zeros((n_labels, bands))
    origin = values[tuple(np.argwhere(labels >= 0)[0])].astype(np.float64)  # squares of large numbers lose digits
    for piece in row_pieces(values.shape):
        inside = labels[piece] >= 0
        codes = labels[piece][inside]
        spectra = values[piece][inside].astype(np.float64) - origin
        members = sparse.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(n_labels, len(codes)))
        counts += members.sum(axis=1)
        total += members @ spectra
        squares += members @ np.square(spectra)
    counts = np.maximum(counts, 1)[:, None]
    mean = total / counts
    return mean + origin, np.sqrt(np.maximum(squares / counts - mean**2, 0))
