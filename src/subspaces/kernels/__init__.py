"""X, Y → K: the paper's six kernels and their relatives, with bandwidths taken from the data.

A kernel is settled in two steps. :func:`fit_kernel` fixes what the data decides (the bandwidth, the range of
the features) and returns a small :class:`Kernel`; :func:`gram`, :func:`cross` and :func:`features` then only
compute. New points are therefore always compared with the bandwidth of the training data.

The kernels ``1/d²`` and ``1/d`` of the paper are infinite on the diagonal as printed, so no Gram matrix of them
exists. The printed results come from the bounded forms ``1/(1 + d²/σ²)`` and ``1/(1 + d/σ)``; these are what
``"inverse_square"`` and ``"inverse_distance"`` compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import get_blas_funcs
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from subspaces.kernels import additive
from subspaces.numerics.blocks import map_blocks, mirror_lower, row_blocks
from subspaces.numerics.distances import BANDWIDTHS as BANDWIDTHS
from subspaces.numerics.distances import (
    origin_of,
    resolve_bandwidth,
    squared_norms_of,
    to_squared_distances,
    unknown_name,
    warn_if_blind,
)
from subspaces.numerics.monomials import monomials, n_monomials
from subspaces.numerics.types import Array, Data

DISTANCE_KERNELS = ("rbf", "exponential", "inverse_square", "inverse_distance")
DOT_KERNELS = ("linear", "cosine", "quadratic", "cubic", "polynomial")
KERNELS = (*DISTANCE_KERNELS, *DOT_KERNELS, "correntropy", "precomputed")
KernelLike = str | Callable[[Array, Array], Array]

_PRODUCT_COLUMNS = 256  # features whose products are summed at once

_POLYNOMIAL_DEFAULTS = {"degree": 3, "gamma": 1.0, "coef0": 1.0}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with everything the data had to decide settled.

    Attributes
    ----------
    name : one of ``KERNELS``, or ``"callable"``
    bandwidth : σ of the distance kernels, s of the additive one, None for the others
    params : parameters of ``"polynomial"`` (degree, gamma, coef0) or keywords of a callable
    additive : range and frequencies of ``"correntropy"``
    function : the callable itself
    """

    name: str
    bandwidth: float | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    additive: additive.CosineMap | None = None
    function: Callable[..., Array] | None = None


def fit_kernel(
    X: Data,
    kernel: KernelLike = "rbf",
    bandwidth: float | str = "rms",
    params: Mapping[str, Any] | None = None,
) -> Kernel:
    r"""Settle a kernel on data: its bandwidth and its feature range.

    ============================ ========================================= ===============
    name                         k(x, y)                                   bandwidth
    ============================ ========================================= ===============
    ``"rbf"``                    exp(−d²/σ²), the paper's default          σ
    ``"exponential"``            exp(−d/σ)                                 σ
    ``"inverse_square"``         1/(1 + d²/σ²), the paper's "1/d²"         σ
    ``"inverse_distance"``       1/(1 + d/σ), the paper's "1/d"            σ
    ``"quadratic"``, ``"cubic"`` (xᵀy)², (xᵀy)³
    ``"polynomial"``             (gamma xᵀy + coef0)^degree
    ``"linear"``, ``"cosine"``   xᵀy, xᵀy/(‖x‖‖y‖)
    ``"correntropy"``            mean over features of exp(−(x_j−y_j)²/s²) s, per feature
    ``"precomputed"``            X is the Gram matrix itself
    a callable                   ``kernel(X, Y, **params)``
    ============================ ========================================= ===============

    Parameters
    ----------
    X : array of shape (n, m), dense or sparse
    kernel : name or callable
    bandwidth : ``"rms"``, ``"mean"``, ``"median"`` or a positive number
        ``"rms"``: σ² is the mean of the squared distances over all n² pairs (what the authors' program used;
        costs O(nm)). ``"mean"``: the mean distance (the paper's text; costs one more product X Xᵀ).
        ``"median"``: of the distances among up to 2048 evenly spaced points. For ``"correntropy"`` the rule is
        divided by √m, which makes it a typical difference of one feature.
    params : parameters of the polynomial kernel or keywords of the callable; never changed

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.kernels import fit_kernel, gram
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> kernel = fit_kernel(X, "rbf", bandwidth=5.0)
    >>> gram(X, kernel).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    params = dict(params or {})
    if callable(kernel):
        return Kernel("callable", params=params, function=kernel)
    if kernel not in KERNELS:
        raise ValueError(unknown_name("kernel", kernel, KERNELS))
    if kernel == "polynomial":
        unknown = set(params) - set(_POLYNOMIAL_DEFAULTS)
        if unknown:
            raise ValueError(
                f"kernel_params of the polynomial kernel may hold {sorted(_POLYNOMIAL_DEFAULTS)}; "
                f"got {sorted(unknown)} as well."
            )
        params = {**_POLYNOMIAL_DEFAULTS, **params}
        _check_polynomial(**params)
        return Kernel(kernel, params=params)
    if params:
        raise ValueError(f"kernel={kernel!r} takes no kernel_params; got {sorted(params)}.")
    if kernel in DISTANCE_KERNELS:
        sigma = resolve_bandwidth(X, bandwidth)
        warn_if_blind(X, sigma, 2 if kernel in ("rbf", "inverse_square") else 1)
        return Kernel(kernel, bandwidth=sigma)
    if kernel == "correntropy":
        s = resolve_bandwidth(X, bandwidth)
        if isinstance(bandwidth, str):
            s /= float(np.sqrt(X.shape[1]))
        return Kernel(kernel, bandwidth=s, additive=additive.fit_cosine_map(X, s))
    return Kernel(kernel)


def sees_units(kernel: Any) -> bool:
    """Whether a common factor of all points is more to a kernel than a factor of its values or of its bandwidth."""
    return callable(kernel) or kernel == "polynomial"


def gram(X: Data, kernel: Kernel) -> Array:
    """Gram matrix K (eq. 3.8) of the rows of X: exactly symmetric, in X's dtype, one n × n array in all."""
    if kernel.name == "precomputed":
        return checked_gram(X, "the precomputed kernel matrix")
    if kernel.name == "callable":
        return checked_gram(_call(kernel, X, X), f"the matrix returned by the kernel {_name(kernel)}")
    if kernel.name == "correntropy":
        assert kernel.additive is not None
        return additive.gram(X, kernel.additive)
    if kernel.name in DISTANCE_KERNELS:
        K = _lower_products(X, None if sparse.issparse(X) else origin_of(X))
        squared_norms = K.diagonal().copy()

        def transform(block: Array, rows: slice, columns: slice) -> None:
            to_squared_distances(block, squared_norms[rows], squared_norms[columns])
            if rows == columns:
                np.fill_diagonal(block, 0)
            apply_profile(block, kernel)

        mirror_lower(K, transform)
        return K
    K = _lower_products(normalize(X) if kernel.name == "cosine" else X)
    mirror_lower(K, lambda block, rows, columns: apply_profile(block, kernel))
    return K


