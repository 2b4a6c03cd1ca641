"""KTRRNet: DSC-Net with KTRR's closed form in place of the free matrix, trained end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor, nn

from subspaces.deep.autoencoder import Autoencoder
from subspaces.deep.base import DeepClusterer
from subspaces.deep.layers import KTRRLayer, unit_rows
from subspaces.deep.training import Training
from subspaces.estimators.base import POSITIVE
from subspaces.kernels import as_kernel
from subspaces.representation.coefficients import Coefficients
from subspaces.representation.ridge import ridge


class ClosedFormAutoencoder(nn.Module):
    """Autoencoder whose codes, scaled to unit length, are rebuilt by KTRR before they are decoded."""

    def __init__(self, autoencoder: Autoencoder, layer: KTRRLayer) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.layer = layer

    def loss(self, rows: Tensor, self_expression: float) -> Tensor:
        """½‖X − dec(s CᵀZ)‖² + ½ self_expression ‖Z − CᵀZ‖², Z the unit codes and s their lengths before."""
        raw = self.autoencoder.encode(rows)
        codes = unit_rows(raw)
        rebuilt = self.layer(codes)
        # the decoder learnt codes with lengths
        images = self.autoencoder.decode(rebuilt * raw.norm(dim=1, keepdim=True))
        return 0.5 * (images - rows).square().sum() + 0.5 * self_expression * (codes - rebuilt).square().sum()


@dataclass(eq=False, repr=False, kw_only=True)
class KTRRNet(DeepClusterer):
    """KTRR trained end to end (KTRRNet): codes whose closed-form coefficients rebuild the images.

    min over the network:  ½‖X − dec(CᵀZ)‖² + ½λ₂‖Z − CᵀZ‖²,  C = I − U diag(U)⁻¹,  U = (K(Z) + λI)⁻¹,  Z = enc(X) with
    unit rows, differentiated through the Cholesky factor of K + λI. There are no free coefficients: nothing to
    initialise, no n × n optimiser state, and after training the coefficients are those of KTRR on the codes.

    Parameters
    ----------
    kernel : {"linear", "rbf"}, default="rbf"
        Of the codes; σ of the Gaussian is their root mean squared distance.
    reg : float, default=1
        λ divided by the mean diagonal of K, as in :class:`~subspaces.KTRR`.
    self_expression : float, default=75
        λ₂, relative to squared pixels.
    epochs : int, default=30
        Largest number of steps through the closed form.
    image_shape, channels, kernel_sizes, pretrain_epochs, batch_size, learning_rate, tol, patience
        As in :class:`DSCNet`.
    device, checkpoints, save_every, progress, scaling
        As in :class:`DSCNet`.
    n_clusters, n_nonzero, by, graph, graph_params, partition, n_init, init, connect, out_of_sample, random_state
        As in :class:`~subspaces.KTRR`.

    Examples
    --------
    >>> import numpy as np
    >>> from subspaces.deep import KTRRNet
    >>> X = np.kron(np.eye(2), np.random.default_rng(0).uniform(size=(20, 3)))
    >>> labels = KTRRNet(n_clusters=2, channels=()).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:]))
    (1, 1)
    """

    scaling: str | None = "max"
    kernel: str = "rbf"
    reg: float = 1.0
    self_expression: float = 75.0
    epochs: int = 30

    _constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions({"linear", "rbf"})],
        "reg": [POSITIVE],
    }
    _n_squares = 16
    cost = "O(n³ + n² q) per epoch, q the length of a code; 16 n × n arrays, none kept between epochs"
    reference = "Zhen, Peng, Wang, Yao: Kernel truncated regression, Inf. Sci. 524 (2020) 59-76"

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> ClosedFormAutoencoder:
        return ClosedFormAutoencoder(autoencoder, KTRRLayer(self.kernel, self.reg))

    def _train(self, training: Training, rows: Tensor, network: ClosedFormAutoencoder) -> Coefficients:
        training.stage("closed form", lambda _: network.loss(rows, self.self_expression), self.epochs)
        with torch.no_grad():
            codes = unit_rows(network.autoencoder.encode(rows)).cpu().numpy()
        return ridge(as_kernel(self.kernel).fit(codes).gram(codes), reg=self.reg, overwrite=True)
