"""Hyperspectral images: a cube of spectra in, a map of clusters out.

Two materials differ in the shape of their spectra, two places of one material in how much light falls on them. So a
spectrum is first scaled to length 1 (distances are then those of the spectral angle), and what is left is described by
a few principal components without scaling them: more components add less and less instead of adding noise. A pixel is
then the patch of components around it, as in graph convolutional subspace clustering (EGCSC: Cai, Zhang, Cai, Liu,
Jiang, Yan, IEEE Trans. Geoscience and Remote Sensing 59 (2020) 4191-4202), because neighbours are mostly of one
material and their noise is not the same. The patch counts less towards its border: without that, pixels along the
border of two materials are more like each other than like either.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import ndimage, sparse
from sklearn.base import clone

from subspaces.applications.cube import Cube, as_cube, row_pieces
from subspaces.utils import memory
from subspaces.utils.decompositions import largest_eigenpairs
from subspaces.utils.ordering import first_largest
from subspaces.utils.types import Array, Labels

N_COMPONENTS, PATCH_SIZE, N_NONZERO = 8, 7, 20
"""Chosen on made images (`make_cube`); on SalinasA 4 to 16 components and 7 to 9 pixels do as well."""
MAX_PIXELS = 10_000
"""Pixels up to which each is a sample of its own; above, where KTRR makes no n × n matrix, superpixels are."""
PIXELS_EACH, N_SUPERPIXELS = 10, 5_000
"""Superpixels by default: one for so many pixels, at most so many."""
_GRID = 2.0**-22  # of the largest component, to which all are rounded: CPU and number of threads differ by less
_COMPACTNESS = 0.5  # a distance of one grid cell counts as this many times the typical difference one cell apart


@dataclass(frozen=True)
class ImageClusters:
    """Clusters of the pixels of an image.

    Attributes
    ----------
    labels : array of shape (rows, columns): cluster of each pixel, −1 outside of the mask
    model : the fitted clusterer; its samples are the pixels of the mask in reading order, or the superpixels
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
        """Return mean spectrum and standard deviation of the pixels of each cluster, both (n_clusters, n_bands)."""
        return label_spectra(self.cube.values, self.labels)


def cluster_image(
    cube: Any,
    n_clusters: int | str | None = None,
    *,
    mask: Any = None,
    estimator: Any = None,
    n_components: int = N_COMPONENTS,
    patch_size: int = PATCH_SIZE,
    n_superpixels: int | str | None = "auto",
) -> ImageClusters:
    """Cluster the pixels of a hyperspectral image by their spectra and surroundings.

    Parameters
    ----------
    cube : array of shape (rows, columns, bands), or what `subspaces.app.files.read_cube` returned
        Pixels with a NaN are left out.
    n_clusters : int or None, default=None
        Number of clusters, for :class:`~subspaces.KTRR` with ``n_nonzero=20``, which then is the clusterer.
    mask : array of shape (rows, columns), default=None
        False (or zero) where a pixel is not to be clustered; it still surrounds others.
    estimator : clusterer, default=None
        Any clusterer with ``fit`` and ``labels_``, in place of `n_clusters`; it is cloned.
    n_components : int, default=8
        Principal components of the spectra, which are scaled to length 1 first.
    patch_size : odd int, default=7
        Side of the square of pixels that describes the one in its centre; 1 for the spectrum alone.
    n_superpixels : int, "auto" or None, default="auto"
        Cluster about so many small areas of similar pixels (SLIC of scikit-image) instead of the pixels; ``"auto"``
        takes one for ten pixels, at most 5,000, above 10,000 pixels.

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
    X, segments = image_features(image, n_components=n_components, patch_size=patch_size, n_superpixels=n_superpixels)
    if estimator is None:
        from subspaces.estimators.ktrr import KTRR  # not at the top: reading a cube needs no estimator
        from subspaces.selection.auto import SubspaceClustering

        given: dict[str, Any] = {"kernel": "rbf", "reg": 1.0, "n_nonzero": N_NONZERO, "scaling": None, "affine": False}
        clusterer = KTRR(n_clusters, **given)
        if len(X) <= MAX_PIXELS:  # two scales misplace 1 % of SalinasA's pixels
            clusterer.solver = "dense"
        estimator = clusterer if n_clusters else SubspaceClustering(assign_labels="kmeans", **given)
    model = clone(estimator, safe=False)  # a copy also of what is no estimator of scikit-learn's
    model.fit(X)
    return ImageClusters(label_map(model.labels_, image.mask, segments), model, X, segments, image)


def image_features(
    cube: Cube,
    *,
    n_components: int = N_COMPONENTS,
    patch_size: int = PATCH_SIZE,
    n_superpixels: int | str | None = "auto",
) -> tuple[Array, Labels | None]:
    """Return the rows to cluster, and the superpixels they stand for (None where each row is a pixel).

    The parameters are those of :func:`cluster_image`.
    """
    for name, value in (("n_components", n_components), ("patch_size", patch_size)):
        if not isinstance(value, Integral) or value < 1:
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
        segments = superpixels(components, cube.mask, min(int(n_superpixels), n_pixels))
        X = segment_means(components, segments, int(segments.max()) + 1)
    return X, segments


def label_map(labels: Labels, mask: Array, segments: Labels | None) -> Labels:
    """Return labels of pixels or superpixels as an image; −1 outside of the mask."""
    found = np.full(mask.shape, -1, dtype=np.intp)
    found[mask] = labels if segments is None else labels[segments[mask]]
    return found


def label_spectra(values: Array, labels: Labels) -> tuple[Array, Array]:
    """Return mean and standard deviation of the spectra of each label 0, 1, ...; negative labels count nowhere.

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


