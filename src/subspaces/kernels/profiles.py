"""Kernels with a profile: functions of the product xᵀy, or of the distance d = ‖x − y‖.

Those of products, (γ xᵀy + c)^degree and the cosine xᵀy/(‖x‖‖y‖), have an exact feature map of finite size: the
samples, their unit rows, or their monomials (eq. 3.23). If it is short, no n × n matrix is needed at all. The sigmoid
tanh(γ xᵀy + c) has none.

Of the distance: exp(−d²/σ²), exp(−d/σ), 1/(1 + d²/σ²), 1/(1 + d/σ). The kernels ``1/d²`` and ``1/d`` of the paper are
infinite on the diagonal as printed, so no Gram matrix of them exists. The printed results come from the bounded forms
``1/(1 + d²/σ²)`` and ``1/(1 + d/σ)``, which :class:`InverseSquare` and :class:`InverseDistance` compute.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, factorial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.linalg import get_blas_funcs
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from subspaces.kernels.base import Kernel
from subspaces.utils.blocks import map_blocks, mirror_lower, row_blocks
from subspaces.utils.distances import origin_of, squared_norms_of, to_squared_distances, warn_if_blind
from subspaces.utils.packed import Packed, packed
from subspaces.utils.types import Array, Data

_PRODUCT_COLUMNS = 256  # features whose products are summed at once


def lower_products(X: Data, origin: Array | None = None) -> Array:
    """Return (X − origin)(X − origin)ᵀ with its lower triangle filled (BLAS syrk: half the work of a full product).

    Some columns at a time, so that only they are copied; as many as BLAS takes at once itself: no slower.
    """
    if sparse.issparse(X):
        return np.ascontiguousarray((X @ X.T).toarray())
    K: Array = np.zeros((X.shape[0], X.shape[0]), dtype=X.dtype)
    syrk = get_blas_funcs("syrk", (X,))
    for part in _parts(X, origin):
        # K.T is K's memory in Fortran's order: upper there is lower here
        syrk(1.0, np.ascontiguousarray(part).T, beta=1.0, c=K.T, trans=1, lower=0, overwrite_c=1)
    return K


def _parts(X: Array, origin: Array | None) -> Iterator[Array]:
    """Yield X − origin, some columns at a time; X itself if there is no origin."""
    if origin is None:
        yield X
        return
    for i in range(0, X.shape[1], _PRODUCT_COLUMNS):
        yield X[:, i : i + _PRODUCT_COLUMNS] - origin[i : i + _PRODUCT_COLUMNS]


class _ProfileKernel(Kernel):
    """Compute matrices from products xᵀy, or from the squared distances that follow from them if `of_distances`."""

    @abstractmethod
    def profile(self, block: Array) -> None:
        """Turn products xᵀy or squared distances, an array of any shape, into kernel values, in place."""

    def points(self, X: Data) -> Data:
        """Return the samples whose products are taken: here X itself."""
        return X

    def gram(self, X: Data) -> Array:
        """Return the Gram matrix from one symmetric product."""
        points = self.points(X)
        K = lower_products(points, self._origin(points))
        squared_norms = K.diagonal().copy()
        mirror_lower(K, lambda block, i, j: self._apply(block, squared_norms[i, None], squared_norms[j]))
        return K

    def packed_gram(self, X: Data) -> Packed:
        """Return the Gram matrix in half the memory."""
        if not self.has_packed_gram(sparse.issparse(X)):
            return super().packed_gram(X)
        points = self.points(X)

        def fill(K: Packed) -> None:
            K.set_products(_parts(points, self._origin(points)))
            squared_norms = K.diagonal()
            K.transform(lambda block, i, j: self._apply(block, squared_norms[i], squared_norms[j]))

        return packed(len(points), points.dtype, fill)

    def has_packed_gram(self, is_sparse: bool = False) -> bool:
        """Tell whether X is dense and no subclass has a ``gram`` of its own."""
        return not is_sparse and type(self).gram is _ProfileKernel.gram

    def cross(self, X: Data, Y: Data) -> Array:
        """Return kernel values between the rows of X and those of Y."""
        X, Y = self.points(X), self.points(Y)
        origin = None if sparse.issparse(X) else self._origin(Y)
        if origin is not None:
            X, Y = X - origin, Y - origin
        K: Array = np.ascontiguousarray(safe_sparse_dot(X, Y.T, dense_output=True))
        x_norms, y_norms = squared_norms_of(X), squared_norms_of(Y)

        def apply(start: int, stop: int) -> None:
            self._apply(K[start:stop], x_norms[start:stop, None], y_norms)

        map_blocks(apply, row_blocks(K.shape[0], K.shape[1] * K.itemsize))
        return K

    def _apply(self, block: Array, row_norms: Array, column_norms: Array) -> None:
        if self.of_distances:
            to_squared_distances(block, row_norms, column_norms)
        self.profile(block)

    def _origin(self, X: Data) -> Array | None:
        """Return what is taken from all samples first: near the origin no digits of a distance are lost."""
        return origin_of(X) if self.of_distances and not sparse.issparse(X) else None


class DotKernel(_ProfileKernel):
    """Base of the kernels of products: a subclass defines ``profile``, which turns xᵀy into k(x, y) in place.

    ``sees_units`` is True unless a subclass says that its profile is a power of xᵀy.
    """

    def diagonal(self, X: Data) -> Array:
        """Return the profile of the squared norms."""
        squared: Array = squared_norms_of(self.points(X))[:, None]
        self.profile(squared)
        return squared[:, 0]


class Linear(DotKernel):
    """xᵀy: straight subspaces."""

    sees_units: ClassVar[bool] = False

    def profile(self, block: Array) -> None:
        """Leave the products as they are."""

    def features(self, X: Data) -> Data:
        """Return the samples themselves."""
        return self.points(X)

    def n_features_out(self, m: int, is_sparse: bool = False) -> int:
        """Return m."""
        return m


class Cosine(Linear):
    """xᵀy/(‖x‖‖y‖): the linear kernel of unit rows; 0 for a zero row."""

    def points(self, X: Data) -> Data:
        """Return the samples scaled to length 1."""
        return normalize(X)


class _Power(DotKernel):
    """(gamma xᵀy + coef0)^degree, whose feature map exists for coef0 ≥ 0."""

    degree: int
    gamma: float = 1.0
    coef0: float = 0.0

    def features(self, X: Data) -> Data | None:
        """Return the monomials of X, and of a constant if coef0 > 0; None for sparse X or coef0 < 0."""
        if self.coef0 < 0 or sparse.issparse(X):
            return None
        if self.gamma != 1:
            X = X * X.dtype.type(float(self.gamma) ** 0.5)
        if self.coef0:
            X = np.column_stack([X, np.full(len(X), float(self.coef0) ** 0.5, dtype=X.dtype)])
        return monomials(X, int(self.degree))

    def n_features_out(self, m: int, is_sparse: bool = False) -> int | None:
        """Return the number of monomials."""
        return None if self.coef0 < 0 or is_sparse else n_monomials(m + (self.coef0 > 0), int(self.degree))


class Quadratic(_Power):
    """(xᵀy)²: linear subspaces that cross."""

    sees_units: ClassVar[bool] = False
    degree = 2

    def profile(self, block: Array) -> None:
        """Compute (xᵀy)²."""
        np.square(block, out=block)


class Cubic(_Power):
    """(xᵀy)³."""

    sees_units: ClassVar[bool] = False
    degree = 3

    def profile(self, block: Array) -> None:
        """Compute (xᵀy)³."""
        block *= np.square(block)


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

    def __post_init__(self) -> None:
        """Refuse what makes no kernel: powers of negative numbers, NaN, text."""
        super().__post_init__()
        if not isinstance(self.degree, Integral) or self.degree < 1:
            raise ValueError(f"degree of the polynomial kernel must be a positive integer; got {self.degree!r}.")
        _check_line(self.name, self.gamma, self.coef0)

    def profile(self, block: Array) -> None:
        """Compute (gamma xᵀy + coef0)^degree, or raise ValueError if that overflows."""
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


@dataclass(frozen=True)
class Sigmoid(DotKernel):
    """tanh(gamma xᵀy + coef0), what a layer of a neural network computes; seldom positive semidefinite.

    It nearly is where its argument stays small: for samples of unit length with `gamma` below 1 and `coef0` at 0.

    Parameters
    ----------
    gamma : positive number
    coef0 : finite number
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        """Refuse NaN and text."""
        super().__post_init__()
        _check_line(self.name, self.gamma, self.coef0)

    def profile(self, block: Array) -> None:
        """Compute tanh(gamma xᵀy + coef0)."""
        block *= self.gamma
        block += self.coef0
        np.tanh(block, out=block)


