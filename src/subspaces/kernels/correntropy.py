"""Robust additive ("correntropy") kernel, computed as a matrix product of an explicit feature map.

k(x, y) = mean over features j of exp(−(x_j − y_j)²/s²). One corrupted feature moves k by at most 1/m, which is why
it survives salt-and-pepper noise. Written out it needs n² m exponentials; but on a bounded range the Gaussian of
one feature is a short cosine series,

    exp(−t²/s²) ≈ Σ_k a_k cos(ω_k t),   ω_k = πk/L,   cos(ω(x − y)) = cos ωx cos ωy + sin ωx sin ωy,

with positive a_k, so K = Z Zᵀ is positive semidefinite by construction and costs one product.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.linalg import get_blas_funcs

from subspaces.kernels.base import Kernel
from subspaces.utils.blocks import mirror_lower
from subspaces.utils.types import Array, Data

TOLERANCE = 1e-7
"""Largest error of the series in one kernel value."""

_WIDEST_RANGE = 1000.0  # in units of s; the number of frequencies grows with it, so values further out are clipped
_CHUNK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class CosineMap:
    """Hold the series of one-dimensional Gaussians: centre per feature, half range, frequencies and weights."""

    centre: Array
    half_range: float
    frequencies: Array
    weights: Array
    constant: float


def fit_cosine_map(X: Data, s: float) -> CosineMap:
    """Return frequencies and weights for data in the range of X, accurate to ``TOLERANCE``.

    The series has period 2L. Its error is the Gaussian's tail beyond 2L − R (R: the range of a feature) plus the
    coefficients left out; both fall below the tolerance for 2L = R + s q and k ≤ 2L q/(πs), q² = log(1/tolerance).
    """
    X = _dense(X)
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    full_range = min(float((high - low).max()), _WIDEST_RANGE * s)
    centre = (low + high) / 2 if full_range < _WIDEST_RANGE * s else np.median(X, axis=0).astype(np.float64)
    q = np.sqrt(np.log(1 / TOLERANCE))
    period = full_range + s * q
    k = np.arange(1, int(np.ceil(period * q / (np.pi * s))) + 1)
    frequencies = 2 * np.pi * k / period
    weights = 2 * s * np.sqrt(np.pi) / period * np.exp(-((frequencies * s) ** 2) / 4)
    return CosineMap(centre, full_range / 2, frequencies, weights, float(s * np.sqrt(np.pi) / period))


@dataclass(frozen=True)
class Correntropy(Kernel):
    """Mean over features j of exp(−(x_j − y_j)²/s²): robust to single corrupted features.

    Parameters
    ----------
    bandwidth : s, as for the kernels of distances; a rule is divided by √m, a typical difference of one feature

    Attributes
    ----------
    cosine : the series, after :meth:`fit`
    """

    bandwidth: float | str | None = None
    cosine: CosineMap | None = field(default=None, repr=False, compare=False)

    features_depend_on_data: ClassVar[bool] = True
    sees_units: ClassVar[bool] = False

    def fit(self, X: Data) -> Self:
        """Return the kernel with s as a number and the series for the range of X."""
        fitted = super().fit(X)
        s = fitted.sigma
        if self.bandwidth is None or isinstance(self.bandwidth, str):
            s /= float(np.sqrt(X.shape[1]))
        return replace(fitted, bandwidth=s, cosine=fit_cosine_map(X, s))

    def scaled(self, exponent: int) -> Self:
        """Return the kernel for samples times 2**−exponent; the series has to be fitted again."""
        return replace(super().scaled(exponent), cosine=None)

    def features(self, X: Data) -> Array:
        """Return the feature map Z of all features at once, shape (n, 1 + 2 × frequencies × m)."""
        X, cosine = _dense(X), self._series()
        Z = np.empty((X.shape[0], self.n_features_out(X.shape[1])), dtype=X.dtype)
        Z[:, 0] = np.sqrt(cosine.constant)
        _chunk_features(X, cosine, 0, X.shape[1], Z[:, 1:])
        return Z

    def n_features_out(self, m: int, is_sparse: bool = False) -> int:
        """Count a cosine and a sine per feature and frequency, and a constant."""
        cosine = self._series()
        return 1 + 2 * len(cosine.frequencies) * len(cosine.centre)

    def gram(self, X: Data) -> Array:
        """Return Z Zᵀ, summed over chunks of features so that Z never exists as a whole."""
        X, cosine = _dense(X), self._series()
        n = X.shape[0]
        K: Array = np.full((n, n), cosine.constant, dtype=X.dtype)
        syrk = get_blas_funcs("syrk", (K,))
        for start, stop in _chunks(n, X, cosine):
            Z = _chunk_features(X, cosine, start, stop)
            syrk(1.0, Z.T, beta=1.0, c=K.T, trans=1, lower=0, overwrite_c=1)
        mirror_lower(K)
        return K

    def cross(self, X: Data, Y: Data) -> Array:
        """Return kernel values between new samples X and training samples Y."""
        X, Y, cosine = _dense(X), _dense(Y), self._series()
        K: Array = np.full((X.shape[0], Y.shape[0]), cosine.constant, dtype=Y.dtype)
        for start, stop in _chunks(X.shape[0] + Y.shape[0], Y, cosine):
            K += _chunk_features(X, cosine, start, stop) @ _chunk_features(Y, cosine, start, stop).T
        return K

    def diagonal(self, X: Data) -> Array:
        """Return the series at 0, n times."""
        cosine = self._series()
        return np.full(X.shape[0], cosine.constant + cosine.weights.sum(), dtype=X.dtype)

    def _series(self) -> CosineMap:
        if self.cosine is None:
            raise ValueError(f"{self!r} is not fitted: call fit(X) and use the kernel it returns.")
        return self.cosine


def _chunks(n_rows: int, X: Array, cosine: CosineMap) -> list[tuple[int, int]]:
    columns = max(1, _CHUNK_BYTES // (n_rows * X.itemsize * 2 * len(cosine.frequencies)))
    return [(start, min(start + columns, X.shape[1])) for start in range(0, X.shape[1], columns)]


def _chunk_features(X: Array, cosine: CosineMap, start: int, stop: int, out: Array | None = None) -> Array:
    """Return cosines and sines of columns ``start:stop``, shape (n, 2 × frequencies × columns)."""
    n, n_columns, n_frequencies = X.shape[0], stop - start, len(cosine.frequencies)
    if out is None:
        out = np.empty((n, 2 * n_frequencies * n_columns), dtype=X.dtype)
    centred = X[:, start:stop] - cosine.centre[start:stop].astype(X.dtype)
    np.clip(centred, -cosine.half_range, cosine.half_range, out=centred)
    for k, (frequency, weight) in enumerate(zip(cosine.frequencies, cosine.weights, strict=True)):
        amplitude = X.dtype.type(np.sqrt(weight / len(cosine.centre)))
        angle = centred * X.dtype.type(frequency)
        left = 2 * k * n_columns
        out[:, left : left + n_columns] = amplitude * np.cos(angle)
        out[:, left + n_columns : left + 2 * n_columns] = amplitude * np.sin(angle)
    return out


def _dense(X: Data) -> Array:
    return X.toarray() if sparse.issparse(X) else X
