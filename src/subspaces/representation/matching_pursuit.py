"""Orthogonal matching pursuit: a code of at most η atoms for every sample, chosen greedily among the others.

"Scalable Sparse Subspace Clustering by Orthogonal Matching Pursuit" (You, Robinson and Vidal, CVPR 2016) adds, step by
step, the atom most correlated with the residual of the sample, and projects the sample anew on all chosen atoms. All
samples of a batch take their steps together, so that the correlations of a step are one matrix product.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from subspaces.representation.coefficients import Coefficients, Trace, from_sparse
from subspaces.representation.elastic_net import batches, check_rows
from subspaces.utils.blocks import map_blocks
from subspaces.utils.decompositions import solve_systems
from subspaces.utils.ordering import first_largest
from subspaces.utils.process import one_thread
from subspaces.utils.types import Array, Sparse


def orthogonal_matching_pursuit(X: Array, *, n_nonzero: int = 10, tol: float = 1e-6) -> Coefficients:
    r"""Compute coefficients of every sample over at most `n_nonzero` others, chosen by orthogonal matching pursuit.

    Greedy approximation of :math:`\min \|x_i - \sum_j c_{ji} x_j\|_2` subject to :math:`\|c_i\|_0 \le \eta`
    and :math:`c_{ii} = 0`.

    Parameters
    ----------
    X : array of shape (n, m)
        Samples as rows, usually of unit length: longer ones are chosen more readily.
    n_nonzero : int, default=10
        Largest number η of atoms per sample; about the dimension of the subspaces.
    tol : float, default=1e-6
        A sample is done when its residual is at most `tol` times its length, or ten times the machine precision.

    Returns
    -------
    Coefficients
        Sparse, with zero diagonal; the column of a sample that is zero or orthogonal to all others is zero. In the
        trace ``primal`` is the largest relative residual over all samples after each step. The pursuit always ends, so
        ``converged`` is true.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -2.0]])
    >>> orthogonal_matching_pursuit(X, n_nonzero=2).dense().round(2)
    array([[ 0.  ,  0.8 , -1.33,  0.  ,  0.  ],
           [ 1.25,  0.  ,  1.67,  0.  ,  0.  ],
           [-0.75,  0.6 ,  0.  ,  0.  ,  0.  ],
           [ 0.  ,  0.  ,  0.  ,  0.  , -2.  ],
           [ 0.  ,  0.  ,  0.  , -0.5 ,  0.  ]])
    """
    check_rows(X)
    if n_nonzero < 1:
        raise ValueError(f"n_nonzero must be at least 1, got {n_nonzero}. Try the dimension of the subspaces.")
    n_samples, n_features = X.shape
    n_steps = min(n_nonzero, n_samples - 1, n_features)
    # A common factor does not change the code; with entries up to one no product overflows.
    atoms = X / (np.abs(X).max(initial=0) or 1)
    with one_thread("blas"):  # the threads are those of the batches
        parts = map_blocks(
            lambda start, stop: _pursue(atoms, start, stop, n_steps, tol), batches(n_samples, atoms.itemsize)
        )
    residuals = np.max([residuals for _, residuals in parts], axis=0)
    rows = sparse.vstack([codes for codes, _ in parts], format="csr")
    return from_sparse(rows.T, Trace(converged=True, n_iter=n_steps, primal=residuals.tolist()))


def _pursue(atoms: Array, start: int, stop: int, n_steps: int, tol: float) -> tuple[Sparse, Array]:
    """Return codes of the samples ``start:stop`` as sparse rows, and the largest relative residual after each step.

    The atoms chosen for a sample are A = R Q with orthonormal rows in Q and a lower triangular R, so a step costs one
    projection; in the end the code solves Rᵀ c = Q x.
    """
    residuals = atoms[start:stop].copy()
    lengths = _norms(residuals)
    relative = np.sign(lengths)
    Q = np.zeros((stop - start, n_steps, atoms.shape[1]), dtype=atoms.dtype)
    R = np.zeros((stop - start, n_steps, n_steps), dtype=atoms.dtype)
    R[:, np.arange(n_steps), np.arange(n_steps)] = 1
    projections = np.zeros((stop - start, n_steps), dtype=atoms.dtype)
    chosen = np.full((stop - start, n_steps), -1, dtype=np.int32)
    largest = np.zeros(n_steps)
    rounding = 10 * np.finfo(atoms.dtype).eps
    live = np.arange(stop - start)
    for step in range(n_steps):
        live = live[relative[live] > max(tol, rounding)]
        best, strength = _most_correlated(atoms, residuals[live], start + live, chosen[live, :step])
        overlap, rest = _orthogonalised(atoms[best], Q[live, :step])
        height = _norms(rest)
        # The residual may be orthogonal to all atoms; those in the span of the chosen ones always are.
        noise = rounding * _norms(atoms[best])
        new = (height > noise) & (strength > noise * _norms(residuals[live]))
        live, best, rest, height = live[new], best[new], rest[new], height[new]
        chosen[live, step] = best
        Q[live, step] = rest / height[:, None]
        R[live, step, :step] = overlap[new]
        R[live, step, step] = height
        projections[live, step] = np.vecdot(Q[live, step], residuals[live])
        residuals[live] -= projections[live, step, None] * Q[live, step]
        relative[live] = _norms(residuals[live]) / lengths[live]
        largest[step] = relative.max()
    codes = solve_systems(R.transpose(0, 2, 1), projections[:, :, None])[:, :, 0]
    filled = chosen >= 0
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(filled, axis=1))]).astype(np.int32)
    rows = sparse.csr_array((codes[filled], chosen[filled], ends), shape=(stop - start, atoms.shape[0]))
    rows.sort_indices()
    return rows, largest


def _norms(vectors: Array) -> Array:
    """Return the length of each row."""
    return np.sqrt(np.vecdot(vectors, vectors))


def _most_correlated(atoms: Array, residuals: Array, own: Array, chosen: Array) -> tuple[Array, Array]:
    """Return the atom most correlated with each residual, except the sample itself and those chosen, and that value."""
    correlations = residuals @ atoms.T
    np.abs(correlations, out=correlations)
    correlations[np.arange(len(own)), own] = -1
    np.put_along_axis(correlations, chosen, -1, axis=1)
    best = first_largest(correlations, axis=1)
    return best, correlations[np.arange(len(own)), best]


def _orthogonalised(vectors: Array, Q: Array) -> tuple[Array, Array]:
    """Return the components of each vector along the rows of its Q, and the remainder.

    Gram-Schmidt is applied twice: once loses orthogonality when little is left, twice is enough.
    """
    first = (Q @ vectors[:, :, None])[:, :, 0]
    rest = vectors - (first[:, None, :] @ Q)[:, 0]
    second = (Q @ rest[:, :, None])[:, :, 0]
    return first + second, rest - (second[:, None, :] @ Q)[:, 0]
