"""Base class of kernels k(x, y) = φ(x)ᵀφ(y), scalar products in a space where curves become straight (eq. 3.8).

A kernel is used in two steps. :meth:`Kernel.fit` fixes what depends on the data (the bandwidth, the range of the
features) and returns a new object; ``gram``, ``cross`` and ``features`` then only compute. New samples are therefore
always compared with the bandwidth of the training data.

Kernels computed elsewhere are here too: a matrix given as it is, and a function k(X, Y) of the user's. Both are checked
before anything is inverted: K must be square, finite and symmetric up to half the digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from subspaces.utils.blocks import mirror_lower, row_blocks
from subspaces.utils.distances import check_bandwidth, resolve_bandwidth
from subspaces.utils.packed import Packed, packed_in_place
from subspaces.utils.types import Array, Data

_DIAGONAL_ROWS = 64  # rows of a block whose kernel values give its diagonal


@dataclass(frozen=True)
class Kernel(ABC):
    """Base of all kernels: a frozen dataclass of plain numbers that can be compared, hashed, printed and pickled.

    **A kernel of your own** is a subclass that an estimator takes as ``kernel=``. There are three ways:

    - A function of the distance: subclass :class:`~subspaces.kernels.DistanceKernel` and define ``profile``, which
      turns an array of squared distances into kernel values, in place. ``self.sigma`` is the bandwidth. Such a kernel
      works in every solver, ``"two_scale"`` included.
    - A function of the product xᵀy: subclass :class:`~subspaces.kernels.DotKernel` and define ``profile`` likewise.
    - Anything else: subclass this class and define ``gram`` and ``cross``. If K = Z Zᵀ with a short Z, define
      ``features`` and ``n_features_out`` as well, and the solver ``"low_rank"`` can use it.

    Parameters of the kernel are fields (decorate the class with ``@dataclass(frozen=True)``); a subclass of this class
    that needs a bandwidth declares ``bandwidth: float | str | None = None``. Fields should be numbers or text, so that
    a search or a checkpoint can tell two kernels apart.

    Attributes
    ----------
    name : name in results and errors; by default the class's name in lower case
    bandwidth : σ: a number, a rule (``"rms"``, ``"mean"``, ``"median"``), or None: the estimator's parameter
        `bandwidth`, otherwise ``"rms"``; always None if there is no σ
    of_distances : ``profile`` acts on squared distances, so that the two-scale solver can use it
    steepest_at_zero : the profile falls nowhere faster than at distance 0, and there not infinitely fast: then the
        effect of rounding errors in the distances is bounded
    features_depend_on_data : only a fitted kernel knows how many features its map has
    sees_units : a common factor of all samples is more than a factor of the kernel's values or of its bandwidth

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces import KTRR
    >>> from subspaces.kernels import DistanceKernel
    >>> class Logistic(DistanceKernel):
    ...     def profile(self, block):
    ...         block /= self.sigma**2
    ...         np.cosh(np.sqrt(block, out=block), out=block)
    ...         np.reciprocal(block, out=block)
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> Logistic(bandwidth=5.0).fit(X).gram(X).round(3)
    array([[1.   , 0.648],
           [0.648, 1.   ]])
    >>> model = KTRR(2, kernel=Logistic())
    """

    bandwidth: float | str | None = field(default=None, init=False, repr=False)

    name: ClassVar[str] = "kernel"
    of_distances: ClassVar[bool] = False
    steepest_at_zero: ClassVar[bool] = False
    sees_units: ClassVar[bool] = True
    features_depend_on_data: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__.lower()

    def __post_init__(self) -> None:
        if self.bandwidth is not None:
            check_bandwidth(self.bandwidth)

    @property
    def has_bandwidth(self) -> bool:
        """Tell whether the kernel has a σ at all."""
        return any(part.name == "bandwidth" and part.init for part in fields(self))

    @property
    def sigma(self) -> float:
        """Return the bandwidth as a number; raise ValueError if it is still a rule."""
        if self.bandwidth is None or isinstance(self.bandwidth, str):
            raise ValueError(f"the bandwidth of {self!r} is no number yet: call fit(X) and use the kernel it returns.")
        return self.bandwidth

    def fit(self, X: Data) -> Self:
        """Return the kernel with everything fixed that depends on the data; self does not change."""
        if not self.has_bandwidth:
            return self
        return replace(self, bandwidth=resolve_bandwidth(X, "rms" if self.bandwidth is None else self.bandwidth))

    def scaled(self, exponent: int) -> Self:
        """Return the kernel for samples times 2**−exponent: a bandwidth that is a number is scaled too."""
        if self.bandwidth is None or isinstance(self.bandwidth, str):
            return self
        return replace(self, bandwidth=float(np.ldexp(self.bandwidth, -exponent)))

    @abstractmethod
    def gram(self, X: Data) -> Array:
        """Return K (eq. 3.8) of the rows of X: exactly symmetric, in X's dtype, no second n × n array."""

    def packed_gram(self, X: Data) -> Packed:
        """Return the Gram matrix as half a matrix (:mod:`subspaces.utils.packed`)."""
        return packed_in_place(self.gram(X))

    def has_packed_gram(self, is_sparse: bool = False) -> bool:
        """Tell whether :meth:`packed_gram` never holds more than that half."""
        return False

    @abstractmethod
    def cross(self, X: Data, Y: Data) -> Array:
        """Return kernel values between rows of X (new samples) and of Y (training samples), shape (n_X, n_Y)."""

    def diagonal(self, X: Data) -> Array:
        """Return k(x, x) of each row."""
        rows = (X[start:stop] for start, stop in row_blocks(X.shape[0], 1, _DIAGONAL_ROWS))
        return np.concatenate([self.cross(part, part).diagonal() for part in rows])

    def features(self, X: Data) -> Data | None:
        """Return an exact feature map Z with K = Z Zᵀ, or None if there is none of finite size."""
        return None

    def n_features_out(self, m: int, is_sparse: bool = False) -> int | None:
        """Return the number of columns of :meth:`features` for m features, or None if there is no map."""
        return None

    def profile(self, block: Array) -> None:
        """Turn squared distances or products xᵀy, an array of any shape, into kernel values, in place."""
        raise NotImplementedError(f"the kernel {self.name!r} is no function of a distance or of a product.")


