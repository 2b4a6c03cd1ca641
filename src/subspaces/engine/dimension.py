"""η from the samples: as many neighbours as span the piece that a sample lies on, estimated without labels."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from subspaces.kernels import Kernel, is_precomputed
from subspaces.kernels.scaling import apply_scaling, fit_scaling
from subspaces.spectral.splits import intrinsic_dimension
from subspaces.utils.decompositions import eigh
from subspaces.utils.ordering import canonical_order, hash_rows
from subspaces.utils.types import Array, Data

DIMENSION: Literal["dimension"] = "dimension"
"""The name of this rule as a value of `n_nonzero`."""
_AT_MOST = 2000
"""Samples whose distances are compared; evenly spaced ones of more."""
_DIGITS = 7
"""Decimals, of the largest coordinate, in which two samples must differ to be two: below are rounding errors."""
_UNKNOWN = 5
"""η where too few samples differ to tell: the default of the methods."""


def spanning_neighbors(X: Data, kernel: Kernel, scaling: str | None) -> int:
    """Return d + 1, with d the dimension of the pieces that the samples lie on (Levina and Bickel 2004), rounded.

    A kernel bends a piece but leaves its dimension, so the distances are those of the scaled samples, or those that a
    given kernel matrix has in its space. One more than d samples span a piece that misses the origin, as all
    do whose samples have length 1 or a kernel of distances. Equal rows count once. At least 2.

    Examples
    --------
    >>> from subspaces.datasets import make_subspaces
    >>> from subspaces.kernels import RBF
    >>> X, _ = make_subspaces(3, dimension=4, ambient=20, n_samples=200, random_state=0)
    >>> spanning_neighbors(X, RBF(), None)
    4
    """
    rows = _spread(canonical_order(X, hash_rows(X), pairwise=is_precomputed(kernel)))
    if is_precomputed(kernel):
        values, vectors = eigh(_dense(X[rows][:, rows]))
        points = vectors * np.sqrt(np.maximum(values, 0))  # with these products
    else:
        points = _dense(apply_scaling(X, fit_scaling(X, scaling, units=kernel.sees_units))[rows])
    points -= points.mean(axis=0)
    distinct = np.unique(np.round(points / (np.abs(points).max() or 1.0), _DIGITS), axis=0)
    found = intrinsic_dimension(distinct) if len(distinct) > 1 else np.inf
    return min(max(2, round(found) + 1), len(points) - 1) if np.isfinite(found) else _UNKNOWN


def _spread(order: Array) -> Array:
    """Return at most so many of the rows, evenly spaced."""
    places = np.linspace(0, len(order) - 1, min(_AT_MOST, len(order))).round().astype(np.intp)
    return np.asarray(order[places])


def _dense(values: Data) -> Array:
    return np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
