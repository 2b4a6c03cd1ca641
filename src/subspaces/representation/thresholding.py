"""TSC: the strongest cosines of each point instead of a solved problem.

C is not symmetric: a point may be among the q nearest of another that is not among its own. Hence coefficients,
which graphs are made of as from any others, and no affinity.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import normalize

from subspaces.representation.coefficients import Coefficients, from_sparse
from subspaces.utils.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.utils.distances import check_points, columns_to_sparse
from subspaces.utils.ties import top_columns
from subspaces.utils.types import Array


def tsc(X: Array, *, n_neighbors: int) -> Coefficients:
    r"""Thresholding-based subspace clustering: the q points with the smallest angle to each point.

    .. math:: C_{ji} = \exp(-2 \arccos |\langle x_j, x_i\rangle| / \|x_j\|\|x_i\|)
              \quad\text{for the } q \text{ largest cosines } |\cdot| \text{ of column } i,\ j \neq i.

    Parameters
    ----------
    X : (n, m) array, points as rows
    n_neighbors : int
        q of the paper.

    Returns
    -------
    Coefficients
        Sparse; the published graph is C + Cᵀ. A zero row of X has no angle to anything: its row and column are empty.

    References
    ----------
    Heckel & Bölcskei, "Robust subspace clustering via thresholding", IEEE Trans. Inf. Theory 2015.

    Examples
    --------
    >>> import numpy as np
    >>> tsc(np.array([[1.0, 0], [-2, 0], [0, 1], [0.1, 3]]), n_neighbors=1).dense().round(3)
    array([[0.   , 1.   , 0.   , 0.   ],
           [1.   , 0.   , 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.936],
           [0.   , 0.   , 0.936, 0.   ]])
    """
    X = check_points(X, n_neighbors)
    points: Array = normalize(X)  # zero rows stay zero
    neighbours, cosines = strongest_cosines(points, n_neighbors)
    weights = np.exp(-2 * np.arccos(np.minimum(cosines, 1)))
    nonzero = np.count_nonzero(points, axis=1) > 0
    return from_sparse(columns_to_sparse(neighbours, weights * (nonzero[:, None] & nonzero[neighbours])))


def strongest_cosines(points: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Indices (ascending) and values of the largest absolute cosines of each unit row with the others."""
    n_samples = len(points)

    def search(start: int, stop: int) -> tuple[Array, Array]:
        cosines = np.abs(points[start:stop] @ points.T)
        cosines[np.arange(stop - start), np.arange(start, stop)] = -1  # not its own neighbour
        best = top_columns(cosines, n_neighbors)
        return best, np.take_along_axis(cosines, best, axis=1)

    # Larger blocks than for elementwise work: each one streams all points through a matrix product.
    blocks = row_blocks(n_samples, n_samples * points.itemsize, 8 * BLOCK_BYTES)
    indices, values = zip(*map_blocks(search, blocks), strict=True)
    return np.concatenate(indices), np.concatenate(values)