class Precomputed(Kernel):
    """Take X as the Gram matrix itself; of new samples, the kernel values with the training samples."""

    sees_units: ClassVar[bool] = False

    def gram(self, X: Data) -> Array:
        """Return a checked copy."""
        return checked_gram(X, "the precomputed kernel matrix")

    def cross(self, X: Data, Y: Data) -> Array:
        """Return the rows of X as given."""
        return np.asarray(X)

    def diagonal(self, X: Data) -> Array:
        """Return the diagonal of the matrix."""
        return np.asarray(X.diagonal())


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """Call a function of the user's, ``function(X, Y, **params)``, which returns an array of shape (n_X, n_Y)."""

    function: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    name: ClassVar[str] = "callable"

    def gram(self, X: Data) -> Array:
        """Return the checked values of the function."""
        return checked_gram(self.cross(X, X), f"the matrix returned by the kernel {self._called()}")

    def cross(self, X: Data, Y: Data) -> Array:
        """Return the values of the function in X's dtype; errors name the function."""
        try:
            K = np.asarray(self.function(X, Y, **self.params))
        except Exception as error:
            raise ValueError(f"the kernel {self._called()} raised {type(error).__name__}: {error}") from error
        if K.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"the kernel {self._called()} must return an array of shape {(X.shape[0], Y.shape[0])}; got {K.shape}."
            )
        if K.dtype.kind not in "fiub":
            raise ValueError(f"the kernel {self._called()} must return real numbers; got an array of {K.dtype}.")
        return K.astype(X.dtype, copy=False)

    def _called(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


def checked_gram(K: Data, what: str) -> Array:
    """Return a symmetric copy of a Gram matrix computed elsewhere, or raise an error that says what is wrong."""
    K = np.array(K.toarray() if sparse.issparse(K) else K, order="C", copy=True)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{what} must be square; got shape {K.shape}.")
    if not np.issubdtype(K.dtype, np.floating):
        K = K.astype(np.float64)
    gap, largest = 0.0, 0.0
    for start, stop in row_blocks(K.shape[0], K.shape[1] * K.itemsize):
        block = K[start:stop]
        if not np.isfinite(block).all():
            raise ValueError(f"{what} contains NaN or infinity (first in rows {start} to {stop - 1}).")
        gap = max(gap, float(np.abs(block - K[:, start:stop].T).max()))
        largest = max(largest, float(np.abs(block).max()))
    if gap > np.sqrt(np.finfo(K.dtype).eps) * largest:
        raise ValueError(
            f"{what} must be symmetric; the largest difference between K and its transpose is {gap:.3g} "
            f"(largest entry {largest:.3g}). Pass (K + K.T) / 2 if that is what you mean."
        )
    mirror_lower(K)
    return K
