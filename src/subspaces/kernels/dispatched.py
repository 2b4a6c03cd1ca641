"""Kernel matrices by another library of the array API: the same formulas as in ``profiles``, nothing in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from subspaces.kernels.base import Kernel
from subspaces.kernels.profiles import (
    RBF,
    Cosine,
    Cubic,
    DistanceKernel,
    DotKernel,
    Exponential,
    InverseDistance,
    InverseSquare,
    Linear,
    Polynomial,
    Quadratic,
)
from subspaces.utils.distances import origin_of
from subspaces.utils.namespace import Place
from subspaces.utils.types import Array

_PROFILES: dict[type[Kernel], Callable[[Any, Any, Any], Any]] = {
    RBF: lambda xp, d2, kernel: xp.exp(d2 * (-1 / kernel.sigma**2)),
    Exponential: lambda xp, d2, kernel: xp.exp(xp.sqrt(d2) * (-1 / kernel.sigma)),
    InverseSquare: lambda xp, d2, kernel: 1 / (1 + d2 * (1 / kernel.sigma**2)),
    InverseDistance: lambda xp, d2, kernel: 1 / (1 + xp.sqrt(d2) * (1 / kernel.sigma)),
    Linear: lambda xp, products, kernel: products,
    Cosine: lambda xp, products, kernel: products,
    Quadratic: lambda xp, products, kernel: products**2,
    Cubic: lambda xp, products, kernel: products**3,
    Polynomial: lambda xp, products, kernel: (products * kernel.gamma + kernel.coef0) ** kernel.degree,
}


def gram_at(kernel: Kernel, X: Array, place: Place) -> Any:
    """Kernel matrix of the rows of X, made at a place.

    A kernel that only knows NumPy (a user's own, a correntropy, a given matrix) is computed there and sent.
    """
    profile, xp = _PROFILES.get(type(kernel)), place.xp
    if profile is None:
        return place.send(kernel.gram(X))
    if isinstance(kernel, DistanceKernel):
        points = place.send(X - origin_of(X))
        K = points @ points.T
        norms = xp.linalg.diagonal(K)
        K = xp.clip(norms[:, None] + norms[None, :] - 2 * K, min=0)
        K = xp.where(_diagonal_of(K, xp), xp.zeros_like(K), K)
    else:
        assert isinstance(kernel, DotKernel)
        points = place.send(kernel.points(X))
        K = points @ points.T
    K = profile(xp, K, kernel)
    if not bool(xp.all(xp.isfinite(K))):
        return place.send(kernel.gram(X))  # which says what is wrong
    return (K + K.T) / 2  # a product need not be symmetric to the last digit


def _diagonal_of(K: Any, xp: Any) -> Any:
    places = xp.arange(K.shape[0], device=K.device)
    return places[:, None] == places[None, :]
