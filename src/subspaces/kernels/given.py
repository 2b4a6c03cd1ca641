"""Kernels that someone else computes: a matrix given as it is, or a function k(X, Y) of the user's.

Both are checked before anything is inverted: K must be square, finite and symmetric up to half the digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from subspaces.kernels.base import Kernel
from subspaces.numerics.blocks import mirror_lower, row_blocks
from subspaces.numerics.types import Array, Data


class Precomputed(Kernel):
    """X is the Gram matrix itself; of new points, the kernel values with the training points."""

    sees_units: ClassVar[bool] = False

    def gram(self, X: Data) -> Array:
        """A checked copy."""
        return checked_gram(X, "the precomputed kernel matrix")

    def cross(self, X: Data, Y: Data) -> Array:
        """The rows of X as given."""
        return np.asarray(X)

    def diagonal(self, X: Data) -> Array:
        """The diagonal of the matrix."""
        return np.asarray(X.diagonal())


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A function of the user's, ``function(X, Y, **params)``, which returns an array of shape (n_X, n_Y)."""

    function: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    name: ClassVar[str] = "callable"

    def gram(self, X: Data) -> Array:
        """What the function returns, checked."""
        return checked_gram(self.cross(X, X), f"the matrix returned by the kernel {self._called()}")

    def cross(self, X: Data, Y: Data) -> Array:
        """What the function returns, in X's dtype; its faults under its name."""
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
    """A symmetric copy of a Gram matrix that someone else computed, or an error that says what is wrong."""
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
