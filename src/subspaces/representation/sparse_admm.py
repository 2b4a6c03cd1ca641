"""X → C as the authors' program of SSC does it: their iterations, stopped where they stop.

The program alternates (ADMM) between Z, a ridge problem, and C, soft thresholding, with multipliers Λ for Z = C and,
for affine subspaces, δ for 1ᵀZ = 1ᵀ. It sets the diagonal of Z to zero after the ridge problem instead of in it, and it
stops as soon as Z and C agree to 2·10⁻⁴, a few per cent above the minimum of what
:func:`subspaces.representation.sparse.ssc` solves. There columns have six or seven entries on tracks of moving objects,
here sixty to a hundred and seventy. The small ones hold the graph of a motion together, and published figures rest on
them.
"""

from __future__ import annotations

import numpy as np

from subspaces.representation.coefficients import Coefficients, Trace, from_dense
from subspaces.representation.sparse import data_weight
from subspaces.utils.decompositions import eigh
from subspaces.utils.types import Array

SQUARES = 7
"""Arrays of n × n numbers that exist at once."""


def ssc_admm(
    X: Array, *, error_weight: float = 20.0, affine: bool = False, tol: float = 2e-4, max_iter: int = 200
) -> Coefficients:
    """Coefficients of SSC by the authors' iterations.

    Parameters
    ----------
    X : array of shape (n, m)
    error_weight : λ = error_weight/μ as in :func:`subspaces.representation.sparse.ssc`, and ρ of the multipliers
    affine : ask for columns that sum to one
    tol : largest difference between Z and C, and between the sums and one, at which to stop
    max_iter : steps after which to stop in any case

    References
    ----------
    Elhamifar, Vidal: Sparse subspace clustering, TPAMI 35 (2013) 2765-2781, and their program.

    Notes
    -----
    With A = [√λ X, √ρ 1] the ridge problem is (AAᵀ + ρI)Z = AAᵀ + ρC − Λ − 1δᵀ. By Woodbury, with
    H = A(AᵀA + ρI)^(−1/2), Z = P + H(Hᵀ − HᵀP), P = C − (Λ + 1δᵀ)/ρ: O(n² m) a step.
    """
    n = len(X)
    if affine and n < 2:
        raise ValueError(f"affine=True needs at least two points, got {n}: a column must sum to one.")
    weight = data_weight(X @ X.T, error_weight)
    A = np.sqrt(X.dtype.type(weight)) * X
    if affine:
        A = np.column_stack([A, np.full(n, np.sqrt(error_weight), dtype=X.dtype)])
    values, vectors = eigh((A.T @ A).astype(np.float64))
    H = A @ (vectors / np.sqrt(np.maximum(values, 0) + error_weight)).astype(X.dtype)
    C, scaled, sums = np.zeros((n, n), X.dtype), np.zeros((n, n), X.dtype), np.zeros(n, X.dtype)
    differences: list[float] = []
    while len(differences) < max_iter and (not differences or differences[-1] > tol):
        Z = C - scaled
        Z -= sums
        Z += H @ (H.T - H.T @ Z)
        np.fill_diagonal(Z, 0)
        scaled += Z  # Λ/ρ, of which C is taken away once it is known
        C = np.sign(scaled) * np.maximum(np.abs(scaled) - X.dtype.type(1 / error_weight), 0)
        scaled -= C
        missing = Z.sum(axis=0) - 1 if affine else sums
        sums = sums + missing if affine else sums  # δ/ρ
        Z -= C
        differences.append(max(float(Z.max()), -float(Z.min()), float(np.abs(missing).max()) if affine else 0.0))
    return from_dense(C, Trace(differences[-1] <= tol, len(differences), differences))
