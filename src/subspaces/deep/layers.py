"""Layers that represent each code by the others: a free matrix C (DSC-Net) and KTRR's closed form.

Codes Z are rows, column i of C represents point i, so the rebuilt codes are CᵀZ.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class SelfExpression(nn.Module):
    """Codes rebuilt as CᵀZ with an n × n matrix C of free parameters.

    Parameters
    ----------
    n_points : n
    hollow : keep diag(C) = 0; needed with an ℓ1 penalty, under which C would become the identity
    initial : value every entry of C starts from
    """

    def __init__(self, n_points: int, *, hollow: bool, initial: float = 1e-8, dtype: torch.dtype = torch.float32):
        super().__init__()
        start = torch.full((n_points, n_points), initial, dtype=dtype)
        if hollow:
            start.fill_diagonal_(0)
        self.coefficients = nn.Parameter(start)
        if hollow:  # a diagonal without gradient stays zero, and no step needs a second n × n matrix
            self.coefficients.register_hook(_without_diagonal)

    def forward(self, codes: Tensor) -> Tensor:
        """CᵀZ."""
        return self.coefficients.T @ codes


def _without_diagonal(gradient: Tensor) -> Tensor:
    return gradient.clone().fill_diagonal_(0)


class KTRRLayer(nn.Module):
    """Codes rebuilt by KTRR's closed form: no free coefficients, so no n × n optimiser state.

    Parameters
    ----------
    kernel : "linear", or "rbf" with σ the root mean squared distance between codes
    reg : λ divided by the mean diagonal of K, as in :func:`subspaces.representation.ridge.ridge`
    """

    def __init__(self, kernel: str = "linear", reg: float = 1.0):
        super().__init__()
        self.kernel = kernel
        self.reg = reg

    def forward(self, codes: Tensor) -> Tensor:
        """CᵀZ = Z − diag(U)⁻¹ U Z; C itself is not needed."""
        U = self.inverse(codes)
        return codes - (U @ codes) / U.diagonal()[:, None]

    def coefficients(self, codes: Tensor) -> Tensor:
        """C = I − U diag(U)⁻¹."""
        return ridge_coefficients(self.inverse(codes))

    def inverse(self, codes: Tensor) -> Tensor:
        """U of the codes' kernel matrix."""
        return ridge_inverse(linear_kernel(codes) if self.kernel == "linear" else rbf_kernel(codes), self.reg)


def ridge_inverse(K: Tensor, reg: float) -> Tensor:
    """U = (K + λI)⁻¹, λ = reg × mean diagonal of K, through a Cholesky factor that autograd follows back.

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


def ridge_coefficients(U: Tensor) -> Tensor:
    """C = I − U diag(U)⁻¹ (eq. 3.9 simplified), zero diagonal."""
    C = -U / U.diagonal()
    return C - torch.diag(C.diagonal())


def linear_kernel(codes: Tensor) -> Tensor:
    """ZZᵀ."""
    return codes @ codes.T


def rbf_kernel(codes: Tensor) -> Tensor:
    """exp(−‖z − z'‖²/σ²), σ² the mean of the squared distances over all n² pairs, itself differentiated."""
    products = linear_kernel(codes)
    squared_norms = products.diagonal()
    squared = (squared_norms[:, None] + squared_norms - 2 * products).clamp_min(0)
    squared = squared - torch.diag(squared.diagonal())
    return torch.exp(-squared / squared.mean().clamp_min(torch.finfo(codes.dtype).tiny))


def unit_rows(codes: Tensor) -> Tensor:
    """Rows scaled to length 1; zero rows stay. Blocks the way out of shrinking all codes (Haeffele et al. 2021)."""
    return nn.functional.normalize(codes, dim=1)