# ------------------------------------------------------------------ features of pixels


def unit_components(values: Array, mask: Array, n_components: int) -> Array:
    """Compute principal components of the spectra scaled to length 1.

    Two passes over the cube by rows; beside the result there is one piece of bounded size. Components are float32 and
    not scaled, at most as many as bands; outside of the mask they are those of the nearest pixel in it.
    """
    rows, columns, bands = values.shape
    n_kept = min(n_components, bands)
    needed = 4 * rows * columns * (n_kept + 6)
    memory.require(needed, f"{n_kept} components of {rows} × {columns} pixels", "Cut the image into parts.")
    pieces = row_pieces(values.shape)
    total, products, n = np.zeros(bands), np.zeros((bands, bands)), int(mask.sum())
    for piece in pieces:
        spectra = _unit(values[piece][mask[piece]])
        total += spectra.sum(axis=0)
        products += spectra.T @ spectra
    mean = total / n
    _, vectors = largest_eigenpairs(products / n - np.outer(mean, mean), n_kept)
    peaks = first_largest(np.abs(vectors), axis=0)
    vectors = vectors * np.where(vectors[peaks, np.arange(n_kept)] < 0, -1.0, 1.0)
    components = np.zeros((rows, columns, n_kept), dtype=np.float32)
    for piece in pieces:
        components[piece][mask[piece]] = (_unit(values[piece][mask[piece]]) - mean) @ vectors
    step = np.float32(_GRID * (float(np.abs(components).max()) or 1.0))
    np.rint(components / step, out=components)
    components *= step
    if n < rows * columns:
        nearest = ndimage.distance_transform_edt(~mask, return_distances=False, return_indices=True)
        components = components[nearest[0], nearest[1]]
    return components