def _check_line(kernel: str, gamma: Any, coef0: Any) -> None:
    """Refuse slopes and offsets of xᵀy that are no numbers."""
    for name, value, least in (("gamma", gamma, "positive"), ("coef0", coef0, "finite")):
        if not isinstance(value, Real) or not np.isfinite(float(value)) or (least == "positive" and value <= 0):
            raise ValueError(f"{name} of the {kernel} kernel must be a {least} number; got {value!r}.")


def n_monomials(n_features: int, degree: int) -> int:
    """Return the number of monomials of exactly this degree."""
    return comb(n_features + degree - 1, degree)


def monomials(X: Array, degree: int) -> Array:
    """Return Z with Z Zᵀ = (X Xᵀ)^degree, entry by entry: products of `degree` features times √(their multiplicity).

    The monomial x₁^a x₂^b … occurs degree!/(a! b! …) times in the expansion of (xᵀy)^degree (eq. 3.23 for degree 2).
    """
    index = np.array(list(combinations_with_replacement(range(X.shape[1]), degree)), dtype=np.intp)
    Z: Array = X[:, index[:, 0]]
    for factor in index.T[1:]:
        Z *= X[:, factor]
    repeats = np.ones(len(index))  # Π a!: the length of each run of equal indices, as a running product
    run = np.ones(len(index))
    for left, right in zip(index.T[:-1], index.T[1:], strict=True):
        run = np.where(left == right, run + 1, 1)
        repeats *= run
    Z *= np.sqrt(factorial(degree) / repeats).astype(X.dtype)
    return Z


