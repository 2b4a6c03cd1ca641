"""K → C by ridge regression: KTRR, TRR, LSR1 and LSR2, one closed form, one Cholesky inverse.

Every point is represented by all others, min ½‖φ(x_i) − φ(X)c‖² + ½λ‖c‖² with c_i = 0 (eq. 3.20). With
U = (K + λI)⁻¹ the printed solution (eq. 3.9) collapses, because UK = I − λU, to

    C = I − U diag(U)⁻¹,   that is   c_ji = −U_ji / U_ii,  c_ii = 0:

no product with K, no second n × n array.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import eigh, get_lapack_funcs
from scipy.sparse.linalg import eigsh

from subspaces._blocks import mirror_lower
from subspaces._typing import Array, Data
from subspaces.representation._result import Coefficients


class IndefiniteKernelWarning(UserWarning):
    """The kernel matrix has negative eigenvalues; λ was raised by the most negative one."""


def ridge(K: Array, reg: float = 1.0, *, overwrite: bool = False) -> Coefficients:
    """Coefficients of the closed form (eq. 3.9) from a Gram matrix.

    Parameters
    ----------
    K : array of shape (n, n), symmetric
    reg : λ divided by the mean diagonal entry of K, so that it means the same for every kernel
    overwrite : let the inverse take K's memory (the whole computation then needs one n × n array)

    Returns
    -------
    Coefficients
        Blocks are read off U; C itself is never stored.

    Notes
    -----
    A kernel with negative eigenvalues is no inner product and K + λI may not be positive definite. Then λ is
    raised by the size of the most negative eigenvalue (the "spectrum shift": distances between points keep
    their order) and :class:`IndefiniteKernelWarning` says by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.representation.ridge import ridge
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> C = ridge(X @ X.T, reg=0.01).columns(0, 4).T
    >>> np.abs(C).round(2)
    array([[0.  , 1.93, 0.  , 0.  ],
           [0.5 , 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 2.89],
           [0.  , 0.  , 0.33, 0.  ]])
    """
    return from_inverse(*inverse(K, reg, overwrite=overwrite))


def inverse(K: Array, reg: float = 1.0, *, overwrite: bool = False) -> tuple[Array, float]:
    """U = (K + λI)⁻¹ and λ, which is larger than `reg` asks for where K is indefinite (:func:`ridge`)."""
    K = np.array(K, dtype=np.result_type(K, np.float32), copy=not overwrite or None, order="C")
    return _invert(K, penalty(K.diagonal(), reg))


def from_inverse(U: Array, lam: float) -> Coefficients:
    """Coefficients C = I − U diag(U)⁻¹ read off U, whose diagonal is overwritten."""
    scale = -1 / U.diagonal()
    np.fill_diagonal(U, 0)  # c_ii = 0, once for all blocks

    def columns(start: int, stop: int) -> Array:
        block: Array = U[start:stop] * scale[start:stop, None]
        return block

    def rows(start: int, stop: int) -> Array:
        block: Array = U[start:stop] * scale
        return block

    def core(start: int, stop: int) -> Array:
        return U[start:stop]

    return Coefficients(U.shape[0], U.dtype, columns, rows, penalty=lam, core=core)


def ridge_unconstrained(K: Array, reg: float = 1.0, *, overwrite: bool = False) -> Coefficients:
    """Ridge coefficients without c_ii = 0 (LSR2): Z = (K + λI)⁻¹K = I − λU, symmetric with eigenvalues in [0, 1)."""
    K = np.array(K, dtype=np.result_type(K, np.float32), copy=not overwrite or None, order="C")
    U, lam = _invert(K, penalty(K.diagonal(), reg))

    def columns(start: int, stop: int) -> Array:
        block = U[start:stop] * U.dtype.type(-lam)
        block[np.arange(stop - start), np.arange(start, stop)] += 1
        return block

    return Coefficients(U.shape[0], U.dtype, columns, columns, penalty=lam)


def ridge_low_rank(Z: Data, reg: float = 1.0) -> Coefficients:
    """The coefficients of :func:`ridge` for K = Z Zᵀ with fewer features r than points n: no n × n array exists.

    By Woodbury, λU = I − HHᵀ with H = Z (ZᵀZ + λI)^(−1/2), hence c_ji = h_jᵀh_i / (1 − ‖h_i‖²). Costs O(nr²) and,
    for each block of columns asked for, one product with H.
    """
    H, lam = whitened(Z, reg)
    # 1 − ‖h‖² is the share of a point that the others cannot explain; rounding must not make it zero
    unexplained = np.maximum(1 - np.einsum("ij,ij->i", H, H), np.finfo(H.dtype).eps)

    def core(start: int, stop: int) -> Array:
        block: Array = H[start:stop] @ H.T
        block[np.arange(stop - start), np.arange(start, stop)] = 0
        return block

    def columns(start: int, stop: int) -> Array:
        return core(start, stop) / unexplained[start:stop, None]

    def rows(start: int, stop: int) -> Array:
        return core(start, stop) / unexplained

    return Coefficients(H.shape[0], H.dtype, columns, rows, penalty=lam, core=core)


def ridge_unconstrained_low_rank(Z: Data, reg: float = 1.0) -> Coefficients:
    """The coefficients of :func:`ridge_unconstrained` for K = Z Zᵀ: HHᵀ, block by block."""
    H, lam = whitened(Z, reg)

    def columns(start: int, stop: int) -> Array:
        product: Array = H[start:stop] @ H.T
        return product

    return Coefficients(H.shape[0], H.dtype, columns, columns, penalty=lam)


def whitened(Z: Data, reg: float) -> tuple[Array, float]:
    """H = Z (ZᵀZ + λI)^(−1/2) up to a rotation, which no product HHᵀ sees, and λ."""
    is_sparse = hasattr(Z, "toarray")
    squared_norms = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if is_sparse else np.einsum("ij,ij->i", Z, Z)
    lam = penalty(squared_norms, reg)
    inner = (Z.T @ Z).toarray() if is_sparse else Z.T @ Z
    eigenvalues, vectors = eigh(inner.astype(np.float64, copy=False))  # r × r: accuracy is cheap here
    scale = 1 / np.sqrt(np.maximum(eigenvalues, 0) + lam)
    return np.ascontiguousarray(Z @ (vectors * scale).astype(Z.dtype)), lam


def penalty(diagonal: Array, reg: float) -> float:
    """λ = reg × mean diagonal of K. A zero kernel (all points at the origin) gets λ = reg."""
    scale = float(np.mean(diagonal, dtype=np.float64))
    return reg * scale if scale > 0 else reg


def _invert(K: Array, lam: float) -> tuple[Array, float]:
    """(K + λI)⁻¹ in the memory of K, and the λ that made it possible."""
    n = K.shape[0]
    original = K.diagonal().copy()
    K.flat[:: n + 1] += lam
    potrf, potri = get_lapack_funcs(("potrf", "potri"), (K,))
    # K.T is K's memory in Fortran's order; only its upper triangle (lower here) is touched, so that a failed
    # attempt can be undone from the other half
    _, info = potrf(K.T, lower=0, clean=0, overwrite_a=1)
    if info > 0:
        _restore(K, original)
        lam = _raised_penalty(K, lam)
        K.flat[:: n + 1] += lam
        _, info = potrf(K.T, lower=0, clean=0, overwrite_a=1)
    if info == 0:
        _warn_if_ill_conditioned(K.diagonal())
        _, info = potri(K.T, lower=0, overwrite_c=1)
    if info != 0 or not np.isfinite(K.diagonal()).all():
        raise ValueError(
            f"K + λI (λ = {lam:.3g}) cannot be inverted in {K.dtype}: increase reg, or check the kernel's values."
        )
    mirror_lower(K)
    return K, lam


def _raised_penalty(K: Array, lam: float) -> float:
    """λ plus the most negative eigenvalue's size, with a margin for rounding."""
    smallest = _smallest_eigenvalue(K)
    rounding = 10 * np.finfo(K.dtype).eps * K.shape[0] * float(np.abs(K.diagonal()).mean())
    raised = lam + max(-smallest, 0.0) * 1.001 + rounding
    warnings.warn(
        f"K + λI is not positive definite: the smallest eigenvalue of K is about {smallest:.3g} and λ = {lam:.3g}. "
        f"λ is raised to {raised:.3g}. Use a positive definite kernel or a larger reg to avoid this.",
        IndefiniteKernelWarning,
        stacklevel=4,
    )
    return raised


