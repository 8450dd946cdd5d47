"""RepConv: branches in training that are one convolution at inference.

    y = φ(BN(W_3 ⋆ x) + BN(W_1 ⋆ x))               3×3 and 1×1 side by side
    y = φ(BN(W_3 ⋆ x) + BN(W_1 ⋆ x) + BN(x))       and the identity, where the shape stays (`RepConvWithIdentity`)

In evaluation every branch is a 3×3 convolution with a bias: the batch norms are folded in, the 1×1 kernel stands in the
middle of a 3×3 of zeros, and the identity is a 1×1 kernel I. Their sum is one convolution, `merge()`. The books name
RepConv only (MF 26.2.2); this is RepVGG's block as in the original RT-DETR, which has no identity branch.

Systems: rt-detr-hybrid-encoder
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.convolution.folding import fold_weights
from descend.nn.convolution.residual import ConvNorm


class RepConv(nn.Module):
    """φ(BN conv3×3(x) + BN conv1×1(x))"""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, act: nn.Module | None = None):
        super().__init__()
        self.wide = ConvNorm(inputs, outputs, 3, stride)
        self.point = ConvNorm(inputs, outputs, 1, stride)
        self.act = nn.SiLU() if act is None else act

    def sum_branches(self, x: Tensor) -> Tensor:
        return self.wide(x) + self.point(x)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.sum_branches(x))
        return y

    def merge_weights(self) -> tuple[Tensor, Tensor]:
        """The kernel (c', c, 3, 3) and the bias (c') of all branches together."""
        wide, bias = fold_weights(self.wide.conv, self.wide.norm)
        point, more = fold_weights(self.point.conv, self.point.norm)
        return wide + F.pad(point, (1, 1, 1, 1)), bias + more

    def merge(self) -> nn.Module:
        """One convolution and φ, for inference."""
        weight, bias = self.merge_weights()
        stride = self.wide.conv.stride[0]
        conv = nn.Conv2d(weight.shape[1], weight.shape[0], 3, stride, padding=1, device="meta")
        conv.weight, conv.bias = nn.Parameter(weight), nn.Parameter(bias)
        return nn.Sequential(conv, self.act).eval()


class RepConvWithIdentity(RepConv):
    """φ(BN conv3×3(x) + BN conv1×1(x) + BN(x))"""

    def __init__(self, width: int, act: nn.Module | None = None):
        super().__init__(width, width, 1, act)
        self.skip = nn.BatchNorm2d(width)

    def sum_branches(self, x: Tensor) -> Tensor:
        return super().sum_branches(x) + self.skip(x)

    def merge_weights(self) -> tuple[Tensor, Tensor]:
        weight, bias = super().merge_weights()
        same = nn.Conv2d(weight.shape[1], weight.shape[0], 1, bias=False, device=weight.device)
        with torch.no_grad():
            same.weight.copy_(torch.eye(weight.shape[0])[..., None, None])
        point, more = fold_weights(same, self.skip)
        return weight + F.pad(point, (1, 1, 1, 1)), bias + more
