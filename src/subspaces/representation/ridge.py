"""K → C by ridge regression: KTRR, TRR, LSR1 and LSR2, one closed form, one Cholesky inverse.

Every point is represented by all others, min ½‖φ(x_i) − φ(X)c‖² + ½λ‖c‖² with c_i = 0 (eq. 3.20). With
U = (K + λI)⁻¹ the printed solution (eq. 3.9) collapses, because UK = I − λU, to

    C = I − U diag(U)⁻¹,   that is   c_ji = −U_ji / U_ii,  c_ii = 0:

no product with K, and one half of an n × n array for K, then its factor, then U (:mod:`subspaces.numerics.packed`).
With 1ᵀc = 1 as well (`affine`: subspaces need not contain the origin) U is replaced by V = U − U11ᵀU / (1ᵀU1). Only
differences of points count then, so K is taken about the mean of the points, JKJ with J = I − 11ᵀ/n, and λ is relative
to its mean diagonal: a shift of all points changes nothing.

How far an ill-conditioned K is followed (small λ, copies of points, wide kernels):

1. Cholesky factorisation of K + λI. The condition number is read off K and U and the error of U measured on one
   vector; both are kept, and a warning says when no digit is left.
2. If it fails, λ is raised by the size of the most negative eigenvalue of K, found by Lanczos, by rounding alone if K
   has none (a jitter); :class:`IndefiniteKernelWarning` names both.
3. If that fails too, the eigenvalue comes from LAPACK, which misses none, and λ is raised by that.
4. What is left is refused: ValueError with λ, the precision and what to change.

Kernels and penalties of extreme size are brought near one by a power of two first, which changes no digit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from subspaces.numerics.decompositions import eigh, lanczos, smallest_eigenvalue
from subspaces.numerics.packed import Packed, packed_copy, packed_in_place
from subspaces.numerics.types import Array, Data
from subspaces.representation.coefficients import Blocks, Coefficients, Draft

_INDEFINITE = 1e-4  # of the largest entry: beyond rounding in float32
_FAR = 40  # powers of two from 1 beyond which a kernel matrix is brought back


class IndefiniteKernelWarning(UserWarning):
    """The kernel matrix has negative eigenvalues; λ was raised by the most negative one."""


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
    their order) and :class:`IndefiniteKernelWarning` says by how much.

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
        n_points=U.n,
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

    _, _, lam, condition, residual = found
    return Coefficients(U.n, U.dtype, columns, columns, penalty=lam, condition=condition, residual=residual)


def ridge_low_rank(Z: Data, *, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """The coefficients of :func:`ridge` for K = Z Zᵀ with fewer features r than points n: no n × n array exists.

    By Woodbury, λU = I − HHᵀ with H = Z (ZᵀZ + λI)^(−1/2), hence c_ji = h_jᵀh_i / (1 − ‖h_i‖²). Costs O(nr²) and,
    for each block of columns asked for, one product with H. With `affine` the rows of Z are taken about their mean and
    H gets one more column, 1/√n, by which λV = I − HHᵀ.
    """
    H, lam = whitened(Z, reg, affine)
    condition, residual = _low_rank_evidence(Z, H, lam, affine)
    # 1 − ‖h‖² is the share of a point that the others cannot explain; rounding must not make it zero
    unexplained = np.maximum(1 - np.einsum("ij,ij->i", H, H), np.finfo(H.dtype).eps)
    core, draft = _hollow_products(H), None
    if H.dtype != np.float32:
        # a common factor, so that no product vanishes in single precision; no second array of H's size on the way
        largest = max(H.max(), -H.min()) or 1.0
        single = np.divide(H, largest, out=np.empty(H.shape, dtype=np.float32), casting="same_kind")
        draft = Draft(_hollow_products(single), lambda i, j: (H[i, None] @ H[j].transpose(0, 2, 1))[:, 0])
    return Coefficients(
        n_points=H.shape[0],
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

    condition, residual = _low_rank_evidence(Z, H, lam, affine)
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
    lam = above_rounding(penalty(np.array([spread], dtype=squared_norms.dtype), reg), size, Z.dtype)
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


def penalty(diagonal: Array, reg: float) -> float:
    """λ = reg × mean diagonal of K. A zero kernel (all points at the origin) gets λ = reg."""
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
    """λ, raised to `factor` times the rounding of K's diagonal if it is below: there rounding would be the answer."""
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
    """Power of two of K + λI where that is beyond 2^±40: U holds its inverse square, which must not vanish."""
    scale = (1 + reg) * float(np.mean(np.abs(diagonal), dtype=np.float64))
    exponent = int(np.frexp(scale)[1]) if 0 < scale < np.inf else 0
    # even: the square roots of the factorisation then are exactly scaled too
    return exponent - exponent % 2 if abs(exponent) > _FAR else 0


