"""Scaling of the input before the kernel: part of the method, so that new samples are scaled alike.

Samples may be stored in single precision, but every method computes in double precision. In single precision the last
digits decide between answers that are nearly as good, and these digits differ between processors: of 400 faces in
float32 KTRR labelled 93 differently on another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from subspaces.utils import choices
from subspaces.utils.components import leading_directions
from subspaces.utils.types import Array, Data

SCALINGS = get_args(choices.Scaling)

_FAR = 40  # powers of two from 1 beyond which magnitudes are brought back: the cubic kernel takes their sixth power


@dataclass(frozen=True)
class Scaling:
    """Hold a scaling fitted to training data: an offset and a factor per feature, and whether rows become unit vectors.

    ``total`` is the sum of every row before its logarithm is taken, for the rule ``"log"``.
    ``components`` are directions, shape (m, r), whose coordinates replace sparse samples; unit rows have length 1
    in these again.
    ``exponent`` is a power of two that brings extreme magnitudes (beyond 2^±40) near one before anything is
    squared; it is exact, so it changes no digit, only prevents overflow.
    """

    exponent: int = 0
    offset: Array | None = None
    factor: Array | None = None
    unit_rows: bool = False
    total: float | None = None
    components: Array | None = None


def fit_components(X: Data, scaling: Scaling, n_components: int | None, seed: int) -> Scaling:
    """Add the leading components of scaled sparse samples to the scaling; do nothing for dense X or no number."""
    if n_components is None or not sparse.issparse(X):
        return scaling
    return replace(scaling, components=leading_directions(apply_scaling(X, scaling), n_components, seed))


def fit_scaling(X: Data, rule: str | None, *, units: bool = False) -> Scaling:
    """Fit a scaling rule to data.

    ``None`` leaves the data alone; ``"unit"`` scales each row to length 1 (zero rows stay zero); ``"max"`` divides
    everything by the largest magnitude; ``"minmax"`` takes each feature to [0, 1]; ``"standard"`` gives each feature
    mean 0 and variance 1; ``"log"`` is for counts: each row is brought to the median total of all rows, then log(1 + x)
    is taken. Under ``"minmax"`` and ``"standard"`` constant features become 0, and sparse data is only divided, by the
    largest magnitude or the deviation of each feature, not shifted. With `units` unscaled data keeps its magnitude
    however extreme: a kernel that is no power of it must see the numbers as they are.
    """
    if units and rule is None:
        return Scaling()
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))  # np.abs would copy all of X
    exponent = int(np.frexp(largest)[1])
    exponent = exponent if largest > 0 and abs(exponent) > _FAR else 0
    near_one = _times_power_of_two(X, -exponent) if exponent else X  # no copy otherwise
    if rule == "log":
        return Scaling(exponent, total=_median_total(near_one))
    if rule == "unit":  # each row has its own magnitude there
        return Scaling(unit_rows=True)
    if rule == "max":
        return Scaling(exponent, factor=np.asarray(1 / np.ldexp(largest, -exponent) if largest > 0 else 1.0))
    if rule == "minmax":
        low, high = _range(near_one)
        if sparse.issparse(X):
            return Scaling(exponent, factor=_inverse(np.maximum(high, -low), high > low))
        return Scaling(exponent, low, _inverse(high - low, high > low))
    if rule == "standard":
        if sparse.issparse(X):
            values = near_one.astype(np.float64, copy=False)
            mean = np.asarray(values.mean(axis=0)).ravel()
            variance = np.asarray(values.multiply(values).mean(axis=0)).ravel() - mean**2
            return Scaling(exponent, factor=inverse_deviation(variance, values))
        mean, variance = near_one.mean(axis=0, dtype=np.float64), near_one.var(axis=0, dtype=np.float64)
        return Scaling(exponent, mean, inverse_deviation(variance, near_one))
    return Scaling(exponent)


def apply_scaling(X: Data, scaling: Scaling) -> Data:
    """Scale samples as fitted by :func:`fit_scaling`, in double precision; copy only if something changes."""
    X = X.astype(np.float64, copy=False)
    if scaling.components is not None:
        found = apply_scaling(X, replace(scaling, components=None)) @ scaling.components
        return normalize(found) if scaling.unit_rows else found
    if scaling.exponent:
        X = _times_power_of_two(X, -scaling.exponent)
    if scaling.total is not None:
        return _log_counts(X, scaling.total)
    if scaling.offset is not None:
        X = X - scaling.offset
    if scaling.factor is not None:
        X = sparse.csr_array(X.multiply(scaling.factor)) if sparse.issparse(X) else X * scaling.factor
    if scaling.unit_rows:
        X = normalize(_rows_near_one(X))
    return X


def _row_totals(X: Data) -> Array:
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def _median_total(X: Data) -> float:
    """Return the median row sum; refuse data that cannot be counts."""
    lowest = float(X.min())
    if lowest < 0:
        raise ValueError(
            f'scaling="log" is for counts, which are never negative; the smallest value is {lowest:.3g}. '
            'Use scaling="standard" or "unit".'
        )
    totals = _row_totals(X)
    return float(np.median(totals[totals > 0])) if (totals > 0).any() else 1.0


def _log_counts(X: Data, total: float) -> Data:
    """Return log(1 + x · total / row total); zero rows stay zero, negative values of new samples become zero."""
    totals = _row_totals(X)
    factor = np.divide(total, totals, out=np.zeros_like(totals), where=totals > 0)
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True)
        scaled = X.data * np.repeat(factor, np.diff(X.indptr))
        X.data = np.log1p(np.maximum(scaled, 0))
        return X
    return np.log1p(np.maximum(X * factor[:, None], 0))


def inverse_deviation(variance: Array, X: Data) -> Array:
    """Return 1/√variance; 0 for a constant feature, whose computed variance is rounding."""
    low, high = _range(X)
    varies = (high > low) & (variance > 0)
    return np.divide(1, np.sqrt(np.abs(variance)), out=np.zeros_like(variance), where=varies)


def _inverse(size: Array, varies: Array) -> Array:
    """Return 1/size; 0 for a constant feature, and for one so small beside the others that 1/size would overflow."""
    return np.divide(1, size, out=np.zeros_like(size), where=varies & (size >= np.finfo(np.float64).tiny))


def _range(X: Data) -> tuple[Array, Array]:
    """Return the smallest and largest value of each feature, in float64."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(high):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def _times_power_of_two(X: Data, exponent: Any) -> Data:
    """Multiply X by a power of two, one for all or one per row: exact."""
    if sparse.issparse(X):
        X = sparse.csr_array(X, copy=True)
        exponents = np.repeat(np.broadcast_to(exponent, X.shape[:1]), np.diff(X.indptr))
        X.data = np.ldexp(X.data, exponents)
        return X
    return np.ldexp(X, np.reshape(exponent, (-1, 1)))


def _rows_near_one(X: Data) -> Data:
    """Bring rows of extreme magnitude near one, so that their squares neither overflow nor vanish."""
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if sparse.issparse(largest) else largest
    exponents = np.frexp(largest)[1]
    extreme = np.abs(exponents) > _FAR
    return _times_power_of_two(X, np.where(extreme, -exponents, 0)) if extreme.any() else X
