"""Build W from X without a representation: local subspace affinity (LSA), heat kernel (plain spectral clustering).

Both compare two samples by a symmetric measure w(x, y) = w(y, x) ≥ 0, so there are no coefficients to symmetrise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import normalize

from subspaces.representation.coefficients import Blocks
from subspaces.representation.neighbors import strongest_cosines
from subspaces.utils.blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces.utils.decompositions import svd
from subspaces.utils.distances import check_points, columns_to_sparse, nearest_neighbors
from subspaces.utils.types import Array, Sparse


def lsa(X: Array, *, subspace_dim: int = 4, n_neighbors: int = 6, rank: int | None = None) -> Array:
    r"""Compare the subspaces spanned around two samples: local subspace affinity.

    Samples are projected on the `rank` leading singular vectors (without the singular values) and scaled to unit
    length; sample i and the `n_neighbors` samples at the smallest angles (signs ignored) span a subspace with basis B_i
    of dimension d_i; with the principal angles θ_h between two of them

    .. math:: W_{ij} = \exp\Big(-\sum_{h=1}^{\min(d_i, d_j)} \sin^2\theta_h\Big)
              = \exp\big(\|B_i^\top B_j\|_F^2 - \min(d_i, d_j)\big), \qquad W_{ii} = 0.

    Parameters
    ----------
    X : (n, m) array, samples as rows
    subspace_dim : int
        Dimension of the local subspaces; lowered to ``rank - 1``, as in the authors' program (a subspace that fills
        the space tells nothing), and sample by sample to the rank of the neighbourhood.
    n_neighbors : int
        Neighbours that span a local subspace together with the sample.
    rank : int or None
        Dimension of the projection, at most the numerical rank of X. None keeps 98 % of the energy, at most
        100 dimensions and at least ``subspace_dim + 1``.

    Returns
    -------
    affinity : (n, n) array, dense
        Symmetric, in [0, 1]. A zero row of X has no direction and is left without edges.

    References
    ----------
    Yan & Pollefeys, "A general framework for motion segmentation", ECCV 2006.

    Examples
    --------
    >>> import numpy as np
    >>> lines = np.array([[1.0, 0, 0], [2, 0, 0], [3, 0, 0], [0, 1.0, 0], [0, 2, 0], [0, 3, 0]])
    >>> lsa(lines, subspace_dim=1, n_neighbors=2)[0].round(3)
    array([0.   , 1.   , 1.   , 0.368, 0.368, 0.368])
    """
    X = check_points(X, n_neighbors)
    if subspace_dim < 1:
        raise ValueError(f"subspace_dim must be at least 1, got {subspace_dim}.")
    unit = normalize(_whiten(X, rank, subspace_dim))
    # Local subspaces do not see the sign of a sample, so neither does the choice of neighbours.
    neighbours, _ = strongest_cosines(unit, n_neighbors)
    bases, dims = _local_bases(unit, neighbours, min(subspace_dim, max(1, unit.shape[1] - 1)))

    def rows(start: int, stop: int) -> Array:
        cosines = np.matmul(bases[:, None, start:stop], bases[None, :, start:].swapaxes(2, 3))
        overlap = np.square(cosines, out=cosines).sum(axis=(0, 1))
        smaller_dim = np.minimum(dims[start:stop, None], dims[start:])
        # Rounding can lift the overlap of equal subspaces above their dimension.
        return np.exp(np.minimum(overlap - smaller_dim, 0)) * (smaller_dim > 0)

    return _symmetric(rows, len(X), X.dtype, arrays_per_row=len(bases) ** 2)


def _whiten(X: Array, rank: int | None, subspace_dim: int) -> Array:
    """Return coordinates of the samples on the leading singular directions, each direction scaled to norm one."""
    _, singular, directions = svd(X)
    numerical = int(np.sum(singular > singular[0] * max(X.shape) * np.finfo(X.dtype).eps))
    if rank is None:
        energy = np.cumsum(np.square(singular, dtype=np.float64))
        rank = int(np.searchsorted(energy, 0.98 * energy[-1])) + 1
        rank = max(min(rank, 100), subspace_dim + 1)
    elif rank < 1:
        raise ValueError(f"rank must be at least 1 or None, got {rank}.")
    rank = max(1, min(rank, numerical))
    # X V / σ instead of U: zero rows stay exactly zero, where U holds rounding that scaling would blow up.
    return X @ directions[:rank].T / (singular[:rank] if numerical else 1)


def _local_bases(points: Array, neighbours: Array, dim: int) -> tuple[Array, Array]:
    """Return orthonormal bases of what each sample and its neighbours span, shape (dim, n, r), and their dimensions.

    Directions beyond the rank of a neighbourhood are arbitrary; they are set to zero and not counted.
    """
    n_samples, rank = points.shape
    members = np.column_stack([np.arange(n_samples), neighbours])
    dim = min(dim, members.shape[1])
    bases, dims = np.zeros((dim, n_samples, rank), points.dtype), np.zeros(n_samples, points.dtype)
    nonzero, negligible = np.count_nonzero(points, axis=1) > 0, np.finfo(points.dtype).eps ** 0.5

    def fill(start: int, stop: int) -> None:
        _, singular, directions = svd(points[members[start:stop]])
        kept = (singular[:, :dim] > negligible * singular[:, :1]) & nonzero[start:stop, None]
        bases[: kept.shape[1], start:stop] = (directions[:, :dim] * kept[:, :, None]).swapaxes(0, 1)
        dims[start:stop] = kept.sum(axis=1)

    map_blocks(fill, row_blocks(n_samples, 2 * members.shape[1] * rank * points.itemsize))
    return bases, dims


def heat_kernel_graph(
    X: Array, *, bandwidth: float | str | None = None, n_neighbors: int | None = None
) -> Array | Sparse:
    r"""Return the affinity of plain spectral clustering (SC), eq. (2.0) of the KTRR paper, with a zero diagonal.

    .. math:: W_{ij} = \exp(-\|x_i - x_j\|^2 / (2\sigma^2)), \qquad W_{ii} = 0.

    Parameters
    ----------
    X : (n, m) array, samples as rows
    bandwidth : float, "local" or None
        σ. None takes σ² = half the mean squared distance over all pairs, an untuned choice: on COIL20 a tenth
        of the mean distance is about 15 % more accurate. ``"local"``, with `n_neighbors` only, gives each sample
        its own, the distance to its last neighbour, and the weight exp(−d²/(σ_i σ_j)).
    n_neighbors : int or None
        None keeps the full graph, as in the paper; a number keeps the pairs in which one sample is among that
        many nearest of the other.

    Returns
    -------
    affinity : (n, n) array, dense; csr_array with `n_neighbors`
        Symmetric, entries in [0, 1].

    References
    ----------
    Ng, Jordan & Weiss, "On spectral clustering: analysis and an algorithm", NeurIPS 2002.
    Zelnik-Manor & Perona, "Self-tuning spectral clustering", NeurIPS 2004 (the local bandwidth).

    Examples
    --------
    >>> import numpy as np
    >>> heat_kernel_graph(np.array([[0.0], [1.0], [3.0]]), bandwidth=1.0).round(3)
    array([[0.   , 0.607, 0.011],
           [0.607, 0.   , 0.135],
           [0.011, 0.135, 0.   ]])
    """
    X = check_points(X, n_neighbors)
    if bandwidth == "local":
        if n_neighbors is None:
            raise ValueError('bandwidth="local" needs n_neighbors, whose last is the bandwidth; got n_neighbors=None.')
        return self_tuned_graph(X, n_neighbors)
    assert not isinstance(bandwidth, str)
    if bandwidth is not None and bandwidth <= 0:
        raise ValueError(f"bandwidth must be positive or None, got {bandwidth}.")
    X = X - X.mean(axis=0)  # distances by expansion lose the digits that a common offset takes
    # Half the mean squared distance of all pairs is the total variance, which needs no pairs.
    variance = float(X.var(axis=0, dtype=np.float64).sum()) if bandwidth is None else bandwidth**2
    scale = -0.5 / variance if variance > 0 else 0.0  # all samples equal: all distances are zero
    if n_neighbors is not None:
        distances, neighbours = nearest_neighbors(X, n_neighbors)
        directed = columns_to_sparse(neighbours, np.exp(scale * distances**2).astype(X.dtype))
        return csr_array(directed.maximum(directed.T))

    def rows(start: int, stop: int) -> Array:
        return np.exp(scale * euclidean_distances(X[start:stop], X[start:], squared=True))

    return _symmetric(rows, len(X), X.dtype)


def self_tuned_graph(X: Array, n_neighbors: int, *, scale_copies: bool = False) -> Sparse:
    """Join nearest neighbours with weights exp(−d²/(σ_i σ_j)), σ_i the distance of sample i to the last of its own.

    A sample with so many copies that its σ is 0 is joined to its copies alone; with `scale_copies` it takes the mean
    of all σ instead (Zelnik-Manor & Perona 2004).
    """
    distances, neighbours = nearest_neighbors(X, n_neighbors)
    sigma = distances[:, -1].astype(np.float64)
    if scale_copies:
        sigma[sigma == 0] = sigma.mean() or 1.0
    product = np.maximum(sigma[:, None] * sigma[neighbours], np.finfo(X.dtype).tiny)
    with np.errstate(over="ignore"):  # beside a copy: exp(−∞) = 0
        weights = np.exp(-(distances.astype(np.float64) ** 2) / product).astype(X.dtype)
    directed = columns_to_sparse(neighbours, weights)
    return csr_array(directed.maximum(directed.T))


def _symmetric(rows: Blocks, n_samples: int, dtype: np.dtype[Any], arrays_per_row: int = 1) -> Array:
    """Fill a symmetric matrix with zero diagonal from ``rows(start, stop)``, its part ``[start:stop, start:]``."""
    matrix = np.empty((n_samples, n_samples), dtype)

    def fill(start: int, stop: int) -> None:
        block, square = rows(start, stop), slice(0, stop - start)
        # A matrix product need not round (i, j) and (j, i) alike.
        block[:, square] = (block[:, square] + block[:, square].T) / 2
        matrix[start:stop, start:] = block
        matrix[start:, start:stop] = block.T

    map_blocks(fill, row_blocks(n_samples, arrays_per_row * n_samples * dtype.itemsize, 4 * BLOCK_BYTES))
    np.fill_diagonal(matrix, 0)
    return matrix
