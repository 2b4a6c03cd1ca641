"""Graphs from each point's surroundings: SMCE, LSA, TSC and the heat kernel of plain spectral clustering.

`smce` and `tsc` return coefficients (column i belongs to point i, like every representation here); `lsa` and
`heat_kernel_graph` return a symmetric affinity at once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy.linalg import svd
from scipy.sparse import csc_array
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import check_array

from subspaces._blocks import BLOCK_BYTES, map_blocks, row_blocks
from subspaces._typing import Array, Sparse
from subspaces.representation._result import Trace

Rows = Callable[[int, int], Array]

CHECK_EVERY = 10
"""ADMM steps between two looks at the residuals (and removals of the points that have converged)."""

RELAXATION = 1.6
"""Over-relaxation of ADMM; on COIL20, USPS and unions of subspaces it saves a third of the steps."""


def smce(
    X: Array, *, reg: float = 10.0, n_neighbors: int = 20, tol: float = 1e-6, max_iter: int = 10_000
) -> tuple[Sparse, Trace]:
    r"""Sparse manifold clustering and embedding: few close neighbours whose directions cancel.

    Point i chooses among its nearest neighbours j, at distances d_j = ‖x_j − x_i‖, by

    .. math:: \min_c\ \lambda \sum_j q_j |c_j| + \tfrac12 \Big\|\sum_j c_j \frac{x_j - x_i}{d_j}\Big\|^2
              \quad\text{s.t.}\ \sum_j c_j = 1,\qquad q_j = d_j / \sum_t d_t,

    and gives neighbour j a weight proportional to abs(c_j) / d_j. Multiplying X by a number changes nothing.

    Parameters
    ----------
    X : (n, m) array, points as rows
    reg : float
        λ of the paper, the strength of the preference for close neighbours.
    n_neighbors : int
        Candidates per point, the point itself not counted (the authors' program counts it: KMax − 1).
    tol : float
        Relative primal and dual residual at which a point is done; not below what the dtype can show.
    max_iter : int
        Cap on the ADMM steps of one point.

    Returns
    -------
    coefficients : (n, n) csc_array
        Weights ≥ 0; every column sums to one. The published graph is ``keep_column_mass(coefficients, 0.95)`` and
        then the elementwise maximum with its transpose.
    trace : Trace
        Worst residuals over the points, one entry every ten steps.

    References
    ----------
    Elhamifar & Vidal, "Sparse manifold clustering and embedding", NeurIPS 2011.

    Examples
    --------
    >>> import numpy as np
    >>> angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> C, trace = smce(np.c_[np.cos(angles), np.sin(angles)], n_neighbors=11)
    >>> C.toarray()[:, 1].round(3)[:4]
    array([0.5, 0. , 0.5, 0. ])
    """
    X = _check_points(X, n_neighbors)
    if reg <= 0:
        raise ValueError(f"reg must be positive, got {reg}: without it SMCE has no reason to be sparse.")
    tol = max(tol, 20 * float(np.finfo(X.dtype).eps))
    neighbours = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)

    def solve(start: int, stop: int) -> tuple[Array, Trace]:
        gram, distances = _direction_grams(X, neighbours[start:stop], start)
        shares = distances / distances.sum(axis=1, keepdims=True)
        solution, trace = _sparse_sum_to_one(gram, shares, reg, tol, max_iter)
        weights = np.abs(solution) / shares
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total > 0, total, 1), trace

    blocks = row_blocks(len(X), 3 * n_neighbors**2 * X.itemsize)
    weights, traces = zip(*map_blocks(solve, blocks), strict=True)
    return _columns_to_sparse(neighbours, np.concatenate(weights)), _worst_trace(list(traces))


def _direction_grams(X: Array, neighbours: Array, first: int) -> tuple[Array, Array]:
    """Gram matrices of the unit directions from points ``first, first + 1, ...`` to their neighbours.

    The distances come back relative to their mean and clipped at eps: a duplicate has a tiny positive distance and
    the zero direction, so it takes all the weight instead of turning it into 0/0.
    """
    n_points, n_neighbors = neighbours.shape
    gram = np.empty((n_points, n_neighbors, n_neighbors), X.dtype)
    distances = np.empty((n_points, n_neighbors), X.dtype)
    # The differences themselves, not G_jk − G_ji − G_ki + G_ii: close neighbours would cancel to noise.
    for start, stop in row_blocks(n_points, n_neighbors * X.shape[1] * X.itemsize):
        differences = X[neighbours[start:stop]] - X[first + start : first + stop, None]
        lengths = np.linalg.norm(differences, axis=2)
        mean = lengths.mean(axis=1, keepdims=True)
        mean[mean == 0] = 1
        relative = np.maximum(lengths / mean, np.finfo(X.dtype).eps)
        differences /= (relative * mean)[:, :, None]
        gram[start:stop], distances[start:stop] = differences @ differences.swapaxes(1, 2), relative
    return gram, distances


def _sparse_sum_to_one(gram: Array, shares: Array, reg: float, tol: float, max_iter: int) -> tuple[Array, Trace]:
    """Solve min ½cᵀGc + reg Σ q_j|c_j|, Σ c_j = 1 for a batch of (s, s) matrices G by ADMM.

    One copy of c obeys the sum exactly, the other is exactly sparse (and is returned); their difference is the primal
    residual. The multiplier times the penalty always lies in reg q ∂|c|; what the first copy then lacks to be
    stationary is the dual residual. Points leave the batch as they converge.
    """
    size = shares.shape[1]
    # Both data terms are free of scale, so one rule fits all: among 0.1, 1 and 10 (the authors' constant) the
    # best penalty was 0.1 to 1 at reg 1, 1 at reg 10, 1 to 10 at reg 100, on every data set tried.
    penalty = float(np.sqrt(reg / 10))
    inverse = np.linalg.inv(gram + penalty * np.eye(size, dtype=gram.dtype))
    row_sums = inverse.sum(axis=2)
    centre = row_sums / row_sums.sum(axis=1, keepdims=True)
    step = penalty * (inverse - centre[:, :, None] * row_sums[:, None, :])
    threshold, dual_scale = shares * (reg / penalty), np.linalg.norm(shares, axis=1) * reg

    result = np.zeros_like(shares)
    active = np.arange(len(shares))
    sparse, multiplier = np.zeros_like(shares), np.zeros_like(shares)
    primal_history, dual_history = [], []
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        feasible = (step @ (sparse - multiplier)[:, :, None])[:, :, 0] + centre
        relaxed = RELAXATION * feasible + (1 - RELAXATION) * sparse
        previous, shifted = sparse, relaxed + multiplier
        sparse = np.copysign(np.maximum(np.abs(shifted) - threshold, 0), shifted)
        multiplier = shifted - sparse
        if n_iter % CHECK_EVERY and n_iter < max_iter:
            continue
        primal = np.linalg.norm(feasible - sparse, axis=1) / np.linalg.norm(feasible, axis=1)
        dual = penalty * np.linalg.norm(sparse - previous + feasible - relaxed, axis=1) / dual_scale
        primal_history.append(float(primal.max()))
        dual_history.append(float(dual.max()))
        open_ = (primal > tol) | (dual > tol)
        result[active] = sparse
        if open_.all():
            continue
        active, sparse, multiplier = active[open_], sparse[open_], multiplier[open_]
        step, centre, threshold, dual_scale = step[open_], centre[open_], threshold[open_], dual_scale[open_]
    return result, Trace(not len(active), n_iter, primal_history, dual_history)


def _worst_trace(traces: list[Trace]) -> Trace:
    """One record for several batches: the worst residual of those still running at each check."""
    primal = [max(check) for check in zip_longest(*(trace.primal for trace in traces), fillvalue=0.0)]
    dual = [max(check) for check in zip_longest(*(trace.dual for trace in traces), fillvalue=0.0)]
    return Trace(all(t.converged for t in traces), max(t.n_iter for t in traces), primal, dual)


def lsa(X: Array, *, subspace_dim: int = 4, n_neighbors: int = 6, rank: int | None = None) -> Array:
    r"""Local subspace affinity: compare the subspaces spanned around two points.

    Points are projected on the `rank` leading singular vectors (without the singular values) and scaled to unit
    length; point i and the `n_neighbors` points at the smallest angles (signs ignored) span a subspace with basis B_i
    of dimension d_i; with the principal angles θ_h between two of them

    .. math:: W_{ij} = \exp\Big(-\sum_{h=1}^{\min(d_i, d_j)} \sin^2\theta_h\Big)
              = \exp\big(\|B_i^\top B_j\|_F^2 - \min(d_i, d_j)\big), \qquad W_{ii} = 0.

    Parameters
    ----------
    X : (n, m) array, points as rows
    subspace_dim : int
        Dimension of the local subspaces; lowered to ``rank - 1``, as in the authors' program (a subspace that fills
        the space tells nothing), and point by point to the rank of the neighbourhood.
    n_neighbors : int
        Neighbours that span a local subspace together with the point.
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
    X = _check_points(X, n_neighbors)
    if subspace_dim < 1:
        raise ValueError(f"subspace_dim must be at least 1, got {subspace_dim}.")
    points = normalize(_whiten(X, rank, subspace_dim))
    # Local subspaces do not see the sign of a point, so neither does the choice of neighbours.
    neighbours, _ = _strongest_cosines(points, n_neighbors)
    bases, dims = _local_bases(points, neighbours, min(subspace_dim, max(1, points.shape[1] - 1)))

    def rows(start: int, stop: int) -> Array:
        cosines = np.matmul(bases[:, None, start:stop], bases[None, :, start:].swapaxes(2, 3))
        overlap = np.square(cosines, out=cosines).sum(axis=(0, 1))
        smaller_dim = np.minimum(dims[start:stop, None], dims[start:])
        # Rounding can lift the overlap of equal subspaces above their dimension.
        return np.exp(np.minimum(overlap - smaller_dim, 0)) * (smaller_dim > 0)

    return _symmetric(rows, len(X), X.dtype, arrays_per_row=len(bases) ** 2)


