"""Ridge representations (KTRR, TRR, LSR1, LSR2): one closed form from one Cholesky inverse.

Every sample is represented by all others, min ½‖φ(x_i) − φ(X)c‖² + ½λ‖c‖² with c_i = 0 (eq. 3.20). With
U = (K + λI)⁻¹ the printed solution (eq. 3.9) simplifies, because UK = I − λU, to

    C = I − U diag(U)⁻¹,   that is   c_ji = −U_ji / U_ii,  c_ii = 0:

no product with K, and one half of an n × n array for K, then its factor, then U (:mod:`subspaces.utils.packed`).
With 1ᵀc = 1 as well (`affine`: subspaces need not contain the origin) U is replaced by V = U − U11ᵀU / (1ᵀU1). Then
only differences of samples count, so K is centred, JKJ with J = I − 11ᵀ/n, and λ is relative to the mean diagonal of
that: a shift of all samples changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from subspaces.representation.coefficients import Blocks, Coefficients, Draft, from_core
from subspaces.representation.inverse import (
    _error,
    _exponent_of,
    _probe,
    _warn_if_ill_conditioned,
    above_rounding,
    inverse,
    low_rank_evidence,
    penalty,
)
from subspaces.utils.decompositions import cholesky_at, eigh
from subspaces.utils.namespace import Place
from subspaces.utils.packed import Packed
from subspaces.utils.types import Array, Data


def ridge(K: Array | Packed, *, reg: float = 1.0, affine: bool = False, overwrite: bool = False) -> Coefficients:
    """Compute the closed-form coefficients (eq. 3.9) from a Gram matrix.

    Parameters
    ----------
    K : array of shape (n, n), symmetric; or half of it, packed
    reg : λ divided by the mean diagonal of K (of the centred K if `affine`), so that it means the same for every kernel
    affine : require columns that sum to one
    overwrite : let the inverse take K's memory (the whole computation then needs no other)

    Returns
    -------
    Coefficients
        Blocks are read off U; C itself is never stored.

    Notes
    -----
    If the kernel has negative eigenvalues, K + λI may not be positive definite. Then λ is raised by the size of the
    most negative one (the "spectrum shift": distances keep their order) and
    :class:`~subspaces.representation.inverse.IndefiniteKernelWarning` says by how much.

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
    return from_core(U.rows, scale, penalty=found.penalty, condition=found.condition, residual=found.residual)


def ridge_unconstrained(
    K: Array | Packed, *, reg: float = 1.0, affine: bool = False, overwrite: bool = False
) -> Coefficients:
    """Compute ridge coefficients without c_ii = 0 (LSR2): Z = (K + λI)⁻¹K = I − λU, or I − λV if `affine`."""
    found = inverse(K, reg, affine, overwrite)
    U = found.U

    def columns(start: int, stop: int) -> Array:
        block = U.rows(start, stop)
        block *= U.dtype.type(-found.lam)
        block[np.arange(stop - start), np.arange(start, stop)] += 1
        return block

    return Coefficients(
        U.n, U.dtype, columns, columns, penalty=found.penalty, condition=found.condition, residual=found.residual
    )