def patches(components: Array, mask: Array, size: int) -> Array:
    """Return the flattened `size` × `size` square around each pixel of the mask; the image is mirrored at borders.

    A pixel of the patch is multiplied by exp(−d²/4σ²), d its distance from the centre and σ = `size`/5, so that in
    squared distances between patches it has the weight of a Gaussian window.

    Examples
    --------
    >>> corner = np.array([[True, False, False], [False, False, False]])
    >>> patches(np.arange(6.0).reshape(2, 3, 1), corner, 3).round(2)
    array([[1. , 1.5, 1. , 0.5, 0. , 0.5, 1. , 1.5, 1. ]])
    """
    n, n_components, half = int(mask.sum()), components.shape[2], size // 2
    needed = 2 * n * n_components * size**2 * components.itemsize
    remedy = "Take smaller patches, fewer components, or superpixels."
    memory.require(needed, f"the patches of {size} × {size} pixels around {n} pixels", remedy)
    if size == 1:
        return components[mask]
    padded = np.pad(components, ((half, half), (half, half), (0, 0)), "reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(0, 1))[mask]
    falling = np.exp(-np.square(np.arange(-half, half + 1)) / (4 * (size / 5) ** 2))
    windows *= np.outer(falling, falling).astype(components.dtype)
    return windows.reshape(n, -1)


def _unit(spectra: Array) -> Array:
    """Scale spectra to length 1; one that is zero stays zero."""
    spectra = spectra.astype(np.float64)
    largest = np.abs(spectra).max(axis=1, keepdims=True, initial=0)  # squares of large numbers would overflow
    spectra /= np.where(largest > 0, largest, 1)
    lengths = np.sqrt(np.einsum("ij,ij->i", spectra, spectra))[:, None]
    spectra /= np.where(lengths > 0, lengths, 1)
    return spectra


# ------------------------------------------------------------------ superpixels


def superpixels(components: Array, mask: Array, n_superpixels: int) -> Labels:
    """Divide the pixels of the mask into about so many small areas of similar pixels; −1 outside of the mask.

    By SLIC (Achanta, Shaji, Smith, Lucchi, Fua, Süsstrunk: SLIC superpixels compared to state-of-the-art superpixel
    methods, IEEE Trans. PAMI 34 (2012) 2274-2282), without its last step, which makes areas connected: only their means
    are clustered, and a speck belongs to the area whose spectrum it has.
    """
    try:
        from skimage.segmentation import slic
    except ImportError as error:
        raise ImportError(
            'superpixels need scikit-image: pip install "subspaces[geo]"; or set n_superpixels=None.'
        ) from error
    rows, columns, _ = components.shape
    needed = rows * columns * 8 * (components.shape[2] + 8)
    memory.require(needed, f"the superpixels of {rows} × {columns} pixels", "Cut the image into parts.")
    spread = float(np.ptp(components)) or 1.0  # slic divides the image by it
    step = max(1, round(np.sqrt(mask.sum() / n_superpixels)))
    found = slic(
        components,
        n_segments=n_superpixels,
        compactness=_COMPACTNESS * _typical_difference(components, step) / spread or 1.0,
        convert2lab=False,
        enforce_connectivity=False,
        mask=None if mask.all() else mask,
        channel_axis=-1,
    )
    segments = np.full((rows, columns), -1, dtype=np.intp)
    segments[mask] = np.unique(found[mask], return_inverse=True)[1]
    return segments


def segment_means(components: Array, segments: Labels, n_segments: int) -> Array:
    """Compute the mean of each segment; −1 is none."""
    inside = segments >= 0
    codes = segments[inside]
    counts = np.bincount(codes, minlength=n_segments)
    sums = [np.bincount(codes, weights=band[inside], minlength=n_segments) for band in np.moveaxis(components, 2, 0)]
    return (np.stack(sums, axis=1) / counts[:, None]).astype(components.dtype)


def _typical_difference(components: Array, step: int) -> float:
    """Return the median distance of the components of pixels that are `step` apart, down and to the right."""
    rows, columns, _ = components.shape
    found = [
        np.sqrt(np.square(components[step::3, ::3] - components[: rows - step : 3, ::3]).sum(axis=2)).ravel(),
        np.sqrt(np.square(components[::3, step::3] - components[::3, : columns - step : 3]).sum(axis=2)).ravel(),
    ]
    together = np.concatenate(found)
    return float(np.median(together)) if len(together) else 1.0