def _smallest_eigenvalue(K: Array) -> float:
    if K.shape[0] < 100:
        return float(eigh(K, eigvals_only=True, subset_by_index=[0, 0])[0])
    start = np.random.default_rng(0).standard_normal((K.shape[0],)).astype(K.dtype)
    values = eigsh(K, k=1, which="SA", v0=start, ncv=40, tol=1e-3, return_eigenvectors=False)
    # a Ritz value lies above the eigenvalue: allow for its tolerance
    return float(values[0]) - 1e-3 * abs(float(values[0]))


def _restore(K: Array, diagonal: Array) -> None:
    """Undo a failed factorisation: its half comes back from the untouched one."""
    mirror_lower(K.T)
    np.fill_diagonal(K, diagonal)


def _warn_if_ill_conditioned(factor_diagonal: Array) -> None:
    """Warn when the Cholesky factor alone proves that no digit of the inverse can be trusted."""
    condition = float(factor_diagonal.max() / factor_diagonal.min()) ** 2
    if condition > 0.1 / np.finfo(factor_diagonal.dtype).eps:
        warnings.warn(
            f"K + λI has a condition number of at least {condition:.1g}: in {factor_diagonal.dtype} its inverse may "
            "have no correct digit. Increase reg or use float64.",
            UserWarning,
            stacklevel=4,
        )
