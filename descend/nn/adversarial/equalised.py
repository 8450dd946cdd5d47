"""Layers with an equalised learning rate, and the norm of each pixel's vector.

    W = c V,   V ~ N(0, 1),   c = gain / √fan_in        He's scale is applied when W is used, not when it is drawn

so that Adam, whose steps do not depend on the scale of a gradient, moves every weight by the same share of its size.
The values at the start are those of a layer that was drawn with the deviation c.

    pixel norm     x / √(mean over channels of x² + ε)        of each place; nothing is learned

Both are the progressive GAN's (Karras et al. 2018), StyleGAN's mapping network has them too.

Systems: progressive-gan
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RELU = math.sqrt(2)  # gain after which a ReLU keeps the scale


class EqualLinear(nn.Module):
    """(.., inputs) -> (.., outputs). `speed` multiplies the learning rate: the weights are drawn larger by 1/speed."""

    def __init__(self, inputs: int, outputs: int, gain: float = RELU, speed: float = 1.0, bias: float = 0.0):
        super().__init__()
        self.scale, self.speed = gain / math.sqrt(inputs) * speed, speed
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / speed)
        self.bias = nn.Parameter(torch.full((outputs,), bias / speed))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight * self.scale, self.bias * self.speed)


class EqualConv2d(nn.Module):
    """(b, channels, h, w) -> (b, out, h, w); an odd kernel keeps the size."""

    def __init__(self, channels: int, out: int, kernel: int, padding: int, gain: float = RELU):
        super().__init__()
        self.scale, self.padding = gain / math.sqrt(channels * kernel**2), padding
        self.weight = nn.Parameter(torch.randn(out, channels, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight * self.scale, self.bias, padding=self.padding)


def pixel_norm(x: Tensor, eps: float = 1e-8) -> Tensor:
    """x / √(mean over channels of x² + ε), channels on axis 1."""
    return x * (x.square().mean(dim=1, keepdim=True) + eps).rsqrt()
