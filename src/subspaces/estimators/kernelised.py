"""What the methods share that see the data through a kernel only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from subspaces.estimators.base import POSITIVE, SubspaceClusterer
from subspaces.kernels import BANDWIDTHS, KERNELS, Kernel, KernelLike, as_kernel
from subspaces.numerics.types import Data
from subspaces.scaling import apply_scaling


@dataclass(eq=False, repr=False, kw_only=True)
class KernelClusterer(SubspaceClusterer):
    """Base of the methods that see the data through a kernel only."""

    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"
    kernel_params: Mapping[str, Any] | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SubspaceClusterer._parameter_constraints,
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "bandwidth": [StrOptions(set(BANDWIDTHS)), POSITIVE],
        "kernel_params": [dict, None],
    }

    def _kernel(self, X: Data) -> Data:
        X = apply_scaling(X, self._scaling)
        self.kernel_ = self._settled_kernel(X)
        self._require_memory(X, self._n_squares)
        return self.kernel_.gram(X)

    def _settled_kernel(self, X: Data) -> Kernel:
        kernel = as_kernel(self.kernel, self.bandwidth, self.kernel_params)
        return kernel.scaled(self._scaling.exponent).fit(X)
