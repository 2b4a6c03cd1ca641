"""Kernels of the product xᵀy: (γ xᵀy + c)^degree and the cosine xᵀy/(‖x‖‖y‖).

All have an exact feature map of finite size: the points, their unit rows, or their monomials (eq. 3.23). Where it is
short, no n × n matrix is needed at all.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from subspaces.kernels.base import Kernel
from subspaces.kernels.products import cross_products, lower_products
from subspaces.numerics.blocks import mirror_lower
from subspaces.numerics.distances import squared_norms_of
from subspaces.numerics.monomials import monomials, n_monomials
from subspaces.numerics.types import Array, Data


@dataclass(frozen=True)
class DotKernel(Kernel):
    """Base of the kernels of products: a subclass gives ``profile``, which turns xᵀy into k(x, y) in place.

    ``sees_units`` is True unless a subclass says that its profile is a power of xᵀy.
    """

    @abstractmethod
    def profile(self, block: Array) -> None:
        """Turn products xᵀy, an array of any shape, into kernel values, in place."""

    def points(self, X: Data) -> Data:
        """The points whose products are taken: here X itself."""
        return X

    def gram(self, X: Data) -> Array:
        """Gram matrix from one symmetric product."""
        K = lower_products(self.points(X))
        mirror_lower(K, lambda block, rows, columns: self.profile(block))
        return K

    def cross(self, X: Data, Y: Data) -> Array:
        """Kernel values between the rows of X and those of Y."""
        return cross_products(self.points(X), self.points(Y), lambda block, rows: self.profile(block))

    def diagonal(self, X: Data) -> Array:
        """The profile of the squared norms."""
        squared: Array = squared_norms_of(self.points(X))[:, None]
        self.profile(squared)
        return squared[:, 0]


@dataclass(frozen=True)
class Linear(DotKernel):
    """xᵀy: straight subspaces."""

    name: ClassVar[str] = "linear"
    sees_units: ClassVar[bool] = False

    def profile(self, block: Array) -> None:
        """The products as they are."""

    def features(self, X: Data) -> Data:
        """The points themselves."""
        return self.points(X)

    def n_features_out(self, m: int, is_sparse: bool = False) -> int:
        """As many as the points have."""
        return m


@dataclass(frozen=True)
class Cosine(Linear):
    """xᵀy/(‖x‖‖y‖): the linear kernel of unit rows; 0 for a point at the origin."""

    name: ClassVar[str] = "cosine"

    def points(self, X: Data) -> Data:
        """The points scaled to length 1."""
        return normalize(X)


@dataclass(frozen=True)
class _Power(DotKernel):
    """(γ xᵀy + c)^degree, whose feature map exists for c ≥ 0."""

    def _power(self) -> tuple[int, float, float]:
        """Degree, γ and c."""
        raise NotImplementedError

    def features(self, X: Data) -> Data | None:
        """The monomials of X and of a constant where there is an intercept; None for sparse points or c < 0."""
        degree, gamma, coef0 = self._power()
        if coef0 < 0 or sparse.issparse(X):
            return None
        if gamma != 1:
            X = X * X.dtype.type(gamma**0.5)
        if coef0:
            X = np.column_stack([X, np.full(len(X), coef0**0.5, dtype=X.dtype)])
        return monomials(X, degree)

    def n_features_out(self, m: int, is_sparse: bool = False) -> int | None:
        """Number of monomials."""
        degree, _, coef0 = self._power()
        if coef0 < 0 or is_sparse:
            return None
        return n_monomials(m + (coef0 > 0), degree)


@dataclass(frozen=True)
class Quadratic(_Power):
    """(xᵀy)²: linear subspaces that cross."""

    name: ClassVar[str] = "quadratic"
    sees_units: ClassVar[bool] = False

    def profile(self, block: Array) -> None:
        """(xᵀy)²."""
        np.square(block, out=block)

    def _power(self) -> tuple[int, float, float]:
        return 2, 1.0, 0.0


@dataclass(frozen=True)
class Cubic(_Power):
    """(xᵀy)³."""

    name: ClassVar[str] = "cubic"
    sees_units: ClassVar[bool] = False

    def profile(self, block: Array) -> None:
        """(xᵀy)³."""
        block *= np.square(block)

    def _power(self) -> tuple[int, float, float]:
        return 3, 1.0, 0.0


@dataclass(frozen=True)
class Polynomial(_Power):
    """(gamma xᵀy + coef0)^degree.

    Parameters
    ----------
    degree : positive integer
    gamma : positive number
    coef0 : finite number; below 0 the kernel has no feature map and may not be positive semidefinite
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    name: ClassVar[str] = "polynomial"

    def __post_init__(self) -> None:
        """Refuse what makes no kernel: powers of negative numbers, NaN, text."""
        super().__post_init__()
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"degree of the polynomial kernel must be a positive integer; got {self.degree!r}.")
        for name, value, least in (("gamma", self.gamma, "positive"), ("coef0", self.coef0, "finite")):
            if not isinstance(value, Real) or not np.isfinite(float(value)) or (least == "positive" and value <= 0):
                raise ValueError(f"{name} of the polynomial kernel must be a {least} number; got {value!r}.")

    def profile(self, block: Array) -> None:
        """(gamma xᵀy + coef0)^degree, or an error where that overflows."""
        block *= self.gamma
        block += self.coef0
        with np.errstate(over="ignore"):
            np.power(block, self.degree, out=block)
        if not np.isfinite(block).all():
            params = {"degree": self.degree, "gamma": self.gamma, "coef0": self.coef0}
            raise ValueError(
                f"the polynomial kernel with {params} is too large for {block.dtype} on these points: "
                'scale them (scaling="unit") or lower degree, gamma or coef0.'
            )

    def _power(self) -> tuple[int, float, float]:
        return int(self.degree), float(self.gamma), float(self.coef0)
