"""Convolutional layers that torch lacks; the others are its own: nn.Conv2d with groups, MaxPool2d, ConvTranspose2d.

    depthwise-separable    z[c] = d[c] ⋆ x[c]                     one K×K filter for each channel
                           y[o] = b[o] + Σ_c p[o, c] z[c]         1×1: mixes the channels

    It is the dense convolution with the kernel w[o, c] = p[o, c] d[c]: for each channel one shape, scaled. Of the dense
    layer's cost 1/C_out + 1/K² remains (`theory.convolution`). In a network a normalization and an activation often
    stand between the two; this layer is the linear one that the books count.

    averaged transposed convolution    the overlapping patches are averaged instead of summed (`ops.resampling`)

Systems: depthwise-separable-convolution, transposed-convolution
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SeparableConv2d(nn.Module):
    """A drop-in for nn.Conv2d(c_in, c_out, kernel): (b, c_in, h, w) -> (b, c_out, h', w')."""

    def __init__(self, c_in: int, c_out: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1):
        super().__init__()
        self.depthwise = nn.Conv2d(c_in, c_in, kernel, stride, padding, dilation, groups=c_in, bias=False)
        self.pointwise = nn.Conv2d(c_in, c_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.pointwise(self.depthwise(x))

    def dense_weight(self) -> Tensor:
        """The kernel (c_out, c_in, K, K) of the one dense convolution that computes the same."""
        return self.pointwise.weight * self.depthwise.weight.transpose(0, 1)


class AveragedConvTranspose2d(nn.Module):
    """nn.ConvTranspose2d with the mean of overlapping patches instead of their sum; the bias is added after it."""

    def __init__(self, c_in: int, c_out: int, kernel: int, stride: int = 1, padding: int = 0):
        super().__init__()
        like = nn.ConvTranspose2d(c_in, c_out, kernel, stride, padding)  # its initialization too
        self.weight, self.bias = like.weight, like.bias
        self.stride, self.padding = stride, padding

    def forward(self, x: Tensor) -> Tensor:
        total = F.conv_transpose2d(x, self.weight, None, self.stride, self.padding)
        count = F.conv_transpose2d(
            torch.ones_like(x[:1, :1]), torch.ones_like(self.weight[:1, :1]), None, self.stride, self.padding
        )
        assert self.bias is not None
        return total / count.clamp_min(1) + self.bias[:, None, None]
