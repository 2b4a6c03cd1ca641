"""The closed form of ``ridge`` by another library of the array API: U, and the largest of each column, stay there.

What is not plain sailing (kernels that are not positive definite, or of extreme size) goes the way of NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from subspaces.representation.coefficients import Coefficients
from subspaces.representation.inverse import (
    _error,
    _exponent_of,
    _probe,
    _warn_if_ill_conditioned,
    above_rounding,
    penalty,
)
from subspaces.representation.ridge import ridge
from subspaces.utils.decompositions import cholesky_at
from subspaces.utils.namespace import Place
from subspaces.utils.types import Array


def ridge_at(K: Any, *, place: Place, reg: float = 1.0, affine: bool = False) -> Coefficients:
    """Coefficients of :func:`~subspaces.representation.ridge.ridge`, from a Gram matrix at a place."""
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
    U = None if factor is None else _inverse(factor, xp)
    if U is None or not bool(xp.all(xp.isfinite(xp.linalg.diagonal(U)))):
        return ridge(place.fetch(K), reg=reg, affine=affine)  # raises λ, or says what is wrong
    _warn_if_ill_conditioned(place.fetch(xp.linalg.diagonal(factor)))
    condition = float(xp.max(xp.sum(xp.abs(A), axis=1)) * xp.max(xp.sum(xp.abs(U), axis=1)))
    probe = _probe(n, diagonal.dtype)
    residual = _error(place.fetch(U @ (A @ place.send(probe))), probe)
    return _coefficients(_affine(U, place) if affine else U, place, lam, condition, residual)


def _inverse(factor: Any, xp: Any) -> Any:
    if hasattr(xp, "cholesky_inverse"):  # PyTorch
        U = xp.cholesky_inverse(factor)
    else:
        inverse = xp.linalg.inv(factor)
        U = inverse.T @ inverse
    return (U + U.T) / 2


def _affine(U: Any, place: Place) -> Any:
    """As ``affine_inverse``; positive on the diagonal up to rounding, which :func:`_coefficients` sees to."""
    sums = place.fetch(place.xp.sum(U, axis=1)).astype(np.float64)
    root = place.send((sums / np.sqrt(sums.sum())).astype(place.fetch(U[:1, 0]).dtype))
    return U - root[:, None] * root[None, :]


def _coefficients(U: Any, place: Place, lam: float, condition: float, residual: float) -> Coefficients:
    xp, n = place.xp, U.shape[0]
    diagonal = place.fetch(xp.linalg.diagonal(U))
    scale: Array = -1 / np.maximum(diagonal, np.finfo(diagonal.dtype).eps * np.abs(diagonal).max())
    places = xp.arange(n, device=place.device)
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

    return Coefficients(
        n_samples=n,
        dtype=diagonal.dtype,
        columns=lambda start, stop: core(start, stop) * scale[start:stop, None],
        rows=lambda start, stop: core(start, stop) * scale,
        penalty=lam,
        condition=condition,
        residual=residual,
        core=core,
        of_core=lambda values, points: values * scale[points],
        largest=largest,
    )
