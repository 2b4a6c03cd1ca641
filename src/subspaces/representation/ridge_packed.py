"""The closed form of ``ridge`` in half the memory: K, its factor and U in LAPACK's packed format, in place.

What is not plain sailing (kernels that are not positive definite, or of extreme size) goes the way of the full matrix.
"""

from __future__ import annotations

import numpy as np

from subspaces.numerics.packed import Packed
from subspaces.numerics.types import Array
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import (
    _error,
    _exponent_of,
    _probe,
    _warn_if_ill_conditioned,
    above_rounding,
    penalty,
    ridge,
)


def ridge_packed(K: Packed, *, reg: float = 1.0, affine: bool = False, overwrite: bool = False) -> Coefficients:
    """Coefficients of :func:`~subspaces.representation.ridge.ridge`; `overwrite` lets the inverse take K's memory."""
    diagonal = K.diagonal
    if _exponent_of(diagonal, reg):
        return ridge(K.again(), reg=reg, affine=affine, overwrite=True)
    again = K.again
    K = K if overwrite else K.copy()
    lam = _centred(K, reg, diagonal) if affine else penalty(diagonal, reg)
    probe = _probe(K.n, diagonal.dtype)
    image, sums = K.sums_of(lambda rows: np.c_[rows @ probe, _magnitudes(rows)]).T
    K.with_diagonal(K.diagonal + diagonal.dtype.type(lam))
    if not K.factorise():
        return ridge(again(), reg=reg, affine=affine, overwrite=True)  # raises λ, or says what is wrong
    _warn_if_ill_conditioned(K.diagonal)
    if not K.invert_factor():
        return ridge(again(), reg=reg, affine=affine, overwrite=True)
    there = (image + lam * probe).astype(diagonal.dtype)
    back, inverse_sums, totals = K.sums_of(lambda rows: np.c_[rows @ there, _magnitudes(rows), rows.sum(axis=1)]).T
    condition, residual = float((sums.max() + lam) * inverse_sums.max()), _error(back, probe)
    if affine:
        _make_affine(K, totals)
    return _coefficients(K, lam, condition, residual)


def _magnitudes(rows: Array) -> Array:
    return np.asarray(np.abs(rows).sum(axis=1, dtype=np.float64))


def _centred(K: Packed, reg: float, diagonal: Array) -> float:
    """λ for K about the mean of the points, which it becomes."""
    means = K.sums_of(lambda rows: rows.mean(axis=1, dtype=np.float64))
    offset = (means - means.mean() / 2).astype(diagonal.dtype)
    K.subtract(lambda i, columns: offset[i] + offset[columns])
    size = float(np.mean(diagonal, dtype=np.float64))
    return above_rounding(penalty(np.maximum(K.diagonal, 0), reg), size, diagonal.dtype)


def _make_affine(U: Packed, sums: Array) -> None:
    """As ``affine_inverse``, in place."""
    total, diagonal = float(sums.sum(dtype=np.float64)), U.diagonal
    if not total > 0:
        raise ValueError(
            f"affine=True needs a positive definite K + λI; its inverse sums to {total:.3g}: increase reg."
        )
    root = (sums / np.sqrt(total)).astype(diagonal.dtype)
    U.subtract(lambda i, columns: root[i] * root[columns])
    U.with_diagonal(np.maximum(U.diagonal, np.finfo(diagonal.dtype).eps * diagonal))


def _coefficients(U: Packed, lam: float, condition: float, residual: float) -> Coefficients:
    scale = -1 / U.diagonal
    U.with_diagonal(0)
    return Coefficients(
        n_points=U.n,
        dtype=scale.dtype,
        columns=lambda start, stop: U.block(start, stop) * scale[start:stop, None],
        rows=lambda start, stop: U.block(start, stop) * scale,
        penalty=lam,
        condition=condition,
        residual=residual,
        core=U.block,
        of_core=lambda values, points: values * scale[points],
        enlarge=2,
    )
