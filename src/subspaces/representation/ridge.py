"""K → C by ridge regression: KTRR, TRR, LSR1 and LSR2, one closed form, one Cholesky inverse.

Every point is represented by all others, min ½‖φ(x_i) − φ(X)c‖² + ½λ‖c‖² with c_i = 0 (eq. 3.20). With
U = (K + λI)⁻¹ the printed solution (eq. 3.9) collapses, because UK = I − λU, to

    C = I − U diag(U)⁻¹,   that is   c_ji = −U_ji / U_ii,  c_ii = 0:

no product with K, and one half of an n × n array for K, then its factor, then U (:mod:`subspaces.utils.packed`).
With 1ᵀc = 1 as well (`affine`: subspaces need not contain the origin) U is replaced by V = U − U11ᵀU / (1ᵀU1). Only
differences of points count then, so K is taken about the mean of the points, JKJ with J = I − 11ᵀ/n, and λ is relative
to its mean diagonal: a shift of all points changes nothing.
"""

from __future__ import annotations

import numpy as np

from subspaces.representation.coefficients import Blocks, Coefficients, Draft
from subspaces.representation.inverse import above_rounding, inverse, low_rank_evidence, penalty
from subspaces.utils.decompositions import eigh
from subspaces.utils.packed import Packed
from subspaces.utils.types import Array, Data


def ridge(K: Array | Packed, *, reg: float = 1.0, affine: bool = False, overwrite: bool = False) -> Coefficients:
    """Coefficients of the closed form (eq. 3.9) from a Gram matrix.

    Parameters
    ----------
    K : array of shape (n, n), symmetric; or half of it, packed
    reg : λ divided by the mean diagonal entry of K, so that it means the same for every kernel
    affine : ask for columns that sum to one; λ is then divided by the mean diagonal entry of K about the mean point
    overwrite : let the inverse take K's memory (the whole computation then needs no other)

    Returns
    -------
    Coefficients
        Blocks are read off U; C itself is never stored.

    Notes
    -----
    A kernel with negative eigenvalues is no inner product and K + λI may not be positive definite. Then λ is
    raised by the size of the most negative eigenvalue (the "spectrum shift": distances between points keep
    their order) and :class:`~subspaces.representation.inverse.IndefiniteKernelWarning` says by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.representation.ridge import ridge
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> np.abs(ridge(X @ X.T, reg=0.01).dense()).round(2)
    array([[0.  , 1.93, 0.  , 0.  ],
           [0.5 , 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 2.89],
           [0.  , 0.  , 0.33, 0.  ]])
    """
    found = inverse(K, reg, affine, overwrite)
    U = found.U
    scale = -1 / U.diagonal()
    U.set_diagonal(0)  # c_ii = 0, once for all blocks
    return Coefficients(
        n_samples=U.n,
        dtype=U.dtype,
        columns=lambda start, stop: U.rows(start, stop) * scale[start:stop, None],
        rows=lambda start, stop: U.rows(start, stop) * scale,
        penalty=found.penalty,
        condition=found.condition,
        residual=found.residual,
        core=U.rows,
        of_core=lambda values, points: values * scale[points],
    )


def ridge_unconstrained(
    K: Array | Packed, *, reg: float = 1.0, affine: bool = False, overwrite: bool = False
) -> Coefficients:
    """Ridge coefficients without c_ii = 0 (LSR2): Z = (K + λI)⁻¹K = I − λU, with `affine` I − λV; eigenvalues ≤ 1."""
    found = inverse(K, reg, affine, overwrite)
    U = found.U

    def columns(start: int, stop: int) -> Array:
        block = U.rows(start, stop)
        block *= U.dtype.type(-found.lam)
        block[np.arange(stop - start), np.arange(start, stop)] += 1
        return block

    return Coefficients(
        U.n,
        U.dtype,
        columns,
        columns,
        penalty=found.penalty,
        condition=found.condition,
        residual=found.residual,
    )