def _whiten(X: Array, rank: int | None, subspace_dim: int) -> Array:
    """Coordinates of the points on the leading singular directions, each direction scaled to norm one."""
    _, singular, directions = svd(X, full_matrices=False)
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
    """Orthonormal bases of what each point and its neighbours span, shape (dim, n, r), and their dimensions.

    Directions beyond the rank of a neighbourhood are arbitrary; they are set to zero and not counted.
    """
    n_points, rank = points.shape
    members = np.column_stack([np.arange(n_points), neighbours])
    dim = min(dim, members.shape[1])
    bases, dims = np.zeros((dim, n_points, rank), points.dtype), np.zeros(n_points, points.dtype)
    nonzero, negligible = np.count_nonzero(points, axis=1) > 0, np.finfo(points.dtype).eps ** 0.5

    def fill(start: int, stop: int) -> None:
        _, singular, directions = np.linalg.svd(points[members[start:stop]], full_matrices=False)
        kept = (singular[:, :dim] > negligible * singular[:, :1]) & nonzero[start:stop, None]
        bases[: kept.shape[1], start:stop] = (directions[:, :dim] * kept[:, :, None]).swapaxes(0, 1)
        dims[start:stop] = kept.sum(axis=1)

    map_blocks(fill, row_blocks(n_points, 2 * members.shape[1] * rank * points.itemsize))
    return bases, dims


