"""X → nearest other points of each point, where points that are equally far go by their order."""

from __future__ import annotations

import numpy as np

from subspaces.numerics.largest import top_columns
from subspaces.numerics.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.numerics.types import Array


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
