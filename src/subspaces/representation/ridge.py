"""Ridge representations (KTRR, TRR, LSR1, LSR2): one closed form from one Cholesky inverse.

Every sample is represented by all others, min ½‖φ(x_i) − φ(X)c‖² + ½λ‖c‖² with c_i = 0 (eq. 3.20). With
U = (K + λI)⁻¹ the printed solution (eq. 3.9) simplifies, because UK = I − λU, to

    C = I − U diag(U)⁻¹,   that is   c_ji = −U_ji / U_ii,  c_ii = 0:

no product with K, and one half of an n × n array for K, then its factor, then U (:mod:`subspaces.utils.packed`).
With 1ᵀc = 1 as well (`affine`: subspaces need not contain the origin) U is replaced by V = U − U11ᵀU / (1ᵀU1). Then
only differences of samples count, so K is centred, JKJ with J = I − 11ᵀ/n, and λ is relative to the mean diagonal of
that: a shift of all samples changes nothing.

An ill-conditioned K (small λ, duplicate samples, wide kernels) is treated in four steps:

1. Factorise K + λI (Cholesky). The condition number is read off K and U, the error of U is measured on one vector;
   both are returned, and a warning is given if no digit can be trusted.
2. If that fails, raise λ by the size of the most negative eigenvalue of K, found by Lanczos, or by rounding alone if K
   has none (a jitter); :class:`IndefiniteKernelWarning` names both values.
3. If that fails too, take the eigenvalue from LAPACK, which misses none, and raise λ by it.
4. Otherwise raise ValueError with λ, the precision and the remedy.

Kernels and penalties of extreme size are first scaled near one by a power of two, which changes no digit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from subspaces.representation.coefficients import Blocks, Coefficients, Draft, from_core
from subspaces.utils.decompositions import eigh, lanczos, smallest_eigenvalue
from subspaces.utils.packed import Packed, packed_copy, packed_in_place
from subspaces.utils.types import Array, Data

_INDEFINITE = 1e-4  # of the largest entry: beyond rounding in float32
_FAR = 40  # powers of two from 1 beyond which a kernel matrix is scaled


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
    :class:`IndefiniteKernelWarning` says by how much.

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


# ------------------------------------------------------------------ the inverse


class IndefiniteKernelWarning(UserWarning):
    """Warn that the kernel matrix has negative eigenvalues and λ was raised by the most negative one."""


class Inverse(NamedTuple):
    """Hold U = (K + λI)⁻¹ (or V, see `affine_inverse`) and the evidence of how it was reached."""

    U: Packed  # in the memory of K; of K over a power of two if K is of extreme size
    lam: float  # λ that made the inversion possible, over that power of two
    penalty: float  # λ
    condition: float  # of K + λI, in the 1-norm
    residual: float  # ‖U(K + λI)v − v‖/‖v‖ for one random v


def inverse(K: Array | Packed, reg: float, affine: bool, overwrite: bool) -> Inverse:
    """Compute U, or V if `affine`; with `overwrite`, in the memory of K."""
    if not isinstance(K, Packed):
        K = packed_in_place(K) if overwrite else packed_copy(K)
    elif not overwrite:
        K = K.copy()
    exponent = _exponent_of(K.diagonal(), reg)
    size = _prepare(K, exponent, affine)
    if affine:
        lam = above_rounding(penalty(np.maximum(K.diagonal(), 0), reg), size, K.dtype)
    else:
        lam = penalty(K.diagonal(), reg)
    probe = _probe(K.n, K.dtype)[:, None]
    image, sums = K.times(probe)
    lam = _factorise(K, lam, lambda: _prepare(K, exponent, affine))
    _warn_if_ill_conditioned(K.diagonal())
    if not K.invert_factor():
        raise _no_inverse(lam, K.dtype)
    there = (image + lam * probe).astype(K.dtype)
    # both norms are one pass each; LAPACK's estimate from the factor takes four times as long
    images, inverse_sums = K.times(np.column_stack([there, np.ones_like(there)]))
    back, totals = images.T
    condition, residual = float((sums.max() + lam) * inverse_sums.max()), _error(back, probe[:, 0])
    if affine:
        affine_inverse(K, totals)
    return Inverse(K, lam, float(np.ldexp(lam, exponent)), condition, residual)


def _prepare(K: Packed, exponent: int, affine: bool) -> float:
    """Scale K by a power of two in place, centre it if `affine`, and return its mean diagonal before centring."""
    if exponent:
        np.ldexp(K.half, -exponent, out=K.half)
    size = float(np.mean(K.diagonal(), dtype=np.float64))
    if affine:
        means = K.times(np.ones((K.n, 1), dtype=K.dtype))[0][:, 0] / K.n
        offset = (means - means.mean() / 2).astype(K.dtype)
        K.subtract(lambda i, j: offset[i] + offset[j])
    return size


def affine_inverse(U: Packed, sums: Array) -> None:
    """Turn U = (K + λI)⁻¹ with row sums `sums` into V = U − U11ᵀU / (1ᵀU1), in the memory of U.

    V gives the columns that sum to one as U gives the others: C = I − V diag(V)⁻¹ and, without c_ii = 0, Z = I − λV.
    """
    total, diagonal = float(sums.sum()), U.diagonal()
    if not total > 0:
        raise ValueError(
            f"affine=True needs a positive definite K + λI; its inverse sums to {total:.3g}: increase reg."
        )
    root = (sums / np.sqrt(total)).astype(U.dtype)
    U.subtract(lambda i, j: root[i] * root[j])
    # V_ii > 0, but rounding may forget it
    U.set_diagonal(np.maximum(U.diagonal(), np.finfo(U.dtype).eps * diagonal))


def _factorise(K: Packed, lam: float, prepare: Callable[[], float]) -> float:
    """Overwrite K by the Cholesky factor of K + λI and return the λ that made it possible."""
    K.set_diagonal(K.diagonal() + K.dtype.type(lam))
    for smallest_of in (_smallest_by_lanczos, _smallest):
        if K.factorise():
            return lam
        K.fill(K)
        prepare()
        lam = _raised_penalty(K, lam, smallest_of(K))
        K.set_diagonal(K.diagonal() + K.dtype.type(lam))
    if not K.factorise():
        raise _no_inverse(lam, K.dtype)
    return lam


def _no_inverse(lam: float, dtype: Any) -> ValueError:
    return ValueError(
        f"K + λI (λ = {lam:.3g}) cannot be inverted in {dtype}: increase reg, or check the kernel's values."
    )


def penalty(diagonal: Array, reg: float) -> float:
    """Return λ = reg × mean diagonal of K; a zero kernel (all samples at the origin) gets λ = reg."""
    scale = float(np.mean(diagonal, dtype=np.float64))
    lam = reg * scale if scale > 0 else reg
    limits = np.finfo(np.result_type(diagonal, np.float32))
    if not (reg < 1 / float(limits.tiny) and lam < float(limits.max)):  # K/λ would vanish, or λ has no value
        raise ValueError(
            f"reg={reg:.3g} times the mean diagonal of the kernel matrix, {scale:.3g}, is too large for "
            f"{limits.dtype}: take a smaller reg, or check the kernel's values."
        )
    return lam


def above_rounding(lam: float, diagonal: float, dtype: Any, factor: float = 1.0) -> float:
    """Return λ, raised to `factor` times the rounding error of K's diagonal if it is below."""
    rounding = factor * float(np.finfo(dtype).eps) * diagonal
    if lam >= rounding:
        return lam
    warnings.warn(
        f"λ = {lam:.3g} is below the rounding of the kernel matrix in {dtype} and is raised to {rounding:.3g}. "
        "Use a larger reg to avoid this.",
        IndefiniteKernelWarning,
        stacklevel=5,
    )
    return rounding


