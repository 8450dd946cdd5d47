"""Layers with which a discriminator sees how alike the examples of a minibatch are, the sign of a collapsed generator.

    minibatch discrimination    M_i = f_i T  (b, kernels, size)        c_k(i, j) = exp(−‖M_ik − M_jk‖₁)
                                o_ik = Σ_j c_k(i, j)                   joined to the features: [f_i ; o_i]
    minibatch deviation         one more feature: the standard deviation over the batch, averaged over all features

Each example is judged together with the others of its minibatch: equal examples have o = b, or b − 1 without
themselves, distant ones 1, or 0. DLN gives the role and no formula; this is Salimans et al. (2016), who sum over all j;
here j ≠ i, which differs by the constant 1. The deviation is the progressive GAN's (Karras et al. 2018).

As with batch norm, the minibatch is what is computed at once: micro-batches are minibatches of their own.

Systems: minibatch-discrimination
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def closeness(m: Tensor) -> Tensor:
    """o_ik = Σ_{j ≠ i} exp(−‖M_ik − M_jk‖₁) of M (b, k, s): (b, k). (cdist has no second derivative.)"""
    distance = (m[:, None] - m[None]).abs().sum(dim=-1)  # (b, b, k)
    return (-distance).exp().sum(dim=1) - 1


class MinibatchDiscrimination(nn.Module):
    """features (b, d) -> (b, d + kernels)"""

    def __init__(self, width: int, kernels: int, size: int):
        super().__init__()
        self.kernels, self.size = kernels, size
        self.weight = nn.Parameter(torch.randn(width, kernels * size) * width**-0.5)

    def forward(self, f: Tensor) -> Tensor:
        return torch.cat([f, closeness((f @ self.weight).view(len(f), self.kernels, self.size))], dim=-1)


class MinibatchDeviation(nn.Module):
    """maps (b, c, h, w) -> (b, c + 1, h, w)"""

    def forward(self, x: Tensor) -> Tensor:
        deviation = (x.var(dim=0, unbiased=False) + 1e-8).sqrt().mean()
        return torch.cat([x, deviation.expand(len(x), 1, *x.shape[2:])], dim=1)