def ridge_low_rank(Z: Data, *, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """The coefficients of :func:`ridge` for K = Z Zᵀ with fewer features r than points n: no n × n array exists.

    By Woodbury, λU = I − HHᵀ with H = Z (ZᵀZ + λI)^(−1/2), hence c_ji = h_jᵀh_i / (1 − ‖h_i‖²). Costs O(nr²) and,
    for each block of columns asked for, one product with H. With `affine` the rows of Z are taken about their mean and
    H gets one more column, 1/√n, by which λV = I − HHᵀ.
    """
    H, lam = whitened(Z, reg, affine)
    condition, residual = low_rank_evidence(Z, H, lam, affine)
    # 1 − ‖h‖² is the share of a point that the others cannot explain; rounding must not make it zero
    unexplained = np.maximum(1 - np.einsum("ij,ij->i", H, H), np.finfo(H.dtype).eps)
    core, draft = _hollow_products(H), None
    if H.dtype != np.float32:
        # a common factor, so that no product vanishes in single precision; no second array of H's size on the way
        largest = max(H.max(), -H.min()) or 1.0
        single = np.divide(H, largest, out=np.empty(H.shape, dtype=np.float32), casting="same_kind")
        draft = Draft(_hollow_products(single), lambda i, j: (H[i, None] @ H[j].transpose(0, 2, 1))[:, 0])
    return Coefficients(
        n_samples=H.shape[0],
        dtype=H.dtype,
        columns=lambda start, stop: core(start, stop) / unexplained[start:stop, None],
        rows=lambda start, stop: core(start, stop) / unexplained,
        penalty=lam,
        condition=condition,
        residual=residual,
        core=core,
        draft=draft,
        of_core=lambda values, points: values / unexplained[points],
        enlarge=_enlarged(H.shape[1]),
    )


def _hollow_products(H: Array) -> Blocks:
    """Rows of HHᵀ with zeros on the diagonal."""

    def core(start: int, stop: int) -> Array:
        block: Array = H[start:stop] @ H.T
        block[np.arange(stop - start), np.arange(start, stop)] = 0
        return block

    return core


def _enlarged(rank: int) -> int:
    """Size of a block of HHᵀ over the usual one.

    Where H is wide the product decides, and 13 rows at once run at a third of the speed of 100; where it is narrow the
    passes over the block decide, and it should stay in cache.
    """
    return min(8, max(1, rank // 20))


def ridge_unconstrained_low_rank(Z: Data, *, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """The coefficients of :func:`ridge_unconstrained` for K = Z Zᵀ: HHᵀ, block by block."""
    H, lam = whitened(Z, reg, affine)

    def columns(start: int, stop: int) -> Array:
        return H[start:stop] @ H.T

    condition, residual = low_rank_evidence(Z, H, lam, affine)
    return Coefficients(H.shape[0], H.dtype, columns, columns, penalty=lam, condition=condition, residual=residual)


def whitened(Z: Data, reg: float, affine: bool = False) -> tuple[Array, float]:
    """H = Z (ZᵀZ + λI)^(−1/2) up to a rotation, which no product HHᵀ sees, and λ.

    With `affine` that of the rows about their mean, and a last column of 1/√n: λV = I − HHᵀ then.
    """
    is_sparse = hasattr(Z, "toarray")
    squared_norms = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if is_sparse else np.einsum("ij,ij->i", Z, Z)
    size = spread = float(squared_norms.mean(dtype=np.float64))
    mean = np.asarray(Z.mean(axis=0, dtype=np.float64)).ravel() if affine else np.zeros(Z.shape[1])
    if affine and not is_sparse:
        Z = Z - mean.astype(Z.dtype)
        spread = float(np.einsum("ij,ij->i", Z, Z).mean(dtype=np.float64))
    elif affine:
        spread = max(size - float(mean @ mean), 0.0)
    # the same floor as that of a kernel matrix that turns out singular
    lam = above_rounding(penalty(np.array([spread], dtype=squared_norms.dtype), reg), size, Z.dtype, 10 * Z.shape[0])
    inner = ((Z.T @ Z).toarray() if is_sparse else Z.T @ Z).astype(np.float64, copy=False)  # r × r: accuracy is cheap
    if affine and is_sparse:
        inner -= Z.shape[0] * np.outer(mean, mean)
    eigenvalues, vectors = eigh(inner)
    to_rows = vectors * (1 / np.sqrt(np.maximum(eigenvalues, 0) + lam))
    if not affine:
        return np.ascontiguousarray(Z @ to_rows.astype(Z.dtype)), lam
    H = np.full((Z.shape[0], Z.shape[1] + 1), 1 / np.sqrt(Z.shape[0]), dtype=Z.dtype)
    if is_sparse:  # its rows keep their zeros; those of H have none
        H[:, :-1] = Z @ to_rows.astype(Z.dtype) - (mean @ to_rows).astype(Z.dtype)
    else:
        np.matmul(Z, to_rows.astype(Z.dtype), out=H[:, :-1])
    return H, lam