def _exponent_of(diagonal: Array, reg: float) -> int:
    """Return the power of two of K + λI if beyond 2^±40, else 0: U holds its inverse square, which must not vanish."""
    scale = (1 + reg) * float(np.mean(np.abs(diagonal), dtype=np.float64))
    exponent = int(np.frexp(scale)[1]) if 0 < scale < np.inf else 0
    # even: the square roots of the factorisation then are exactly scaled too
    return exponent - exponent % 2 if abs(exponent) > _FAR else 0


def _probe(n: int, dtype: Any) -> Array:
    """Return a fixed vector in general position."""
    return np.random.default_rng(0).standard_normal((n,)).astype(dtype)


def _error(found: Array, expected: Array) -> float:
    """Return the relative error of a vector, in float64."""
    difference = found.astype(np.float64) - expected
    return float(np.linalg.norm(difference) / np.linalg.norm(expected.astype(np.float64)))


def low_rank_evidence(Z: Data, H: Array, lam: float, affine: bool = False) -> tuple[float, float]:
    """Return the condition number of Z Zᵀ + λI (2-norm) and the error of (I − HHᵀ)/λ as its inverse, on one vector.

    If `affine`, the vector sums to zero, where V is an inverse, and the last column of H does not come from Z.
    """
    probe = _probe(H.shape[0], H.dtype)
    if affine:
        H, probe = H[:, :-1], probe - probe.mean()
    image = Z @ (Z.T @ probe)
    image = (image - image.mean() if affine else image) + lam * probe
    found = (image - H @ (H.T @ image)) / lam
    # the columns of H have the norms √(μ/(μ + λ)), μ the eigenvalues of K
    share = min(float(np.einsum("ij,ij->j", H, H).max(initial=0)), 1 - np.finfo(np.float64).eps)
    return 1 / (1 - share), _error(found, probe)


