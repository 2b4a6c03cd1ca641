"""DSC-Net: an autoencoder with a layer of free self-expression coefficients between its halves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from subspaces.deep.autoencoder import Autoencoder
from subspaces.deep.base import DeepClusterer
from subspaces.deep.layers import SelfExpression
from subspaces.deep.training import Training
from subspaces.estimators.base import POSITIVE
from subspaces.numerics.types import Array
from subspaces.representation.coefficients import Coefficients, from_dense


class SelfExpressiveAutoencoder(nn.Module):
    """Autoencoder and self-expression layer, and the loss that joins them."""

    def __init__(self, autoencoder: Autoencoder, expression: SelfExpression, norm: str) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.expression = expression
        self.norm = norm

    def loss(self, rows: Tensor, norm_weight: float, self_expression: float) -> Tensor:
        """½‖X − dec(CᵀZ)‖² + norm_weight ‖C‖₁ or ‖C‖² + ½ self_expression ‖Z − CᵀZ‖², Z = enc(X)."""
        codes = self.autoencoder.encode(rows)
        rebuilt = self.expression(codes)
        C = self.expression.coefficients
        size = C.abs().sum() if self.norm == "l1" else C.square().sum()
        return (
            0.5 * (self.autoencoder.decode(rebuilt) - rows).square().sum()
            + norm_weight * size
            + 0.5 * self_expression * (codes - rebuilt).square().sum()
        )


@dataclass(eq=False, repr=False, kw_only=True)
class DSCNet(DeepClusterer):
    """Deep subspace clustering network (DSC-Net): codes that represent each other, learnt with their coefficients.

    min over network and C:  ½‖X − dec(CᵀZ)‖² + λ₁‖C‖ + ½λ₂‖Z − CᵀZ‖²,  Z = enc(X), by Adam on all images at once,
    after the autoencoder has been trained alone. C is a free n × n parameter.

    Parameters
    ----------
    norm : {"l2", "l1"}, default="l2"
        ‖C‖² with a free diagonal, as in the authors' program, or ‖C‖₁ with a zero diagonal.
    norm_weight : float, default=0.5
        λ₁, of the norm of C.
    self_expression : float, default=75
        λ₂. Both weights depend on the scale of the pixels and on n; the defaults are the authors' for COIL20
        (pixels in [0, 1]), divided by the 2 their program leaves out of the reconstruction term.
    epochs : int, default=30
        Largest number of steps with C.
    image_shape : (height, width) or (height, width, channels), optional
        Needed if X has flat rows, channels last; images may also be (n, h, w), (n, h, w, c) or (n, c, h, w).
    channels, kernel_sizes : sequences of int, optional
        Of the encoder's layers, each of stride 2; by default what the authors used for the image size, else halvings
        down to 16 × 16 with 15 channels. ``channels=()``: no autoencoder, the pixels are the codes.
    pretrain_epochs, batch_size
        Largest number of epochs of the autoencoder alone, and the images per step there (None: all).
    learning_rate : float, default=0.001
        Of Adam.
    tol, patience
        A stage ends early when its lowest loss fell by less than `tol` of itself in `patience` epochs; None: never.
        Labels are never looked at.
    device : str, default="cpu"
        Any device of PyTorch.
    checkpoints, save_every
        Folder for the state of the training, saved every so many epochs; a run that was interrupted continues from
        there, with the result it would have had. One file for the autoencoder, shared by all methods, one for the rest;
        what was trained once serves every graph and cut.
    progress : bool or callable, default=False
        Show bars, or call ``progress(stage, epoch, epochs, loss)``.
    scaling : default="max"
        Largest pixel 1.
    graph, graph_params, partition
        ``"dscnet"`` and ``"discretize"`` are the authors' choice; look at other graphs as well, much of the published
        accuracy comes from this one.
    n_clusters, n_nonzero, by, n_init, init, connect, out_of_sample, random_state
        As in :class:`~subspaces.KTRR`. Networks are trained in the precision of X; whole numbers become float32.

    Attributes
    ----------
    losses_ : dict of the losses of each stage
    image_shape_ : (height, width, channels)
    labels_, coefficients_, affinity_matrix_, embedding_, n_clusters_, timings_
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.deep import DSCNet
    >>> rng = np.random.default_rng(0)
    >>> X = np.kron(np.eye(2), rng.uniform(size=(20, 3)))
    >>> labels = DSCNet(n_clusters=2, channels=(), graph="symmetric").fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    scaling: str | None = "max"
    graph: str = "dscnet"
    partition: str = "discretize"
    norm: str = "l2"
    norm_weight: float = 0.5
    self_expression: float = 75.0
    epochs: int = 30

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "norm": [StrOptions({"l1", "l2"})],
        "norm_weight": [POSITIVE],
    }
    _n_squares = 6
    cost = "O(n² q) per epoch, q the length of a code; six n × n arrays"
    reference = "Ji, Zhang, Li, Salzmann, Reid: Deep subspace clustering networks, NeurIPS 2017"

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> SelfExpressiveAutoencoder:
        expression = SelfExpression(len(rows), hollow=self.norm == "l1", dtype=rows.dtype)
        return SelfExpressiveAutoencoder(autoencoder, expression, self.norm)

    def _train(self, training: Training, rows: Tensor, network: SelfExpressiveAutoencoder) -> Coefficients:
        training.stage(
            "self-expression", lambda _: network.loss(rows, self.norm_weight, self.self_expression), self.epochs
        )
        return from_dense(coefficient_matrix(network.expression))


def coefficient_matrix(expression: SelfExpression) -> Array:
    """C as an array of its own, with the diagonal it was trained with."""
    C: Array = expression.coefficients.detach().cpu().numpy().copy()
    return C
