"""Superpixels: small areas of similar pixels, so that a large image has few points to cluster (SLIC).

Achanta, Shaji, Smith, Lucchi, Fua, Süsstrunk: SLIC superpixels compared to state-of-the-art superpixel methods, IEEE
Trans. PAMI 34 (2012) 2274-2282. k-means of pixels by spectrum and place, where a pixel is only compared with the
centres of the nine grid cells around it. Their last step, which makes areas connected, is left out: what is clustered
are the means, and a speck belongs to the area whose spectrum it has.
"""

from __future__ import annotations

import math

import numpy as np

from subspaces.applications.cube import row_pieces
from subspaces.utils import memory
from subspaces.utils.types import Array, Labels

N_ITER = 10
"""Rounds of SLIC, as its authors use."""


def superpixels(components: Array, mask: Array, n_superpixels: int, compactness: float = 0.5) -> Labels:
    """Divide an image into areas of similar pixels.

    Parameters
    ----------
    components : array of shape (rows, columns, n_components)
    mask : array of shape (rows, columns), True where a pixel counts
    n_superpixels : int
        About how many areas the whole image is divided into.
    compactness : float, default=0.5
        Weight of the place: a distance of one grid cell counts as much as this many times the typical difference
        between pixels that are one grid cell apart.

    Returns
    -------
    segments : array of shape (rows, columns): 0, 1, ... in order of their grid cells; −1 outside of the mask
    """
    rows, columns, _ = components.shape
    needed = rows * columns * 4 * (components.shape[2] + 8)
    memory.require(needed, f"the superpixels of {rows} × {columns} pixels", "Cut the image into parts.")
    side = max(1.0, math.sqrt(rows * columns / n_superpixels))
    grid = max(1, round(rows / side)), max(1, round(columns / side))
    cell_rows = np.minimum(np.arange(rows) * grid[0] // rows, grid[0] - 1)
    cell_columns = np.minimum(np.arange(columns) * grid[1] // columns, grid[1] - 1)
    weight = compactness * _typical_difference(components, max(1, round(side))) / side
    places = [
        weight * axis.astype(np.float32) for axis in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    ]
    points = np.concatenate([components, np.stack(places, axis=2)], axis=2, dtype=np.float32)
    segments = (cell_rows[:, None] * grid[1] + cell_columns).astype(np.int32)
    centres = segment_means(points, np.where(mask, segments, -1), grid[0] * grid[1])
    for _ in range(N_ITER):
        for piece in row_pieces(points.shape, 4 * points.itemsize):
            segments[piece] = _nearest(points[piece], cell_rows[piece], cell_columns, centres, grid)
        found = segment_means(points, np.where(mask, segments, -1), grid[0] * grid[1])
        if np.array_equal(found, centres, equal_nan=True):
            break
        centres = found
    segments[~mask] = -1
    _, codes = np.unique(segments[mask], return_inverse=True)
    labels = np.full((rows, columns), -1, dtype=np.intp)
    labels[mask] = codes
    return labels


def segment_means(points: Array, segments: Labels, n_segments: int) -> Array:
    """Mean of each segment (NaN where it has no pixel); −1 is none."""
    inside = segments.ravel() >= 0
    codes = segments.ravel()[inside]
    counts = np.bincount(codes, minlength=n_segments)
    flat = points.reshape(-1, points.shape[-1])
    sums = [np.bincount(codes, weights=flat[inside, j], minlength=n_segments) for j in range(flat.shape[1])]
    with np.errstate(invalid="ignore"):
        return (np.stack(sums, axis=1) / counts[:, None]).astype(points.dtype)


def _nearest(points: Array, cell_rows: Labels, cell_columns: Labels, centres: Array, grid: tuple[int, int]) -> Labels:
    """Of the centres of the nine cells around each pixel's own the nearest; the first one of equals."""
    best = np.full(points.shape[:2], np.inf, dtype=np.float32)
    chosen: Labels = np.zeros(points.shape[:2], dtype=np.int32)
    for down in (0, -1, 1):  # the own cell first
        for right in (0, -1, 1):
            r = np.clip(cell_rows + down, 0, grid[0] - 1)
            c = np.clip(cell_columns + right, 0, grid[1] - 1)
            cells = r[:, None] * grid[1] + c
            difference = points - centres[cells]
            squared = np.einsum("ijk,ijk->ij", difference, difference)
            nearer = squared < best  # never of NaN: a cell without pixels
            best[nearer], chosen[nearer] = squared[nearer], cells[nearer]
    return chosen


def _typical_difference(components: Array, step: int) -> float:
    """Median distance of the components of pixels that are `step` apart, down and to the right."""
    rows, columns, _ = components.shape
    found = [
        np.sqrt(np.square(components[step::3, ::3] - components[: rows - step : 3, ::3]).sum(axis=2)).ravel(),
        np.sqrt(np.square(components[::3, step::3] - components[::3, : columns - step : 3]).sum(axis=2)).ravel(),
    ]
    together = np.concatenate(found)
    return float(np.median(together)) if len(together) else 1.0