def ridge_low_rank(Z: Data, *, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """Compute the coefficients of :func:`ridge` for K = Z Zᵀ with r < n features, without an n × n array.

    By Woodbury, λU = I − HHᵀ with H = Z (ZᵀZ + λI)^(−1/2), hence c_ji = h_jᵀh_i / (1 − ‖h_i‖²). The cost is O(nr²) and,
    for each block of columns, one product with H. If `affine`, the rows of Z are centred and H gets one more column,
    1/√n, by which λV = I − HHᵀ.
    """
    H, lam = whitened(Z, reg, affine)
    condition, residual = low_rank_evidence(Z, H, lam, affine)
    # 1 − ‖h‖² is the share of a sample that the others cannot explain; rounding must not make it zero
    unexplained = np.maximum(1 - np.einsum("ij,ij->i", H, H), np.finfo(H.dtype).eps)
    core, draft = _hollow_products(H), None
    if H.dtype != np.float32:
        # a common factor, so that no product vanishes in single precision; no second array of H's size on the way
        largest = max(H.max(), -H.min()) or 1.0
        single = np.divide(H, largest, out=np.empty(H.shape, dtype=np.float32), casting="same_kind")
        draft = Draft(_hollow_products(single), lambda i, j: (H[i, None] @ H[j].transpose(0, 2, 1))[:, 0])
    # wide H: the product dominates, and 13 rows at once run at a third of the speed of 100; narrow H: the passes over
    # the block dominate, and it should stay in cache
    enlarge = min(8, max(1, H.shape[1] // 20))
    found = from_core(core, unexplained, np.divide, penalty=lam, condition=condition, residual=residual)
    return replace(found, draft=draft, enlarge=enlarge)


def _hollow_products(H: Array) -> Blocks:
    """Return a function that computes rows of HHᵀ with a zero diagonal."""

    def core(start: int, stop: int) -> Array:
        block: Array = H[start:stop] @ H.T
        block[np.arange(stop - start), np.arange(start, stop)] = 0
        return block

    return core


def ridge_unconstrained_low_rank(Z: Data, *, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """Compute the coefficients of :func:`ridge_unconstrained` for K = Z Zᵀ: HHᵀ, block by block."""
    H, lam = whitened(Z, reg, affine)

    def columns(start: int, stop: int) -> Array:
        return H[start:stop] @ H.T

    condition, residual = low_rank_evidence(Z, H, lam, affine)
    return Coefficients(H.shape[0], H.dtype, columns, columns, penalty=lam, condition=condition, residual=residual)


def whitened(Z: Data, reg: float, affine: bool = False) -> tuple[Array, float]:
    """Return H = Z (ZᵀZ + λI)^(−1/2), up to a rotation that HHᵀ does not see, and λ.

    If `affine`, of the centred rows, with a last column of 1/√n: then λV = I − HHᵀ.
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


# ------------------------------------------------------------------ other array libraries


def ridge_at(K: Any, *, place: Place, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """Compute the coefficients of :func:`ridge` with another array library, where U and the largest entries stay.

    Kernels that are not positive definite, or of extreme size, take the way of NumPy.
    """
    xp, n = place.xp, K.shape[0]
    diagonal = place.fetch(xp.linalg.diagonal(K))
    if _exponent_of(diagonal, reg):
        return ridge(place.fetch(K), reg=reg, affine=affine)
    if affine:
        means = xp.mean(K, axis=1)
        offset = means - xp.mean(means) / 2
        A = K - (offset[:, None] + offset[None, :])
        spread = np.maximum(place.fetch(xp.linalg.diagonal(A)), 0)
        lam = above_rounding(penalty(spread, reg), float(diagonal.mean(dtype=np.float64)), diagonal.dtype)
    else:
        A, lam = K, penalty(diagonal, reg)
    A = A + lam * xp.eye(n, dtype=K.dtype, device=place.device)
    factor = cholesky_at(A, xp)
    U = None
    if factor is not None and hasattr(xp, "cholesky_inverse"):  # PyTorch
        U = xp.cholesky_inverse(factor)
    elif factor is not None:
        half = xp.linalg.inv(factor)
        U = half.T @ half
    if U is None or not bool(xp.all(xp.isfinite(xp.linalg.diagonal(U)))):
        return ridge(place.fetch(K), reg=reg, affine=affine)  # raises λ, or says what is wrong
    U = (U + U.T) / 2
    _warn_if_ill_conditioned(place.fetch(xp.linalg.diagonal(factor)))
    condition = float(xp.max(xp.sum(xp.abs(A), axis=1)) * xp.max(xp.sum(xp.abs(U), axis=1)))
    probe = _probe(n, diagonal.dtype)
    residual = _error(place.fetch(U @ (A @ place.send(probe))), probe)
    if affine:  # V, as in affine_inverse; rounding on its diagonal is handled below
        sums = place.fetch(xp.sum(U, axis=1)).astype(np.float64)
        root = place.send((sums / np.sqrt(sums.sum())).astype(diagonal.dtype))
        U = U - root[:, None] * root[None, :]
    diagonal = place.fetch(xp.linalg.diagonal(U))
    scale: Array = -1 / np.maximum(diagonal, np.finfo(diagonal.dtype).eps * np.abs(diagonal).max())
    core, largest = _hollow_at(U, place)
    return from_core(core, scale, largest=largest, penalty=lam, condition=condition, residual=residual)


def _hollow_at(U: Any, place: Place) -> tuple[Blocks, Callable[..., tuple[Array, Array]]]:
    """Return functions that fetch rows of U with a zero diagonal, and their largest entries."""
    xp = place.xp
    places = xp.arange(U.shape[0], device=place.device)
    M = xp.where(places[:, None] == places[None, :], xp.zeros_like(U), U)

    def core(start: int, stop: int) -> Array:
        return place.fetch(M[start:stop, :])

    def largest(start: int, stop: int, k: int, weights: Array | None) -> tuple[Array, Array]:
        block = M[start:stop, :]
        if weights is not None:
            there = place.send(weights)
            block = xp.abs(block) * (there[start:stop, None] + there[None, :])
        keys = xp.abs(block)
        # the standard only sorts, PyTorch can do with less
        found = xp.topk(keys, k)[1] if hasattr(xp, "topk") else xp.argsort(keys, axis=1, descending=True)[:, :k]
        columns = xp.sort(found, axis=1)
        return place.fetch(columns), place.fetch(xp.take_along_axis(block, columns, axis=1))

    return core, largest
