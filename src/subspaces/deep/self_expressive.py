"""DSC-Net and KTRRNet: an autoencoder with a layer between its halves that represents each code by the others.

The layer is a free matrix C (DSC-Net) or KTRR's closed form. Codes Z are rows, column i of C represents sample i, so
the rebuilt codes are CᵀZ.
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
from subspaces.kernels import as_kernel
from subspaces.representation.coefficients import Coefficients, from_dense
from subspaces.representation.ridge import ridge
from subspaces.utils.choices import AssignLabels, GraphName, Scaling
from subspaces.utils.types import Array


def ridge_rebuilt(codes: Tensor, kernel: str, reg: float) -> Tensor:
    """Return CᵀZ = Z − diag(U)⁻¹ U Z by KTRR's closed form; C itself is not needed."""
    U = codes_inverse(codes, kernel, reg)
    return codes - (U @ codes) / U.diagonal()[:, None]


def codes_inverse(codes: Tensor, kernel: str, reg: float) -> Tensor:
    """Return U of the codes' kernel matrix, "linear" or "rbf"."""
    return ridge_inverse(codes @ codes.T if kernel == "linear" else rbf_kernel(codes), reg)


def ridge_inverse(K: Tensor, reg: float) -> Tensor:
    """Return U = (K + λI)⁻¹, λ = reg × mean diagonal of K, through a Cholesky factor that autograd follows back.

    Where rounding makes the factorisation fail (codes that have become equal, a small reg), λ is raised in steps of
    ten, from the rounding of K on, up to √ε of the mean diagonal.
    """
    scale, eps = K.diagonal().mean(), torch.finfo(K.dtype).eps
    jitter = 0.0
    while True:
        shift = (reg + jitter) * scale
        factor, failed = torch.linalg.cholesky_ex(K + torch.diag(shift.expand(len(K))))
        if not failed:
            return torch.cholesky_inverse(factor)
        if not jitter < eps**0.5:
            raise ValueError(
                f"K + λI (λ = {float(shift):.3g}) is not positive definite in {K.dtype}: increase reg, or lower the "
                "learning rate if the codes are no longer finite."
            )
        jitter = min(max(10 * jitter, len(K) * eps), eps**0.5)


def rbf_kernel(codes: Tensor) -> Tensor:
    """Return exp(−‖z − z'‖²/σ²), σ² the mean of the squared distances over all n² pairs, itself differentiated."""
    products = codes @ codes.T
    squared_norms = products.diagonal()
    squared = (squared_norms[:, None] + squared_norms - 2 * products).clamp_min(0)
    squared = squared - torch.diag(squared.diagonal())
    return torch.exp(-squared / squared.mean().clamp_min(torch.finfo(codes.dtype).tiny))


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

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> SelfExpressiveAutoencoder:
        return SelfExpressiveAutoencoder(autoencoder, len(rows), self.norm, rows.dtype)


class ClosedFormAutoencoder(nn.Module):
    """Autoencoder whose codes, scaled to unit length, are rebuilt by KTRR before they are decoded."""

    def __init__(self, autoencoder: Autoencoder, kernel: str, reg: float) -> None:
        super().__init__()
        self.autoencoder = autoencoder
        self.kernel, self.reg = kernel, reg

    def loss(self, rows: Tensor, error_weight: float) -> Tensor:
        """Return ½‖X − dec(s CᵀZ)‖² + ½ error_weight ‖Z − CᵀZ‖², Z the unit codes and s their lengths before."""
        raw = self.autoencoder.encode(rows)
        codes = unit_rows(raw)
        rebuilt = ridge_rebuilt(codes, self.kernel, self.reg)
        # the decoder learnt codes with lengths
        images = self.autoencoder.decode(rebuilt * raw.norm(dim=1, keepdim=True))
        return 0.5 * (images - rows).square().sum() + 0.5 * error_weight * (codes - rebuilt).square().sum()


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
    error_weight : float, default=75
        λ₂, relative to squared pixels.
    epochs : int, default=30
        Largest number of steps through the closed form.

    Examples
    --------
    >>> from subspaces.deep import KTRRNet
    >>> KTRRNet(n_clusters=2, channels=()).fit_predict([[1, 0], [2, 0], [3, 0], [0, 1], [0, 2], [0, 3]])
    array([0, 0, 0, 1, 1, 1])
    """

    scaling: Scaling | None = "max"
    kernel: str = "rbf"
    reg: float = 1.0
    error_weight: float = 75.0
    epochs: int = 30

    _constraints: ClassVar[dict[str, list[Any]]] = {"kernel": [StrOptions({"linear", "rbf"})]}
    _n_squares = 16
    _cost = "O(n³ + n² q) per epoch, q the length of a code; 16 n × n arrays, none kept between epochs"
    _reference = "Zhen, Peng, Wang, Yao: Kernel truncated regression, Inf. Sci. 524 (2020) 59-76"

    def _network(self, autoencoder: Autoencoder, rows: Tensor) -> ClosedFormAutoencoder:
        return ClosedFormAutoencoder(autoencoder, self.kernel, self.reg)

    def _train(self, training: Training, rows: Tensor, network: ClosedFormAutoencoder) -> Coefficients:
        training.stage("closed form", lambda _: network.loss(rows, self.error_weight), self.epochs)
        with torch.no_grad():
            codes = unit_rows(network.autoencoder.encode(rows)).cpu().numpy()
        return ridge(as_kernel(self.kernel).fit(codes).packed_gram(codes), reg=self.reg, overwrite=True)
