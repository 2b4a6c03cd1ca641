"""Block diagonal representation: coefficients drawn towards a graph with as many components as clusters.

With the samples as columns of the paper's X (rows of ours, so that its XᵀX is K = XXᵀ here) the problem is

    min over Z, B   ½‖X − XZ‖² + ½λ‖Z − B‖² + γ‖B‖_[k]     subject to diag(B) = 0, B ≥ 0, B = Bᵀ

where ‖B‖_[k], the sum of the k smallest eigenvalues of the Laplacian L = Diag(B1) − B, is zero exactly if the graph of
B has k components or more. It is the minimum of ⟨L, W⟩ over 0 ≤ W ≤ I, tr W = k. Given two of Z, B and W, the third has
a closed form; they are found in turn, so the objective never rises:

    Z = (K + λI)⁻¹(K + λB) = I − P(I − B),  P = λ(K + λI)⁻¹ once and for all
    B = positive part of (A + Aᵀ)/2, zero diagonal,  A = Z − γ/λ (diag(W)1ᵀ − W)
    W = UUᵀ, U the eigenvectors of L's k smallest eigenvalues

The problem is not convex, so the start matters: all three are zero, as in the authors' program. If more eigenvalues
tie than are wanted, as with more than k components, any k of their eigenvectors would do and rounding would choose.
Then W shares the rest of its trace among all of them, which is as good and the same in any order of the samples.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.linalg import cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from subspaces.representation._nuclear import check_arguments, scaled_copy, squared_norm
from subspaces.representation.coefficients import Coefficients, Trace, from_dense
from subspaces.utils.decompositions import cholesky, eigh, largest_eigenpairs
from subspaces.utils.ordering import tolerance
from subspaces.utils.process import one_thread, warn_caller
from subspaces.utils.types import Array

VARIANTS = ("Z", "B")
_SMALL = 500  # samples up to which several BLAS threads wait for each other longer than they work: 3 to 6 times slower


def block_diagonal(
    X: Array,
    *,
    n_blocks: int,
    reg: float = 0.3,
    block_weight: float = 0.02,
    variant: Literal["Z", "B"] = "Z",
    tol: float = 1e-3,
    max_iter: int = 1000,
) -> Coefficients:
    """Block diagonal representation (BDR): minimise ½‖X − XZ‖² + ½λ‖Z − B‖² + γ‖B‖_[k], B a graph without loops.

    Parameters
    ----------
    X : array of shape (n, m), samples as rows
    n_blocks : k, the number of clusters
    reg : float
        λ divided by ‖X‖²/k, the squared length of an average cluster's samples together. The eigenvalues of K, to
        which λ is added, grow with the size of a cluster, so this means the same for any n and any unit.
    block_weight : float
        γ/λ. Entries of Z and of W both go with one over the size of a cluster, so this means the same for any n too.
    variant : {"Z", "B"}
        Which of the two matrices to return.
    tol : float
        Largest change of both in the last step, relative to the largest entry of Z. (In the authors' program it is
        an absolute 0.001: with many samples the entries are smaller than that.) Steps get short long before the
        minimum, so this is a choice of where to stop, as in the paper, and not of accuracy.
    max_iter : int
        Steps before giving up with a ``ConvergenceWarning``.

    Returns
    -------
    Coefficients
        Z, dense, its diagonal not zero; or B, symmetric, nonnegative, with zero diagonal. The trace holds the last
        change of Z (``primal``) and of B (``dual``), and the objective.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> np.argwhere(block_diagonal(X, n_blocks=2, variant="B").dense()).tolist()
    [[0, 1], [1, 0], [2, 3], [3, 2]]
    """
    check_arguments(reg, tol, max_iter)
    if not block_weight > 0:
        raise ValueError(f"block_weight must be positive, got {block_weight}")
    if n_blocks < 1:
        raise ValueError(f"n_blocks must be at least 1, got {n_blocks}")
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {list(VARIANTS)}, got {variant!r}")
    points, scale = scaled_copy(check_array(X, dtype=[np.float64, np.float32], input_name="X"))
    present: Array = np.flatnonzero(points.any(axis=1))
    if 0 < len(present) < len(points):  # nothing represents the origin, and as a component it would count as a cluster
        points = points[present]
    k = min(int(n_blocks), len(points))
    K = points @ points.T
    lam = reg * (float(np.trace(K, dtype=np.float64)) / k or 1.0)
    K.flat[:: len(K) + 1] += lam
    P = cho_solve((cholesky(K)[0], True), np.diag(np.full(len(K), lam, dtype=K.dtype)), overwrite_b=True)
    with one_thread("blas") if len(P) <= _SMALL else nullcontext():
        Z, B, trace = _solve(P, k, lam, block_weight, tol, max_iter)
    unit = scale * scale
    trace = replace(trace, objective=[unit * value for value in trace.objective])
    C = Z if variant == "Z" else B
    if len(C) < len(X):
        C = np.zeros((len(X), len(X)), dtype=C.dtype)
        C[np.ix_(present, present)] = Z if variant == "Z" else B
    return replace(from_dense(C, trace), penalty=unit * lam)


def _solve(P: Array, k: int, lam: float, weight: float, tol: float, max_iter: int) -> tuple[Array, Array, Trace]:
    """Update Z, B and W in turn until they stay; few n × n arrays live at once."""
    n = len(P)
    Z, B, W = (np.zeros_like(P) for _ in range(3))
    changes_Z, changes_B, objectives = [], [], []
    for _ in range(max_iter):
        error = P @ B
        np.subtract(P, error, out=error)  # I − Z
        new = -error
        new.flat[:: n + 1] += 1
        # K(I − Z) = λ(Z − B): the data term needs neither K nor X
        fit = float(np.vdot(new, error) - np.vdot(B, error))
        del error
        change_Z, Z = _change(Z, new), new
        new = _graph(Z, W, weight)
        change_B, B = _change(B, new), new
        W, value = _projection(B, k)
        objectives.append(lam * (fit / 2 + squared_norm(Z - B) / 2 + weight * value))
        largest = float(np.abs(Z).max()) or 1.0
        changes_Z.append(change_Z / largest)
        changes_B.append(change_B / largest)
        if max(changes_Z[-1], changes_B[-1]) <= tol:
            return Z, B, Trace(True, len(objectives), changes_Z, changes_B, objectives)
    warn_caller(
        f"BDR has not converged after max_iter={max_iter} steps: the last one changed coefficients by "
        f"{max(changes_Z[-1], changes_B[-1]):.2g} of the largest, tol={tol:.2g}. Raise max_iter or tol.",
        ConvergenceWarning,
    )
    return Z, B, Trace(False, max_iter, changes_Z, changes_B, objectives)


def _change(before: Array, after: Array) -> float:
    """Return the largest difference; `before` is overwritten."""
    before -= after
    return float(np.abs(before, out=before).max())


def _graph(Z: Array, W: Array, weight: float) -> Array:
    """Return the best B for Z and W: Z minus the price γ/λ (½W_ii + ½W_jj − W_ij) of every edge (i, j)."""
    B = Z + Z.T
    B /= 2
    share = W.diagonal() * (weight / 2)
    B -= np.add.outer(share, share)  # both at once: one after the other would round differently in (i, j) and (j, i)
    B += weight * W
    np.maximum(B, 0, out=B)
    np.fill_diagonal(B, 0)
    return B


def _projection(B: Array, k: int) -> tuple[Array, float]:
    """Return W for the Laplacian L of B, and the sum ‖B‖_[k] of its k smallest eigenvalues."""
    n, degrees = len(B), B.sum(axis=1)
    A = B.copy()
    A.flat[:: n + 1] -= degrees  # −L, whose largest eigenvalues are wanted
    width = tolerance(B.dtype) * float(degrees.max())
    values, vectors = largest_eigenpairs(A, min(k + 1, n))
    if k < n and values[k - 1] - values[k] <= width:  # a tie: all that take part in it are needed
        values, vectors = (part[..., ::-1] for part in eigh(A))
    tied = np.abs(values - values[k - 1]) <= width
    shares = (np.arange(len(values)) < k).astype(B.dtype)
    shares[tied] = shares[tied].mean()
    kept = shares > 0
    U = vectors[:, kept] * np.sqrt(shares[kept])
    return U @ U.T, max(-float(values[:k].sum()), 0.0)
