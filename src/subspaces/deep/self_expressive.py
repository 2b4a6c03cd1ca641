"""DSC-Net: an autoencoder with a matrix C between its halves that represents each code by the others.

Codes Z are rows, column i of C represents sample i, so the rebuilt codes are CᵀZ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from subspaces.deep.autoencoder import Autoencoder
from subspaces.deep.base import DeepClusterer
from subspaces.deep.training import Training
from subspaces.estimators.base import POSITIVE
from subspaces.representation.coefficients import Coefficients, from_dense
from subspaces.utils.choices import AssignLabels, GraphName, Scaling
from subspaces.utils.types import Array


def unit_rows(codes: Tensor) -> Tensor:
    """Scale rows to length 1, zero rows stay: prevents the shrinking of all codes (Haeffele et al. 2021)."""
    return nn.functional.normalize(codes, dim=1)


class SelfExpressiveAutoencoder(nn.Module):
    """Autoencoder and an n × n matrix C of free parameters that rebuilds its codes as CᵀZ.

    Under the norm "l1" diag(C) stays 0: C would become the identity.
    """

    def __init__(self, autoencoder: Autoencoder, n_samples: int, norm: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.norm = norm
        self.coefficients = nn.Parameter(torch.full((n_samples, n_samples), 1e-8, dtype=dtype))
        if norm == "l1":  # a diagonal without gradient stays zero, and no step needs a second n × n matrix
            self.coefficients.data.fill_diagonal_(0)
            self.coefficients.register_hook(lambda gradient: gradient.clone().fill_diagonal_(0))

    def loss(self, rows: Tensor, norm_weight: float, error_weight: float) -> Tensor:
        """Return ½‖X − dec(CᵀZ)‖² + norm_weight ‖C‖₁ or ‖C‖² + ½ error_weight ‖Z − CᵀZ‖², Z = enc(X)."""
        codes, C = self.autoencoder.encode(rows), self.coefficients
        rebuilt = C.T @ codes
        size = C.abs().sum() if self.norm == "l1" else C.square().sum()
        return (
            0.5 * (self.autoencoder.decode(rebuilt) - rows).square().sum()
            + norm_weight * size
            + 0.5 * error_weight * (codes - rebuilt).square().sum()
        )

    def matrix(self) -> Array:
        """Return a copy of C, with the diagonal it was trained with."""
        return self.coefficients.detach().cpu().numpy().copy()


@dataclass(eq=False, repr=False, kw_only=True)
class SelfExpressive:
    """Mixin of DSC-Net and DASC: free coefficients, trained with the network."""

    scaling: Scaling | None = "max"
    graph: GraphName = "dscnet"
    assign_labels: AssignLabels = "discretize"
    norm: str = "l2"
    norm_weight: float = 0.5
    error_weight: float = 75.0
    epochs: int = 30

    _constraints: ClassVar[dict[str, list[Any]]] = {"norm": [StrOptions({"l1", "l2"})], "norm_weight": [POSITIVE]}
    _n_squares: ClassVar[float] = 6

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> SelfExpressiveAutoencoder:
        return SelfExpressiveAutoencoder(autoencoder, len(rows), self.norm, rows.dtype)

    def _train(self, training: Training, rows: Tensor, network: SelfExpressiveAutoencoder) -> Coefficients:
        training.stage(
            "self-expression", lambda _: network.loss(rows, self.norm_weight, self.error_weight), self.epochs
        )
        return from_dense(network.matrix())


@dataclass(eq=False, repr=False, kw_only=True)
class DSCNet(SelfExpressive, DeepClusterer):
    """Deep subspace clustering network (DSC-Net): codes that represent each other, learnt with their coefficients.

    min over network and C:  ½‖X − dec(CᵀZ)‖² + λ₁‖C‖ + ½λ₂‖Z − CᵀZ‖²,  Z = enc(X), by Adam on all images at once,
    after the autoencoder has been trained alone. C is a free n × n parameter.

    Networks are trained in the precision of X; whole numbers become float32.

    Parameters
    ----------
    norm : {"l2", "l1"}, default="l2"
        ‖C‖² with a free diagonal, as in the authors' program, or ‖C‖₁ with a zero diagonal.
    norm_weight : float, default=0.5
        λ₁, of the norm of C.
    error_weight : float, default=75
        λ₂. Both weights depend on the scale of the pixels and on n; the defaults are the authors' for COIL20
        (pixels in [0, 1]), divided by the 2 their program leaves out of the reconstruction term.
    epochs : int, default=30
        Largest number of steps with C.
    scaling : default="max"
        Largest pixel 1.
    graph, graph_params, assign_labels
        ``"dscnet"`` and ``"discretize"`` are the authors' choice; look at other graphs as well, much of the published
        accuracy comes from this one.

    Examples
    --------
    >>> from subspaces.deep import DSCNet
    >>> X = [[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]]
    >>> DSCNet(n_clusters=2, channels=(), graph="symmetric").fit_predict(X)
    array([0, 0, 0, 1, 1, 1])
    """

    _cost = "O(n² q) per epoch, q the length of a code; six n × n arrays"
    _reference = "Ji, Zhang, Li, Salzmann, Reid: Deep subspace clustering networks, NeurIPS 2017"