def _raised_penalty(K: Array | Packed, lam: float, smallest: float) -> float:
    """Return λ plus the size of the most negative eigenvalue, with a margin for rounding."""
    rounding = 10 * np.finfo(K.dtype).eps * K.shape[0] * float(np.abs(K.diagonal()).mean())
    raised = lam + max(-smallest, 0.0) * 1.001 + rounding
    warnings.warn(
        f"K + λI is not positive definite: the smallest eigenvalue of K is about {smallest:.3g} and λ = {lam:.3g}. "
        f"λ is raised to {raised:.3g}. Use a positive definite kernel or a larger reg to avoid this.",
        IndefiniteKernelWarning,
        stacklevel=5,
    )
    return raised


def warn_if_indefinite(K: Array) -> None:
    """Warn if K has negative eigenvalues, for solvers that may then have no minimum."""
    smallest = _smallest_by_lanczos(K)
    if smallest < -_INDEFINITE * float(np.abs(K.diagonal()).max()):
        warnings.warn(
            f"the kernel matrix has the eigenvalue {smallest:.3g}: it is no kernel of inner products, and the problem "
            "may have no minimum. Use a positive definite kernel.",
            IndefiniteKernelWarning,
            stacklevel=3,
        )


def _smallest(K: Array | Packed) -> float:
    return smallest_eigenvalue(K.whole() if isinstance(K, Packed) else K)


def _smallest_by_lanczos(K: Array | Packed) -> float:
    if K.shape[0] < 100:
        return _smallest(K)
    try:
        values, _ = lanczos(K, 1, which="SA", ncv=40, tol=1e-3)
    except LinAlgError:  # many eigenvalues close to the smallest: LAPACK does not mind
        return _smallest(K)
    # a Ritz value lies above the eigenvalue: allow for its tolerance
    return float(values[0]) - 1e-3 * abs(float(values[0]))


def _warn_if_ill_conditioned(factor_diagonal: Array) -> None:
    """Warn if the Cholesky factor alone proves that no digit of the inverse can be trusted."""
    condition = float(factor_diagonal.max() / factor_diagonal.min()) ** 2
    if condition > 0.1 / np.finfo(factor_diagonal.dtype).eps:
        warnings.warn(
            f"K + λI has a condition number of at least {condition:.1g}: in {factor_diagonal.dtype} its inverse may "
            "have no correct digit. Increase reg or use float64.",
            UserWarning,
            stacklevel=4,
        )
