r"""Kernels k(x, y): the paper's six and their relatives, with bandwidths taken from the data.

============================ ============================ ========================================= ===============
name                         class                        k(x, y)                                   bandwidth
============================ ============================ ========================================= ===============
``"rbf"``                    :class:`RBF`                 exp(−d²/σ²), the paper's default          σ
``"exponential"``            :class:`Exponential`         exp(−d/σ)                                 σ
``"inverse_square"``         :class:`InverseSquare`       1/(1 + d²/σ²), the paper's "1/d²"         σ
``"inverse_distance"``       :class:`InverseDistance`     1/(1 + d/σ), the paper's "1/d"            σ
``"linear"``                 :class:`Linear`              xᵀy
``"cosine"``                 :class:`Cosine`              xᵀy/(‖x‖‖y‖)
``"quadratic"``              :class:`Quadratic`           (xᵀy)²
``"cubic"``                  :class:`Cubic`               (xᵀy)³
``"polynomial"``             :class:`Polynomial`          (gamma xᵀy + coef0)^degree
``"sigmoid"``                :class:`Sigmoid`             tanh(gamma xᵀy + coef0)
``"correntropy"``            :class:`Correntropy`         mean over features of exp(−(x_j−y_j)²/s²) s, per feature
``"precomputed"``            :class:`Precomputed`         X is the Gram matrix itself
a callable                   :class:`FunctionKernel`      ``kernel(X, Y, **params)``
============================ ============================ ========================================= ===============

A name and an object mean the same: ``KTRR(kernel="rbf", bandwidth=0.5)`` is ``KTRR(kernel=RBF(0.5))``. How to write a
kernel of your own: :class:`Kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from subspaces.kernels.base import FunctionKernel as FunctionKernel
from subspaces.kernels.base import Kernel as Kernel
from subspaces.kernels.base import Precomputed as Precomputed
from subspaces.kernels.correntropy import Correntropy as Correntropy
from subspaces.kernels.profiles import RBF as RBF
from subspaces.kernels.profiles import Cosine as Cosine
from subspaces.kernels.profiles import Cubic as Cubic
from subspaces.kernels.profiles import DistanceKernel as DistanceKernel
from subspaces.kernels.profiles import DotKernel as DotKernel
from subspaces.kernels.profiles import Exponential as Exponential
from subspaces.kernels.profiles import InverseDistance as InverseDistance
from subspaces.kernels.profiles import InverseSquare as InverseSquare
from subspaces.kernels.profiles import Linear as Linear
from subspaces.kernels.profiles import Polynomial as Polynomial
from subspaces.kernels.profiles import Quadratic as Quadratic
from subspaces.kernels.profiles import Sigmoid as Sigmoid
from subspaces.utils.distances import BANDWIDTHS as BANDWIDTHS
from subspaces.utils.distances import unknown_name
from subspaces.utils.types import Array

_OF_DISTANCES = (RBF, Exponential, InverseSquare, InverseDistance)
_OF_PRODUCTS = (Linear, Cosine, Quadratic, Cubic, Polynomial, Sigmoid)

KERNELS: dict[str, type[Kernel]] = {
    kind.name: kind for kind in (*_OF_DISTANCES, *_OF_PRODUCTS, Correntropy, Precomputed)
}
"""Class of every kernel that has a name."""

KernelLike = str | Callable[[Array, Array], Array] | Kernel
"""Type of the parameter ``kernel`` of an estimator."""


def as_kernel(
    kernel: KernelLike = "rbf", bandwidth: float | str = "rms", params: Mapping[str, Any] | None = None
) -> Kernel:
    """Return the kernel object for a name, a function or an object; check all that needs no data.

    Parameters
    ----------
    kernel : name in ``KERNELS``, callable ``kernel(X, Y, **params)``, or :class:`Kernel`
    bandwidth : ``"rms"``, ``"mean"``, ``"median"`` or a positive number
        For a kernel that has a bandwidth and does not bring its own.
    params : ``gamma``, ``coef0``, ``degree`` of kernels that have them, or keywords of the callable; never changed

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.kernels import as_kernel
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> as_kernel("rbf", bandwidth=5.0)
    RBF(bandwidth=5.0)
    >>> as_kernel("rbf").fit(X).gram(X).round(3)
    array([[1.   , 0.135],
           [0.135, 1.   ]])
    """
    if isinstance(kernel, Kernel):
        if params:
            raise ValueError(f"kernel={kernel!r} brings its own parameters and takes no kernel_params; got {params!r}.")
        return _with_bandwidth(kernel, bandwidth)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(f"kernel={kernel.__name__} is a class; pass an object of it: kernel={kernel.__name__}().")
    if callable(kernel):
        return FunctionKernel(kernel, dict(params or {}))
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(unknown_name("kernel", kernel, tuple(KERNELS)))
    kind, given = KERNELS[kernel], dict(params or {})
    allowed = sorted(part.name for part in fields(kind) if part.init and part.name != "bandwidth")
    unknown = sorted(set(given) - set(allowed))
    if unknown and allowed:
        raise ValueError(f"kernel_params of the {kernel} kernel may hold {allowed}; got {unknown} as well.")
    if unknown:
        raise ValueError(f"kernel={kernel!r} takes no kernel_params; got {unknown}.")
    return _with_bandwidth(kind(**given), bandwidth)


def is_precomputed(kernel: Any) -> bool:
    """Tell whether the parameter ``kernel`` of an estimator says that X is the Gram matrix."""
    return isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == Precomputed.name)


def _with_bandwidth(kernel: Kernel, bandwidth: float | str) -> Kernel:
    if not kernel.has_bandwidth:
        return kernel
    if kernel.bandwidth is None:
        return replace(kernel, bandwidth=bandwidth)
    if bandwidth not in ("rms", kernel.bandwidth):
        raise ValueError(
            f'bandwidth={bandwidth!r} contradicts kernel={kernel!r}: give one of them only (bandwidth="rms" is none).'
        )
    return kernel
