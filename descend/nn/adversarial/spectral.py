"""Spectral normalization: every weight is divided by its largest singular value, so that no layer stretches.

    W̄ = W / σ(W)        u ← W v / ‖W v‖,  v ← Wᵀu / ‖Wᵀu‖,  σ = uᵀ W v        one power iteration for each update of W

W is (outputs, everything else): a kernel (o, i, k, k) is taken as the matrix (o, i k k), as in the paper (Miyato et al.
2018); the convolution itself may stretch up to k times more. Dense layers with ReLUs between them are 1-Lipschitz then.
u and v are buffers and take no gradient: ∂σ/∂W = u vᵀ.

torch's parametrization iterates at every use of the weight in training. Here it iterates when W has changed since the
last time, which a buffer remembers by the sum of W: then a step that is split into micro-batches is the same step.

Systems: spectral-normalization
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.parametrize import register_parametrization

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
START = 15  # iterations at the start, from a random u


class SpectralNorm(nn.Module):
    """W -> W / σ(W), for a weight whose axis `outputs` counts the outputs."""

    u: Tensor
    v: Tensor
    seen: Tensor

    def __init__(self, weight: Tensor, outputs: int = 0, eps: float = 1e-12):
        super().__init__()
        self.outputs, self.eps = outputs, eps
        w = self.as_matrix(weight.detach())
        u, v = (normalize(torch.randn(n, dtype=w.dtype, device=w.device), dim=0, eps=eps) for n in w.shape)
        for _ in range(START):
            u, v = self.iterate(w, v)
        self.register_buffer("u", u)
        self.register_buffer("v", v)
        self.register_buffer("seen", w.sum())

    def as_matrix(self, weight: Tensor) -> Tensor:
        """(outputs, everything else)"""
        return weight.movedim(self.outputs, 0).flatten(1)

    def iterate(self, w: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """One power iteration, in torch's order."""
        u = normalize(w @ v, dim=0, eps=self.eps)
        return u, normalize(w.mT @ u, dim=0, eps=self.eps)

    def forward(self, weight: Tensor) -> Tensor:
        w = self.as_matrix(weight)
        if self.training:
            self.follow(w.detach())
        sigma = torch.vdot(self.u.clone(), w @ self.v.clone())
        return weight / sigma

    @torch.no_grad()
    def follow(self, w: Tensor) -> None:
        """One more iteration if the weight has changed."""
        total = w.sum()
        changed = total != self.seen
        u, v = self.iterate(w, self.v)
        self.u.copy_(torch.where(changed, u, self.u))
        self.v.copy_(torch.where(changed, v, self.v))
        self.seen.copy_(total)


def normalize_spectrum(module: nn.Module) -> nn.Module:
    """Put spectral norms on the weights of all dense and convolutional layers of a module; returns it."""
    for layer in [m for m in module.modules() if isinstance(m, (*LAYERS, *TRANSPOSED))]:
        norm = SpectralNorm(layer.weight, 1 if isinstance(layer, TRANSPOSED) else 0)
        register_parametrization(layer, "weight", norm)
    return module