class Inverse(NamedTuple):
    """U = (K + λI)⁻¹, or V, and how it was reached.

    Attributes
    ----------
    U : in the memory of K, and of K over a power of two where that is of extreme size
    lam : the λ that made it possible, over that power of two
    penalty : λ
    condition : condition number of K + λI (1-norm)
    residual : ‖U(K + λI)v − v‖/‖v‖ for one random v: the error of U as it is
    """

    U: Packed
    lam: float
    penalty: float
    condition: float
    residual: float


def inverse(K: Array | Packed, reg: float, affine: bool, overwrite: bool) -> Inverse:
    """U, or V with `affine`; `overwrite` lets it take the memory of K."""
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
    (back, totals), inverse_sums = (found.T for found in K.times(np.column_stack([there, np.ones_like(there)])))
    condition, residual = float((sums.max() + lam) * inverse_sums.max()), _error(back, probe[:, 0])
    if affine:
        affine_inverse(K, totals)
    return Inverse(K, lam, float(np.ldexp(lam, exponent)), condition, residual)


def _prepare(K: Packed, exponent: int, affine: bool) -> float:
    """K over a power of two, in place, and with `affine` about the mean point; its mean diagonal before that."""
    if exponent:
        np.ldexp(K.half, -exponent, out=K.half)
    size = float(np.mean(K.diagonal(), dtype=np.float64))
    if affine:
        means = K.times(np.ones((K.n, 1), dtype=K.dtype))[0][:, 0] / K.n
        offset = (means - means.mean() / 2).astype(K.dtype)
        K.subtract(lambda i, j: offset[i] + offset[j])
    return size


def affine_inverse(U: Packed, sums: Array) -> None:
    """V = U − U11ᵀU / (1ᵀU1) in the memory of U with these sums of rows, for any U = (K + λI)⁻¹.

    What is read off U is read off V for columns that sum to one: C = I − V diag(V)⁻¹, Z = I − λV (no zero diagonal).
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
    """K becomes the Cholesky factor of K + λI; the λ that made it possible."""
    K.set_diagonal(K.diagonal() + K.dtype.type(lam))
    for smallest_of in (_smallest_by_lanczos, _smallest):
        if K.factorise():
            return lam
        K.refill()
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


def _probe(n: int, dtype: Any) -> Array:
    """A vector in general position, always the same."""
    return np.random.default_rng(0).standard_normal((n,)).astype(dtype)


def _error(found: Array, expected: Array) -> float:
    """Relative error of a vector, in float64."""
    difference = found.astype(np.float64) - expected
    return float(np.linalg.norm(difference) / np.linalg.norm(expected.astype(np.float64)))


def _low_rank_evidence(Z: Data, H: Array, lam: float, affine: bool = False) -> tuple[float, float]:
    """Condition number of Z Zᵀ + λI (2-norm) and the error of (I − HHᵀ)/λ as its inverse, on one vector.

    With `affine` on a vector of sum zero, where V is an inverse; the last column of H is none of Z's.
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
    """λ plus the most negative eigenvalue's size, with a margin for rounding."""
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
    """Warn where K has negative eigenvalues: a reason for a solver that needs a kernel not to end."""
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
    """Warn when the Cholesky factor alone proves that no digit of the inverse can be trusted."""
    condition = float(factor_diagonal.max() / factor_diagonal.min()) ** 2
    if condition > 0.1 / np.finfo(factor_diagonal.dtype).eps:
        warnings.warn(
            f"K + λI has a condition number of at least {condition:.1g}: in {factor_diagonal.dtype} its inverse may "
            "have no correct digit. Increase reg or use float64.",
            UserWarning,
            stacklevel=4,
        )