def tsc(X: Array, *, n_neighbors: int) -> Sparse:
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
    coefficients : (n, n) csc_array
        The published graph is C + Cᵀ. A zero row of X has no angle to anything: its row and column are empty.

    References
    ----------
    Heckel & Bölcskei, "Robust subspace clustering via thresholding", IEEE Trans. Inf. Theory 2015.

    Examples
    --------
    >>> import numpy as np
    >>> tsc(np.array([[1.0, 0], [-2, 0], [0, 1], [0.1, 3]]), n_neighbors=1).toarray().round(3)
    array([[0.   , 1.   , 0.   , 0.   ],
           [1.   , 0.   , 0.   , 0.   ],
           [0.   , 0.   , 0.   , 0.936],
           [0.   , 0.   , 0.936, 0.   ]])
    """
    X = _check_points(X, n_neighbors)
    points: Array = normalize(X)  # zero rows stay zero
    neighbours, cosines = _strongest_cosines(points, n_neighbors)
    weights = np.exp(-2 * np.arccos(np.minimum(cosines, 1)))
    nonzero = np.count_nonzero(points, axis=1) > 0
    return _columns_to_sparse(neighbours, weights * (nonzero[:, None] & nonzero[neighbours]))


def heat_kernel_graph(X: Array, *, bandwidth: float | None = None, n_neighbors: int | None = None) -> Sparse:
    r"""Affinity of plain spectral clustering (SC), eq. (2.0) of the KTRR paper, with a zero diagonal.

    .. math:: W_{ij} = \exp(-\|x_i - x_j\|^2 / (2\sigma^2)), \qquad W_{ii} = 0.

    Parameters
    ----------
    X : (n, m) array, points as rows
    bandwidth : float or None
        σ. None takes σ² = half the mean squared distance over all pairs, an untuned choice: on COIL20 a tenth
        of the mean distance is about 15 points more accurate.
    n_neighbors : int or None
        None keeps the full graph, as in the paper; a number keeps the pairs in which one point is among that
        many nearest of the other.

    Returns
    -------
    affinity : (n, n) array, dense; csc_array with `n_neighbors`
        Symmetric, entries in [0, 1].

    References
    ----------
    Ng, Jordan & Weiss, "On spectral clustering: analysis and an algorithm", NeurIPS 2002.

    Examples
    --------
    >>> import numpy as np
    >>> heat_kernel_graph(np.array([[0.0], [1.0], [3.0]]), bandwidth=1.0).round(3)
    array([[0.   , 0.607, 0.011],
           [0.607, 0.   , 0.135],
           [0.011, 0.135, 0.   ]])
    """
    X = _check_points(X, n_neighbors)
    if bandwidth is not None and bandwidth <= 0:
        raise ValueError(f"bandwidth must be positive or None, got {bandwidth}.")
    X = X - X.mean(axis=0)  # distances by expansion lose the digits that a common offset takes
    # Half the mean squared distance of all pairs is the total variance, which needs no pairs.
    variance = float(X.var(axis=0, dtype=np.float64).sum()) if bandwidth is None else bandwidth**2
    scale = -0.5 / variance if variance > 0 else 0.0  # all points equal: all distances are zero
    if n_neighbors is not None:
        distances, neighbours = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
        directed = _columns_to_sparse(neighbours, np.exp(scale * distances**2).astype(X.dtype))
        return csc_array(directed.maximum(directed.T))

    def rows(start: int, stop: int) -> Array:
        return np.exp(scale * euclidean_distances(X[start:stop], X[start:], squared=True))

    return _symmetric(rows, len(X), X.dtype)


def _check_points(X: Array, n_neighbors: int | None) -> Array:
    """X as floats, float32 kept; refuse a number of neighbours the points cannot give."""
    points: Array = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    largest = len(points) - 1  # a point is never its own neighbour
    if n_neighbors is not None and not 1 <= n_neighbors <= largest:
        raise ValueError(f"n_neighbors must be from 1 to n_points - 1 = {largest}, got {n_neighbors}.")
    return points


def _strongest_cosines(points: Array, n_neighbors: int) -> tuple[Array, Array]:
    """Indices (ascending) and values of the largest absolute cosines of each unit row with the others."""
    n_points = len(points)
    first_kept = n_points - n_neighbors

    def search(start: int, stop: int) -> tuple[Array, Array]:
        cosines = np.abs(points[start:stop] @ points.T)
        cosines[np.arange(stop - start), np.arange(start, stop)] = -1  # not its own neighbour
        best = np.sort(np.argpartition(cosines, first_kept, axis=1)[:, first_kept:], axis=1)
        return best, np.take_along_axis(cosines, best, axis=1)

    # Larger blocks than for elementwise work: each one streams all points through a matrix product.
    blocks = row_blocks(n_points, n_points * points.itemsize, 8 * BLOCK_BYTES)
    indices, values = zip(*map_blocks(search, blocks), strict=True)
    return np.concatenate(indices), np.concatenate(values)


def _symmetric(rows: Rows, n_points: int, dtype: np.dtype[Any], arrays_per_row: int = 1) -> Array:
    """Symmetric matrix with zero diagonal from ``rows(start, stop)``, its part ``[start:stop, start:]``."""
    matrix = np.empty((n_points, n_points), dtype)

    def fill(start: int, stop: int) -> None:
        block, square = rows(start, stop), slice(0, stop - start)
        # A matrix product need not round (i, j) and (j, i) alike.
        block[:, square] = (block[:, square] + block[:, square].T) / 2
        matrix[start:stop, start:] = block
        matrix[start:, start:stop] = block.T

    map_blocks(fill, row_blocks(n_points, arrays_per_row * n_points * dtype.itemsize, 4 * BLOCK_BYTES))
    np.fill_diagonal(matrix, 0)
    return matrix


def _columns_to_sparse(indices: Array, values: Array) -> Sparse:
    """Square sparse matrix whose column i holds ``values[i]`` at the rows ``indices[i]``; zeros dropped."""
    n_points, per_column = indices.shape
    indptr = np.arange(0, n_points * per_column + 1, per_column)
    matrix = csc_array((values.ravel(), indices.ravel(), indptr), shape=(n_points, n_points))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
