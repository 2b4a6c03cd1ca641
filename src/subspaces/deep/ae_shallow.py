"""AE+SSC and AE+KTRR: an autoencoder trained alone, then a shallow method on its codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor

from subspaces.deep.autoencoder import Autoencoder
from subspaces.deep.base import DeepClusterer
from subspaces.deep.training import Training
from subspaces.estimators.base import POSITIVE
from subspaces.kernels import BANDWIDTHS, KERNELS, Kernel, KernelLike, as_kernel
from subspaces.numerics.types import Array
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import ridge
from subspaces.representation.sparse import ssc
from subspaces.scaling import SCALINGS, apply_scaling, fit_scaling


@dataclass(eq=False, repr=False, kw_only=True)
class EncodedClusterer(DeepClusterer):
    """Base of the methods that train first and then represent: ``_represent_codes`` makes coefficients of codes."""

    code_scaling: str | None = "unit"

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "code_scaling": [StrOptions(set(SCALINGS)), None],
    }

    def _train(self, training: Training, rows: Tensor, network: Autoencoder) -> Coefficients:
        return self._represent_codes(self._scaled_codes(network, rows))

    def _scaled_codes(self, network: Autoencoder, rows: Tensor) -> Array:
        with torch.no_grad():
            codes = network.encode(rows).cpu().numpy()
        scaled: Array = apply_scaling(codes, fit_scaling(codes, self.code_scaling))
        return scaled

    def _represent_codes(self, codes: Array) -> Coefficients:
        raise NotImplementedError


@dataclass(eq=False, repr=False, kw_only=True)
class AESSC(EncodedClusterer):
    """SSC on the codes of an autoencoder (AE+SSC).

    Without layers (``channels=()``) it is :class:`~subspaces.SSC` itself.

    Parameters
    ----------
    alpha, affine, max_iter
        As in :class:`~subspaces.SSC`; ``ssc_tol`` is its `tol`.
    code_scaling : {"unit", "max", "standard", None}, default="unit"
        Scaling of the codes before SSC.
    image_shape, channels, kernel_sizes, pretrain_epochs, batch_size, learning_rate, tol, patience
        As in :class:`DSCNet`.
    device, checkpoints, save_every, progress, scaling
        As in :class:`DSCNet`.
    n_clusters, n_nonzero, by, graph, graph_params, partition, n_init, init, connect, out_of_sample, random_state
        As in :class:`~subspaces.KTRR`; ``graph="mass"`` is SSC's.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.deep import AESSC
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> labels = AESSC(n_clusters=2, channels=()).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    scaling: str | None = "max"
    graph: str = "mass"
    n_nonzero: int | None = None
    alpha: float = 20.0
    affine: bool = False
    ssc_tol: float = 1e-4
    max_iter: int = 200

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "ssc_tol": [POSITIVE],
    }
    _n_squares = 2.25
    cost = "an autoencoder, O(n) per epoch, then SSC"
    reference = "Ji, Zhang, Li, Salzmann, Reid: Deep subspace clustering networks, NeurIPS 2017"

    def _represent_codes(self, codes: Array) -> Coefficients:
        return ssc(codes, alpha=self.alpha, affine=self.affine, tol=self.ssc_tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class AEKTRR(EncodedClusterer):
    """KTRR on the codes of an autoencoder (AE+KTRR).

    Without layers (``channels=()``) it is :class:`~subspaces.KTRR` itself.

    Parameters
    ----------
    reg, kernel, bandwidth, kernel_params
        As in :class:`~subspaces.KTRR`, for the codes.
    code_scaling : {"unit", "max", "standard", None}, default="unit"
        Scaling of the codes before the kernel.
    image_shape, channels, kernel_sizes, pretrain_epochs, batch_size, learning_rate, tol, patience
        As in :class:`DSCNet`.
    device, checkpoints, save_every, progress, scaling
        As in :class:`DSCNet`.
    n_clusters, n_nonzero, by, graph, graph_params, partition, n_init, init, connect, out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.deep import AEKTRR
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).normal(size=(20, 3)))
    >>> labels = AEKTRR(n_clusters=2, channels=()).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    scaling: str | None = "max"
    reg: float = 1.0
    kernel: KernelLike = "rbf"
    bandwidth: float | str = "rms"
    kernel_params: Mapping[str, Any] | None = None

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "reg": [POSITIVE],
        "kernel": [StrOptions(set(KERNELS) - {"precomputed"}), callable, Kernel],
        "bandwidth": [StrOptions(set(BANDWIDTHS)), POSITIVE],
        "kernel_params": [dict, None],
    }
    _n_squares = 1.25
    cost = "an autoencoder, O(n) per epoch, then one Cholesky inverse"
    reference = "Zhen, Peng, Wang, Yao: Kernel truncated regression, Inf. Sci. 524 (2020) 59-76"

    def _represent_codes(self, codes: Array) -> Coefficients:
        kernel = as_kernel(self.kernel, self.bandwidth, self.kernel_params).fit(codes)
        return ridge(kernel.gram(codes), reg=self.reg, overwrite=True)
