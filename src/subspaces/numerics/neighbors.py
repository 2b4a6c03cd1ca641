"""X → nearest other points of each point, where points that are equally far go by their order; matrices of such."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array
from sklearn.utils import check_array

from subspaces.numerics.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.numerics.ties import top_columns
from subspaces.numerics.types import Array, Sparse


def nearest_neighbors(X: Array, k: int) -> tuple[Array, Array]:
    """Distances and indices of the k nearest other points of each point, nearest first, both of shape (n, k).

    All pairs, block by block: scikit-learn's search takes those of equally far points that rounding prefers. Found by
    ‖x‖² − 2xᵀy + ‖y‖², the distances themselves come from differences, which lose no digits of near points.
    """
    centred = X - X.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)

    def search(start: int, stop: int) -> tuple[Array, Array]:
        keys = 2 * (centred[start:stop] @ centred.T)
        keys -= squares
        keys -= squares[start:stop, None]
        keys[np.arange(stop - start), np.arange(start, stop)] = -np.inf
        found = top_columns(keys, k)
        distances = np.stack(
            [np.linalg.norm(centred[start:stop] - centred[column], axis=1) for column in found.T], axis=1
        )
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(found, order, axis=1)

    parts = map_blocks(search, row_blocks(len(X), len(X) * X.itemsize, 8 * BLOCK_BYTES))
    distances, indices = zip(*parts, strict=True)
    return np.concatenate(distances), np.concatenate(indices)


def check_points(X: Array, n_neighbors: int | None) -> Array:
    """X as floats, float32 kept; refuse a number of neighbours the points cannot give."""
    points: Array = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    largest = len(points) - 1  # a point is never its own neighbour
    if n_neighbors is not None and not 1 <= n_neighbors <= largest:
        raise ValueError(f"n_neighbors must be from 1 to n_points - 1 = {largest}, got {n_neighbors}.")
    return points


def columns_to_sparse(indices: Array, values: Array) -> Sparse:
    """Square sparse matrix whose column i holds ``values[i]`` at the rows ``indices[i]``; zeros dropped."""
    n_points, per_column = indices.shape
    indptr = np.arange(0, n_points * per_column + 1, per_column)
    # flatten copies: what is sorted below are not the caller's arrays
    matrix = csc_array((values.flatten(), indices.flatten(), indptr), shape=(n_points, n_points))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
