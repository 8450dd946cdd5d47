"""Normalization layers in the books' conventions, where those differ from torch's.

    y = γ ẑ + β, γ = 1 and β = 0 at the start

    batch, MF       μ̄ ← α μ̄ + (1−α) μ,  σ̄² ← α σ̄² + (1−α) σ²        σ² divided by n          BatchNorm
    batch, DLN      μ̄ the same,  σ̄ ← α σ̄ + (1−α) σ                   of the deviation         BatchNormOfDeviation
    batch, torch    as MF with α = 1 − momentum, but σ² divided by n − 1                       nn.BatchNorm1d, 2d, 3d
    layer           ε inside the root                                                         nn.LayerNorm
    layer, VOM 9    ε outside: (x − μ) / (σ + ε)                                              LayerNormOutside
    layer, images   over c, h, w, with γ and β of each channel                                nn.GroupNorm(1, c)
    instance        over h, w                                                nn.InstanceNorm2d(c, affine=True)
    group           over c/G, h, w                                                            nn.GroupNorm(G, c)
    RMS, LLaMA      ε inside the root, no β                                                   nn.RMSNorm(d, eps=1e-6)
    RMS, T5 in MF   ε outside: x / (rms + ε)                                                  RMSNormOutside

Training uses the batch's own statistics, and use the moving ones, with + ε (DLN prints −, an erratum). They start at
0 and 1, as in torch; no book says where. Parameters and buffers have torch's names, so that weights can be exchanged.

Systems: batch-norm, layer-norm, rms-norm
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.ops.normalization import (
    batch_axes,
    layer_norm_outside,
    moments,
    moving,
    normalize,
    rms_norm_outside,
    scale_and_shift,
)


class BatchNorm(nn.Module):
    """Batch normalization of (n, c), (n, c, l) or (n, c, h, w), with the moving average of the variance (MF)."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, alpha: float = 0.9, eps: float = 1e-5):
        super().__init__()
        self.alpha, self.eps = alpha, eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, z: Tensor) -> Tensor:
        if self.training:
            z_hat = self.by_batch(z)
        else:
            shape = (1, -1, *[1] * (z.dim() - 2))
            z_hat = normalize(z, self.running_mean.view(shape), self.running_var.view(shape), self.eps)
        return scale_and_shift(z_hat, self.weight, self.bias)

    def by_batch(self, z: Tensor) -> Tensor:
        """ẑ by the batch's own μ and σ², which move the averages."""
        if z.numel() == z.shape[1]:
            raise ValueError("one value a channel: a batch of 1 has no variance; train with 2 or more, or eval()")
        mu, var = moments(z, batch_axes(z))
        self.running_mean.copy_(moving(self.running_mean, mu.detach().flatten(), self.alpha))
        self.running_var.copy_(self.update_variance(var.detach().flatten()))
        return normalize(z, mu, var, self.eps)

    def update_variance(self, var: Tensor) -> Tensor:
        """σ̄² ← α σ̄² + (1 − α) σ²"""
        return moving(self.running_var, var, self.alpha)


class BatchNormOfDeviation(BatchNorm):
    """The same, with the moving average of the standard deviation (DLN): σ̄ ← α σ̄ + (1 − α) σ, squared in use.

    It is never larger than the average of the variance, since (mean σ)² ≤ mean σ².
    """

    def __init__(self, channels: int, alpha: float = 0.99, eps: float = 1e-5):
        super().__init__(channels, alpha, eps)

    def update_variance(self, var: Tensor) -> Tensor:
        return moving(self.running_var.sqrt(), var.sqrt(), self.alpha).square()


class LayerNormOutside(nn.Module):
    """γ (x − μ) / (σ + ε) + β over the last axis."""

    def __init__(self, width: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * layer_norm_outside(x, self.eps) + self.bias


class RMSNormOutside(nn.Module):
    """γ x / (rms(x) + ε) over the last axis."""

    def __init__(self, width: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * rms_norm_outside(x, self.eps)