@dataclass(frozen=True)
class DistanceKernel(_ProfileKernel):
    """Base of the kernels of distances: a subclass defines ``profile``, which turns d² into k(x, y) in place.

    Parameters
    ----------
    bandwidth : σ: a positive number, ``"rms"``, ``"mean"``, ``"median"``, or None (see :class:`Kernel`)
        ``"rms"``: σ² is the mean of the squared distances over all n² pairs (what the authors' program used; costs
        O(nm)). ``"mean"``: the mean distance (the paper's text; costs one more product X Xᵀ). ``"median"``: of the
        distances among up to 2048 evenly spaced samples.

    Attributes
    ----------
    power : near 1 the kernel is 1 − (d/σ)^power up to a factor, 1 or 2; tells :meth:`fit` when to warn of a bandwidth
        so wide that all values are 1 to rounding
    """

    bandwidth: float | str | None = None

    of_distances: ClassVar[bool] = True
    sees_units: ClassVar[bool] = False
    power: ClassVar[int] = 2

    def fit(self, X: Data) -> Self:
        """Return the kernel with its bandwidth as a number."""
        fitted = super().fit(X)
        warn_if_blind(X, fitted.sigma, self.power)
        return fitted

    def diagonal(self, X: Data) -> Array:
        """Return the value at distance 0, n times."""
        value = np.zeros(1, dtype=X.dtype)
        self.profile(value)
        return np.full(X.shape[0], value[0])


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

    steepest_at_zero: ClassVar[bool] = True

    def profile(self, block: Array) -> None:
        """Compute exp(−d²/σ²)."""
        block *= -1 / self.sigma**2
        np.exp(block, out=block)


class Exponential(DistanceKernel):
    """Laplacian kernel exp(−d/σ): like the Gaussian one, rougher."""

    power: ClassVar[int] = 1

    def profile(self, block: Array) -> None:
        """Compute exp(−d/σ)."""
        np.sqrt(block, out=block)
        block *= -1 / self.sigma
        np.exp(block, out=block)


class InverseSquare(DistanceKernel):
    """Cauchy kernel 1/(1 + d²/σ²), the paper's "1/d²"."""

    name: ClassVar[str] = "inverse_square"
    steepest_at_zero: ClassVar[bool] = True

    def profile(self, block: Array) -> None:
        """Compute 1/(1 + d²/σ²)."""
        block *= 1 / self.sigma**2
        block += 1
        np.reciprocal(block, out=block)


class InverseDistance(DistanceKernel):
    """1/(1 + d/σ), the paper's "1/d"."""

    name: ClassVar[str] = "inverse_distance"
    power: ClassVar[int] = 1

    def profile(self, block: Array) -> None:
        """Compute 1/(1 + d/σ)."""
        np.sqrt(block, out=block)
        block *= 1 / self.sigma
        block += 1
        np.reciprocal(block, out=block)