def cross(X: Data, Y: Data, kernel: Kernel) -> Array:
    """Kernel values between the rows of X (new points) and those of Y (training points), shape (n_X, n_Y)."""
    if kernel.name == "precomputed":
        return np.asarray(X)
    if kernel.name == "callable":
        return _call(kernel, X, Y)
    if kernel.name == "correntropy":
        assert kernel.additive is not None
        return additive.cross(X, Y, kernel.additive)
    if kernel.name == "cosine":
        X, Y = normalize(X), normalize(Y)
    elif kernel.name in DISTANCE_KERNELS and not (sparse.issparse(X) or sparse.issparse(Y)):
        origin = origin_of(Y)
        X, Y = X - origin, Y - origin
    K: Array = np.ascontiguousarray(safe_sparse_dot(X, Y.T, dense_output=True))
    x_norms, y_norms = squared_norms_of(X), squared_norms_of(Y)

    def apply(start: int, stop: int) -> None:
        block = K[start:stop]
        if kernel.name in DISTANCE_KERNELS:
            to_squared_distances(block, x_norms[start:stop], y_norms)
        apply_profile(block, kernel)

    map_blocks(apply, row_blocks(K.shape[0], K.shape[1] * K.itemsize))
    return K


def features(X: Data, kernel: Kernel) -> Data | None:
    """Exact explicit feature map Z with K = Z Zᵀ, or None where there is none of finite size.

    Linear: X itself. Cosine: its unit rows. Quadratic, cubic, polynomial: the monomials (eq. 3.23) of X and of a
    constant where there is an intercept. Correntropy: the cosine expansion the Gram matrix is computed from.
    """
    if kernel.name == "linear":
        return X
    if kernel.name == "cosine":
        return normalize(X)
    if kernel.name == "correntropy":
        assert kernel.additive is not None
        return additive.features(X, kernel.additive)
    power = _power(kernel)
    if power is None or sparse.issparse(X):
        return None
    degree, gamma, coef0 = power
    if gamma != 1:
        X = X * X.dtype.type(gamma**0.5)
    if coef0:
        X = np.column_stack([X, np.full(len(X), coef0**0.5, dtype=X.dtype)])
    return monomials(X, degree)


def n_features_out(kernel: Kernel, n_features: int, is_sparse: bool = False) -> int | None:
    """Columns of :func:`features` without computing it; None where there is no map."""
    if kernel.name in ("linear", "cosine"):
        return n_features
    if kernel.name == "correntropy":
        assert kernel.additive is not None
        return kernel.additive.n_features_out
    power = _power(kernel)
    if power is None or is_sparse:
        return None
    return n_monomials(n_features + (power[2] > 0), power[0])


