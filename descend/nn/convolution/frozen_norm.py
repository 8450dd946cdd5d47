"""Batch norm that does not change any more: the moments and the affine part of a trained network, held fast.

    y = γ (x − μ) / √(σ² + ε) + β          γ, β, μ, σ² are stored and never trained: an affine map of each channel

Detectors are trained on a few large images a step, too few for moments of their own, so those that start from a trained
backbone keep its moments. A network that starts from nothing needs batch norm itself.

Systems: detr
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FrozenBatchNorm(nn.Module):
    """γ (x − μ) / √(σ² + ε) + β with buffers alone: x (b, c, h, w)"""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(channels))
        self.register_buffer("bias", torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
        )


def freeze_norms(module: nn.Module) -> None:
    """Every batch norm below becomes a frozen one with the same numbers."""
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            frozen = FrozenBatchNorm(child.num_features, child.eps).to(child.weight.device)
            known = child.state_dict()
            frozen.load_state_dict({key: known[key] for key in frozen.state_dict()})
            module.register_module(name, frozen)
        else:
            freeze_norms(child)
