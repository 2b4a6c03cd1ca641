"""AE+SSC, AE+KTRR and StructAE: an autoencoder, alone or bound to a prior, then a shallow method on its codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from subspaces.deep.autoencoder import Autoencoder, dense
from subspaces.deep.base import DeepClusterer
from subspaces.deep.training import Training
from subspaces.estimators.base import COUNT, POSITIVE
from subspaces.estimators.graph import WithKernel
from subspaces.graphs.rules import truncate
from subspaces.kernels import KERNELS, Kernel, Linear, as_kernel
from subspaces.kernels.scaling import SCALINGS, apply_scaling, fit_scaling
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import ridge
from subspaces.representation.sparse import ssc
from subspaces.utils.choices import GraphName, Scaling
from subspaces.utils.types import Array, Sparse


@dataclass(eq=False, repr=False, kw_only=True)
class OnCodes:
    """Mixin: train first, then represent the codes by ``_represent_codes``."""

    code_scaling: str | None = "unit"

    _constraints: ClassVar[dict[str, list[Any]]] = {"code_scaling": [StrOptions(set(SCALINGS)), None]}

    def _train(self, training: Training, rows: Tensor, network: Any) -> Coefficients:
        return self._represent_codes(self._scaled_codes(network, rows))

    def _scaled_codes(self, network: Autoencoder, rows: Tensor) -> Array:
        with torch.no_grad():
            return self._scaled(network.encode(rows).cpu().numpy())

    def _scaled(self, codes: Array) -> Array:
        scaled: Array = apply_scaling(codes, fit_scaling(codes, self.code_scaling))
        return scaled

    def _represent_codes(self, codes: Array) -> Coefficients:
        raise NotImplementedError


@dataclass(eq=False, repr=False, kw_only=True)
class AESSC(OnCodes, DeepClusterer):
    """SSC on the codes of an autoencoder (AE+SSC).

    Without layers (``channels=()``) it is :class:`~subspaces.SSC` itself.

    Parameters
    ----------
    code_scaling : {"unit", "max", "standard", None}, default="unit"
        Scaling of the codes before SSC.
    error_weight, affine, ssc_tol, max_iter
        `error_weight`, `affine`, `tol` and `max_iter` of :class:`~subspaces.SSC`.

    Examples
    --------
    >>> from subspaces.deep import AESSC
    >>> AESSC(n_clusters=2, channels=()).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "max"
    graph: GraphName = "mass"
    n_nonzero: int | None = None
    error_weight: float = 20.0
    affine: bool = False
    ssc_tol: float = 1e-4
    max_iter: int = 200

    _constraints: ClassVar[dict[str, list[Any]]] = {"ssc_tol": [POSITIVE]}
    _n_squares = 2.25
    _cost = "an autoencoder, O(n) per epoch, then SSC"
    _reference = "Ji, Zhang, Li, Salzmann, Reid: Deep subspace clustering networks, NeurIPS 2017"

    def _represent_codes(self, codes: Array) -> Coefficients:
        return ssc(codes, error_weight=self.error_weight, affine=self.affine, tol=self.ssc_tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class AEKTRR(WithKernel, OnCodes, DeepClusterer):
    """KTRR on the codes of an autoencoder (AE+KTRR).

    Without layers (``channels=()``) it is :class:`~subspaces.KTRR` itself.

    Parameters
    ----------
    code_scaling : {"unit", "max", "standard", None}, default="unit"
        Scaling of the codes before the kernel.
    reg : float, default=1.0
        λ divided by the mean diagonal of the kernel matrix of the codes.

    Examples
    --------
    >>> from subspaces.deep import AEKTRR
    >>> AEKTRR(n_clusters=2, channels=()).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "max"
    reg: float = 1.0

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(KERNELS) - {"precomputed"}), callable, Kernel]
    }
    _n_squares = 0.7
    _cost = "an autoencoder, O(n) per epoch, then one Cholesky inverse"
    _reference = "Zhen, Peng, Wang, Yao: Kernel truncated regression, Inf. Sci. 524 (2020) 59-76"

    def _represent_codes(self, codes: Array) -> Coefficients:
        kernel = as_kernel(self.kernel, self.bandwidth, self.kernel_params).fit(codes)
        return ridge(kernel.packed_gram(codes), reg=self.reg, overwrite=True)


class StructuredAutoencoder(nn.Module):
    """Autoencoder and prior C, kept as two n × η buffers so that a batch can gather its neighbours."""

    neighbours: Tensor
    values: Tensor

    def __init__(self, autoencoder: Autoencoder, n_samples: int, n_prior: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.register_buffer("neighbours", torch.zeros(n_samples, n_prior, dtype=torch.int64))
        self.register_buffer("values", torch.zeros(n_samples, n_prior, dtype=dtype))

    def set_prior(self, coefficients: Sparse) -> None:
        """Take over a sparse C of at most η entries per column; missing ones become zero coefficients."""
        C = coefficients.tocsc()
        stored = np.arange(self.values.shape[1]) < np.diff(C.indptr)[:, None]
        neighbours, values = np.zeros(stored.shape, np.int64), np.zeros(stored.shape, C.dtype)
        neighbours[stored], values[stored] = C.indices, C.data
        self.neighbours.copy_(torch.from_numpy(neighbours))
        self.values.copy_(torch.from_numpy(values))

    def loss(self, rows: Tensor, batch: Tensor, structure: float, weight_decay: float) -> Tensor:
        """Return the objective's terms of the samples in `batch`; over all batches they sum to the whole."""
        images = rows[batch]
        codes = self.autoencoder.encode(images)
        loss = 0.5 * (self.autoencoder.decode(codes) - images).square().sum()
        if structure:
            neighbours = self.neighbours[batch]
            around = self.autoencoder.encode(rows[neighbours.flatten()]).view(*neighbours.shape, -1)
            rebuilt = torch.einsum("bk,bkq->bq", self.values[batch], around)
            loss = loss + 0.5 * structure * (codes - rebuilt).square().sum()
        if weight_decay:
            squares = torch.stack([weights.square().sum() for weights in self.parameters()]).sum()
            loss = loss + 0.5 * weight_decay * squares * (len(batch) / len(rows))
        return loss


@dataclass(eq=False, repr=False, kw_only=True)
class StructAE(OnCodes, DeepClusterer):
    """Structured autoencoder (StructAE): codes that are rebuilt by the same neighbours as the images.

    min over the network:  Σᵢ ½‖xᵢ − x̂ᵢ‖² + ½λ₁‖hᵢ − H cᵢ‖² + ½λ₂‖weights‖²,  H the codes. The prior C holds the η
    strongest coefficients of ridge regression (TRR) between the images, or between the codes as they become.
    Steps take mini-batches: only the η neighbours of a sample are needed. At the end TRR represents the codes.

    Parameters
    ----------
    hidden : sequence of int, default=(300, 200, 150)
        Sizes of the fully connected tanh layers of the encoder; the last is the length of a code.
    structure : float, default=1
        λ₁, weight of the structure term. 0 is a plain autoencoder.
    weight_decay : float, default=1e-3
        λ₂.
    reg : float, default=0.1
        Of the ridge regression, both for the prior and for the final coefficients of the codes.
    n_prior : int, default=5
        η of the prior.
    update_every : int or None, default=None
        Recompute the prior from the codes every so many epochs; None keeps the one of the images.
    epochs : int, default=100
        Largest number of epochs with the structure term.
    code_scaling : {"unit", "max", "standard", None}, default="unit"
        Scaling of the codes before each ridge regression.
    image_shape, channels, kernel_sizes
        Not used: any rows will do. Images are flattened.
    scaling : default="unit"
        Every image gets length 1.

    Examples
    --------
    >>> from subspaces.deep import StructAE
    >>> X = [[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]]
    >>> StructAE(n_clusters=2, hidden=(6,), pretrain_epochs=10, epochs=10).fit_predict(X)
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "unit"
    hidden: Sequence[int] = (300, 200, 150)
    structure: float = 1.0
    weight_decay: float = 1e-3
    reg: float = 0.1
    n_prior: int = 5
    update_every: int | None = None
    epochs: int = 100

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden": ["array-like"],
        "structure": [Interval(Real, 0, None, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "n_prior": [COUNT],
        "update_every": [COUNT, None],
    }
    _n_squares = 1.25
    _cost = "a Cholesky inverse for each prior and O(η n) network passes per epoch"
    _reference = "Peng, Feng, Xiao, Yau, Zhou, Yang: Structured autoencoders, TIP 27 (2018) 5076-5086"

    def _autoencoder(self, X: Array) -> Autoencoder:
        return dense(X.shape[1], self.hidden) if len(self.hidden) else Autoencoder()

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> StructuredAutoencoder:
        return StructuredAutoencoder(autoencoder, len(rows), min(self.n_prior, len(rows) - 1), rows.dtype)

    def _train(self, training: Training, rows: Tensor, network: Any) -> Coefficients:
        autoencoder = network.autoencoder

        def update(epoch: int) -> None:
            if epoch == 0:
                network.set_prior(self._prior(rows.cpu().numpy()))
            elif self.update_every is not None and epoch % self.update_every == 0:
                network.set_prior(self._prior(self._scaled_codes(autoencoder, rows)))

        training.stage(
            "structure",
            lambda batch: network.loss(rows, batch, self.structure, self.weight_decay),
            self.epochs,
            batch_size=self.batch_size,
            before_epoch=update,
        )
        return self._represent_codes(self._scaled_codes(autoencoder, rows))

    def _prior(self, points: Array) -> Sparse:
        return truncate(self._represent_codes(self._scaled(points)), self.n_prior)

    def _represent_codes(self, codes: Array) -> Coefficients:
        return ridge(Linear().packed_gram(codes), reg=self.reg, overwrite=True)
