"""Linear flows: scale, rotate and shift. However many are stacked, they are one affine map.

    elementwise   x = a ∘ z + b                 log|det ∂x/∂z| = Σ log|a_i|
    matrix        x = W z + b,  W = P L U       log|det ∂x/∂z| = Σ log|u_ii|: triangular factors cost O(D), not O(D³)

    a₂ (a₁ z + b₁) + b₂ = (a₂ a₁) z + (a₂ b₁ + b₂)        so a Gaussian stays a Gaussian

Systems: normalizing-flow
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from descend.nn.flow.bijection import Bijection, Moved


class ElementwiseAffine(Bijection):
    """x = a ∘ z + b with any a_i ≠ 0; a starts at 1, b at 0."""

    def __init__(self, size: int):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(size)), nn.Parameter(torch.zeros(size))

    def forward(self, z: Tensor) -> Moved:
        return self.a * z + self.b, self.a.abs().log().sum().expand(len(z))

    def inverse(self, x: Tensor) -> Moved:
        return (x - self.b) / self.a, -self.a.abs().log().sum().expand(len(x))


class LinearFlow(Bijection):
    """x = W z + b with W = P L U: a fixed permutation P, L with ones on its diagonal, U with a diagonal that is not 0.

    It starts as a random rotation.
    """

    permutation: Tensor

    def __init__(self, size: int):
        super().__init__()
        w = torch.linalg.qr(torch.randn(size, size, device="cpu"))[0]
        p, lower, upper = torch.linalg.lu(w)
        self.register_buffer("permutation", p)
        self.lower, self.upper = nn.Parameter(lower.tril(-1)), nn.Parameter(upper.triu(1))
        diagonal = upper.diagonal()
        self.register_buffer("sign", diagonal.sign())
        self.log_diagonal = nn.Parameter(diagonal.abs().log())
        self.b = nn.Parameter(torch.zeros(size))

    sign: Tensor

    def factors(self) -> tuple[Tensor, Tensor]:
        """L and U."""
        one = torch.eye(len(self.b), dtype=self.b.dtype, device=self.b.device)
        return self.lower.tril(-1) + one, self.upper.triu(1) + torch.diag(self.sign * self.log_diagonal.exp())

    def matrix(self) -> Tensor:
        """W"""
        lower, upper = self.factors()
        return self.permutation @ lower @ upper

    def forward(self, z: Tensor) -> Moved:
        return z @ self.matrix().T + self.b, self.log_diagonal.sum().expand(len(z))

    def inverse(self, x: Tensor) -> Moved:
        lower, upper = self.factors()
        y = self.permutation.T @ (x - self.b).T
        y = torch.linalg.solve_triangular(lower, y, upper=False, unitriangular=True)
        return torch.linalg.solve_triangular(upper, y, upper=True).T, -self.log_diagonal.sum().expand(len(x))


@torch.no_grad()
def fold_linear(layers: Iterable[ElementwiseAffine | LinearFlow], size: int) -> tuple[Tensor, Tensor]:
    """W (D, D) and b (D) of the one affine map that a stack of linear layers is; the first layer is nearest to z."""
    w, b = torch.eye(size), torch.zeros(size)
    for layer in layers:
        own = torch.diag(layer.a) if isinstance(layer, ElementwiseAffine) else layer.matrix()
        w, b = own @ w.to(own), own @ b.to(own) + layer.b
    return w, b


def fit_linear(x: Tensor) -> LinearFlow:
    """The likeliest linear flow of points (n, D), in closed form: W Wᵀ is their covariance, b their mean."""
    flow = LinearFlow(x.shape[1]).to(x)
    centred = x - x.mean(0)
    w = torch.linalg.cholesky(centred.T @ centred / len(x))
    with torch.no_grad():
        p, lower, upper = torch.linalg.lu(w)
        flow.permutation.copy_(p)
        flow.lower.copy_(lower.tril(-1))
        flow.upper.copy_(upper.triu(1))
        flow.sign.copy_(upper.diagonal().sign())
        flow.log_diagonal.copy_(upper.diagonal().abs().log())
        flow.b.copy_(x.mean(0))
    return flow