def _power(kernel: Kernel) -> tuple[int, float, float] | None:
    """Degree, γ and c of a kernel (γ xᵀy + c)^degree that has a feature map (c ≥ 0), else None."""
    if kernel.name in ("quadratic", "cubic"):
        return 2 if kernel.name == "quadratic" else 3, 1.0, 0.0
    if kernel.name == "polynomial" and kernel.params["coef0"] >= 0:
        return int(kernel.params["degree"]), float(kernel.params["gamma"]), float(kernel.params["coef0"])
    return None


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


def _lower_products(X: Data, origin: Array | None = None) -> Array:
    """(X − origin)(X − origin)ᵀ with its lower triangle filled (BLAS syrk: half the work of a full product).

    Some columns at a time, so that only they exist a second time; as many as BLAS takes at once itself: no slower.
    """
    if sparse.issparse(X):
        product: Array = np.ascontiguousarray((X @ X.T).toarray())
        return product
    if origin is None:
        parts = iter([np.ascontiguousarray(X)])
    else:
        starts = range(0, X.shape[1], _PRODUCT_COLUMNS)
        parts = (X[:, i : i + _PRODUCT_COLUMNS] - origin[i : i + _PRODUCT_COLUMNS] for i in starts)
    K: Array = np.zeros((X.shape[0], X.shape[0]), dtype=X.dtype)
    syrk = get_blas_funcs("syrk", (X,))
    for part in parts:
        # K.T is K's memory in Fortran's order: upper there is lower here
        syrk(1.0, np.ascontiguousarray(part).T, beta=1.0, c=K.T, trans=1, lower=0, overwrite_c=1)
    return K


def apply_profile(block: Array, kernel: Kernel) -> None:
    """Apply the kernel's scalar function to a block of squared distances or dot products, in place."""
    if kernel.name == "rbf":
        block *= -1 / _sigma(kernel) ** 2
        np.exp(block, out=block)
    elif kernel.name == "exponential":
        np.sqrt(block, out=block)
        block *= -1 / _sigma(kernel)
        np.exp(block, out=block)
    elif kernel.name in ("inverse_square", "inverse_distance"):
        if kernel.name == "inverse_distance":
            np.sqrt(block, out=block)
            block *= 1 / _sigma(kernel)
        else:
            block *= 1 / _sigma(kernel) ** 2
        block += 1
        np.reciprocal(block, out=block)
    elif kernel.name == "quadratic":
        np.square(block, out=block)
    elif kernel.name == "cubic":
        block *= np.square(block)
    elif kernel.name == "polynomial":
        block *= kernel.params["gamma"]
        block += kernel.params["coef0"]
        with np.errstate(over="ignore"):
            np.power(block, kernel.params["degree"], out=block)
        if not np.isfinite(block).all():
            raise ValueError(
                f"the polynomial kernel with {dict(kernel.params)} is too large for {block.dtype} on these points: "
                'scale them (scaling="unit") or lower degree, gamma or coef0.'
            )


def _sigma(kernel: Kernel) -> float:
    assert kernel.bandwidth is not None
    return kernel.bandwidth


def _call(kernel: Kernel, X: Data, Y: Data) -> Array:
    assert kernel.function is not None
    try:
        K = np.asarray(kernel.function(X, Y, **kernel.params))
    except Exception as error:
        raise ValueError(f"the kernel {_name(kernel)} raised {type(error).__name__}: {error}") from error
    if K.shape != (X.shape[0], Y.shape[0]):
        raise ValueError(
            f"the kernel {_name(kernel)} must return an array of shape {(X.shape[0], Y.shape[0])}; got {K.shape}."
        )
    if K.dtype.kind not in "fiub":
        raise ValueError(f"the kernel {_name(kernel)} must return real numbers; got an array of {K.dtype}.")
    return K.astype(X.dtype, copy=False)


def _check_polynomial(degree: Any, gamma: Any, coef0: Any) -> None:
    """Refuse what makes no kernel: powers of negative numbers, NaN, text."""
    if not isinstance(degree, Integral) or degree < 1:
        raise ValueError(f"degree of the polynomial kernel must be a positive integer; got {degree!r}.")
    for name, value, least in (("gamma", gamma, "positive"), ("coef0", coef0, "finite")):
        if not isinstance(value, Real) or not np.isfinite(float(value)) or (least == "positive" and value <= 0):
            raise ValueError(f"{name} of the polynomial kernel must be a {least} number; got {value!r}.")


def _name(kernel: Kernel) -> str:
    return getattr(kernel.function, "__name__", repr(kernel.function))
