"""Kernels of the distance d = ‖x − y‖: exp(−d²/σ²), exp(−d/σ), 1/(1 + d²/σ²), 1/(1 + d/σ).

The kernels ``1/d²`` and ``1/d`` of the paper are infinite on the diagonal as printed, so no Gram matrix of them
exists. The printed results come from the bounded forms ``1/(1 + d²/σ²)`` and ``1/(1 + d/σ)``; these are what
:class:`InverseSquare` and :class:`InverseDistance` compute.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from subspaces.kernels.base import Kernel
from subspaces.kernels.products import cross_products, lower_products
from subspaces.numerics.blocks import mirror_lower
from subspaces.numerics.distances import origin_of, squared_norms_of, to_squared_distances, warn_if_blind
from subspaces.numerics.types import Array, Data


@dataclass(frozen=True)
class DistanceKernel(Kernel):
    """Base of the kernels of distances: a subclass gives ``profile``, which turns d² into k(x, y) in place.

    Parameters
    ----------
    bandwidth : σ: a positive number, ``"rms"``, ``"mean"``, ``"median"``, or None (see :class:`Kernel`)
        ``"rms"``: σ² is the mean of the squared distances over all n² pairs (what the authors' program used; costs
        O(nm)). ``"mean"``: the mean distance (the paper's text; costs one more product X Xᵀ). ``"median"``: of the
        distances among up to 2048 evenly spaced points.

    Attributes
    ----------
    power : near 1 the kernel is 1 − (d/σ)^power up to a factor, 1 or 2; tells :meth:`fit` when to warn of a bandwidth
        so wide that all values are 1 to rounding
    """

    bandwidth: float | str | None = None

    of_distances: ClassVar[bool] = True
    sees_units: ClassVar[bool] = False
    power: ClassVar[int] = 2

    @abstractmethod
    def profile(self, block: Array) -> None:
        """Turn squared distances, an array of any shape, into kernel values, in place."""

    def fit(self, X: Data) -> Self:
        """The same kernel with its bandwidth as a number."""
        fitted = super().fit(X)
        warn_if_blind(X, fitted.sigma, self.power)
        return fitted

    def gram(self, X: Data) -> Array:
        """Gram matrix, of points moved near the origin first: there no digits of a distance are lost."""
        K = lower_products(X, None if sparse.issparse(X) else origin_of(X))
        squared_norms = K.diagonal().copy()

        def transform(block: Array, rows: slice, columns: slice) -> None:
            to_squared_distances(block, squared_norms[rows], squared_norms[columns])
            if rows == columns:
                np.fill_diagonal(block, 0)
            self.profile(block)

        mirror_lower(K, transform)
        return K

    def cross(self, X: Data, Y: Data) -> Array:
        """Kernel values between the rows of X and those of Y."""
        if not (sparse.issparse(X) or sparse.issparse(Y)):
            origin = origin_of(Y)
            X, Y = X - origin, Y - origin
        x_norms, y_norms = squared_norms_of(X), squared_norms_of(Y)

        def transform(block: Array, rows: slice) -> None:
            to_squared_distances(block, x_norms[rows], y_norms)
            self.profile(block)

        return cross_products(X, Y, transform)

    def diagonal(self, X: Data) -> Array:
        """The value at distance 0, n times."""
        value = np.zeros(1, dtype=X.dtype)
        self.profile(value)
        return np.full(X.shape[0], value[0])


@dataclass(frozen=True)
class RBF(DistanceKernel):
    """Gaussian kernel exp(−d²/σ²), the paper's default.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.kernels import RBF
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> RBF(bandwidth=5.0).fit(X).gram(X).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """

    name: ClassVar[str] = "rbf"

    def profile(self, block: Array) -> None:
        """exp(−d²/σ²)."""
        block *= -1 / self.sigma**2
        np.exp(block, out=block)


@dataclass(frozen=True)
class Exponential(DistanceKernel):
    """Laplacian kernel exp(−d/σ): like the Gaussian one, rougher."""

    name: ClassVar[str] = "exponential"
    power: ClassVar[int] = 1

    def profile(self, block: Array) -> None:
        """exp(−d/σ)."""
        np.sqrt(block, out=block)
        block *= -1 / self.sigma
        np.exp(block, out=block)


@dataclass(frozen=True)
class InverseSquare(DistanceKernel):
    """Cauchy kernel 1/(1 + d²/σ²), the paper's "1/d²"."""

    name: ClassVar[str] = "inverse_square"

    def profile(self, block: Array) -> None:
        """1/(1 + d²/σ²)."""
        block *= 1 / self.sigma**2
        block += 1
        np.reciprocal(block, out=block)


@dataclass(frozen=True)
class InverseDistance(DistanceKernel):
    """1/(1 + d/σ), the paper's "1/d"."""

    name: ClassVar[str] = "inverse_distance"
    power: ClassVar[int] = 1

    def profile(self, block: Array) -> None:
        """1/(1 + d/σ)."""
        np.sqrt(block, out=block)
        block *= 1 / self.sigma
        block += 1
        np.reciprocal(block, out=block)
