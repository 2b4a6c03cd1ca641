"""Points → all their monomials of one degree: the exact feature map of the polynomial kernels."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np

from subspaces.numerics.types import Array


def n_monomials(n_features: int, degree: int) -> int:
    """Number of monomials of exactly this degree."""
    return comb(n_features + degree - 1, degree)


def monomials(X: Array, degree: int) -> Array:
    """Z with Z Zᵀ = (X Xᵀ)^degree, entry by entry: products of `degree` features, each weighted by √(its multiplicity).

    The monomial x₁^a x₂^b … stands degree!/(a! b! …) times in the expansion of (xᵀy)^degree (eq. 3.23 for degree 2).
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
