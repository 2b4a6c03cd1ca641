"""Scaling of the input before the kernel sees it: part of the method, so that new points get the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from subspaces._typing import Array, Sparse

SCALINGS = ("unit", "max", "standard")


@dataclass(frozen=True)
class Scaling:
    """What the training data decided: an offset and a factor per feature, and whether rows become unit vectors.

    ``exponent`` is a power of two that brings extreme magnitudes (beyond 2^±40) near one before anything is squared;
    it is exact, so it changes no digit, only prevents overflow.
    """

    exponent: int = 0
    offset: Array | None = None
    factor: Array | None = None
    unit_rows: bool = False


def fit_scaling(X: Array | Sparse, rule: str | None) -> Scaling:
    """Settle a scaling rule on data.

    ``None`` leaves the data alone; ``"unit"`` scales each row to length 1 (zero rows stay zero); ``"max"`` divides
    everything by the largest magnitude; ``"standard"`` gives each feature mean 0 and variance 1 (constant features
    become 0; sparse data is only divided, not shifted).
    """
    values = X.data if sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0))
    exponent = int(np.frexp(largest)[1])
    exponent = exponent if largest > 0 and abs(exponent) > 40 else 0
    if rule == "unit":
        return Scaling(exponent, unit_rows=True)
    if rule == "max":
        return Scaling(exponent, factor=np.asarray(2.0**exponent / largest if largest > 0 else 1.0))
    if rule == "standard":
        scaled = apply_scaling(X, Scaling(exponent))
        if sparse.issparse(scaled):
            mean = np.asarray(scaled.mean(axis=0)).ravel()
            deviation = np.sqrt(np.maximum(np.asarray(scaled.multiply(scaled).mean(axis=0)).ravel() - mean**2, 0))
            return Scaling(exponent, factor=_inverse(deviation))
        deviation = scaled.std(axis=0, dtype=np.float64)
        return Scaling(exponent, scaled.mean(axis=0, dtype=np.float64), _inverse(deviation))
    return Scaling(exponent)


def apply_scaling(X: Array | Sparse, scaling: Scaling) -> Array | Sparse:
    """Scale points with what :func:`fit_scaling` found; a copy only where something changes."""
    if scaling.exponent:
        X = _times_power_of_two(X, -scaling.exponent)
    if scaling.offset is not None:
        X = X - scaling.offset.astype(X.dtype)
    if scaling.factor is not None:
        factor = scaling.factor.astype(X.dtype)
        X = sparse.csr_array(X.multiply(factor)) if sparse.issparse(X) else X * factor
    if scaling.unit_rows:
        X = normalize(X)
    return X


def _inverse(deviation: Array) -> Array:
    return np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 0)


def _times_power_of_two(X: Array | Sparse, exponent: int) -> Array | Sparse:
    if sparse.issparse(X):
        X = X.copy()
        X.data = np.ldexp(X.data, exponent)
        return X
    return np.ldexp(X, exponent)
