"""Spectra with their surroundings: from a cube to one row of features per pixel.

Two materials differ in the shape of their spectra, two places of one material in how much light falls on them. So a
spectrum is first scaled to length 1 (distances are then those of the spectral angle), and what is left is described by
a few principal components without scaling them: more components add less and less instead of adding noise. A pixel is
then the patch of components around it, as in graph convolutional subspace clustering (EGCSC: Cai, Zhang, Cai, Liu,
Jiang, Yan, IEEE Trans. Geoscience and Remote Sensing 59 (2020) 4191-4202), because neighbours are mostly of one
material and their noise is not the same. The patch counts less towards its border: without that, pixels along the
border of two materials are more like each other than like either.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage, sparse

from subspaces.applications.cube import row_pieces
from subspaces.utils import memory
from subspaces.utils.decompositions import largest_eigenpairs
from subspaces.utils.distances import nearest_neighbors
from subspaces.utils.ties import first_largest
from subspaces.utils.types import Array

_GRID = 2.0**-22
"""Share of the largest component to which all are rounded: what differs by CPU or number of threads is below it."""


def unit_components(values: Array, mask: Array, n_components: int) -> Array:
    """Principal components of the spectra scaled to length 1.

    Two passes over the cube by rows; beside the result there is one piece of bounded size.

    Parameters
    ----------
    values : array of shape (rows, columns, bands), maybe on disk
    mask : array of shape (rows, columns), True where there is a spectrum
    n_components : int
        Components kept, at most as many as bands; they are not scaled.

    Returns
    -------
    components : float32 array of shape (rows, columns, n_components), outside of the mask of the nearest pixel in it
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
    """The square of `size` × `size` pixels around each pixel of the mask, flattened; the image is mirrored at borders.

    A pixel of the patch is multiplied by exp(−d²/4σ²), d its distance from the centre and σ = `size`/5, so that in
    squared distances between patches it has the weight of a Gaussian window.

    Returns
    -------
    patches : array of shape (n_pixels, n_components · size²)

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


def propagate(X: Array, n_neighbors: int) -> Array:
    """Features smoothed over the graph of mutual nearest neighbours, X̄ = D^-½ A D^-½ X (graph convolution).

    A_ij = 1 where i and j are each among the `n_neighbors` nearest of the other, or i = j; D holds the row sums.

    Examples
    --------
    >>> propagate(np.array([[0.0], [1.0], [9.0]]), 1)
    array([[0.5],
           [0.5],
           [9. ]])
    """
    n = len(X)
    _, neighbors = nearest_neighbors(X, min(n_neighbors, n - 1))
    starts = np.arange(0, neighbors.size + 1, neighbors.shape[1])
    A = sparse.csr_array((np.ones(neighbors.size, X.dtype), neighbors.ravel(), starts), shape=(n, n))
    A = A.multiply(A.T) + sparse.eye_array(n, dtype=X.dtype)
    scale = sparse.diags_array(A.sum(axis=1) ** -0.5)
    return (scale @ A @ scale) @ X


def _unit(spectra: Array) -> Array:
    """Spectra of length 1; one that is zero stays zero."""
    spectra = spectra.astype(np.float64)
    largest = np.abs(spectra).max(axis=1, keepdims=True, initial=0)  # squares of large numbers would overflow
    spectra /= np.where(largest > 0, largest, 1)
    lengths = np.sqrt(np.einsum("ij,ij->i", spectra, spectra))[:, None]
    spectra /= np.where(lengths > 0, lengths, 1)
    return spectra
