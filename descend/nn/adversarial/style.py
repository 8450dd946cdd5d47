"""Styles: adaptive instance norm, noise for every pixel, and the network that makes a style from noise.

    AdaIN(x, y) = y_s (x − μ(x)) / σ(x) + y_b         μ, σ of each map over its pixels; (y_s, y_b) = A w, a style
    noise         x + B n                             n ~ N(0, 1) one number a pixel, B one number a channel
    mapping       w = f(z / rms(z))                   f: dense layers with leaky ReLU
    truncation    w ← w̄ + ψ (w − w̄)                   ψ < 1: nearer to the mean style, less variety

After AdaIN a map has the mean y_b and the deviation |y_s| exactly (up to ε): a style says how strong each feature is,
and the next layer's AdaIN takes it back. The books only name StyleGAN; the equations are Karras et al. (2019).

Systems: stylegan
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from descend.nn.adversarial.equalised import EqualLinear, pixel_norm


def adaptive_instance_norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float = 1e-8) -> Tensor:
    """y_s (x − μ) / σ + y_b of maps (b, c, h, w) with scale and shift (b, c)."""
    mu = x.mean(dim=(2, 3), keepdim=True)
    sigma = (x.var(dim=(2, 3), unbiased=False, keepdim=True) + eps).sqrt()
    return scale[..., None, None] * (x - mu) / sigma + shift[..., None, None]


class AdaIN(nn.Module):
    """maps (b, c, h, w), style w (b, d) -> (b, c, h, w); the scale starts at 1."""

    def __init__(self, channels: int, style: int):
        super().__init__()
        self.affine = EqualLinear(style, 2 * channels, gain=1.0)
        with torch.no_grad():
            self.affine.bias[:channels].fill_(1.0)

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        scale, shift = self.affine(w).chunk(2, dim=-1)
        return adaptive_instance_norm(x, scale, shift)


class PixelNoise(nn.Module):
    """x + B n: maps (b, c, h, w) and noise (b, h w); B starts at 0."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        return x + self.weight[:, None, None] * noise.view(len(x), 1, *x.shape[2:])


class MappingNetwork(nn.Module):
    """noise z (b, latent) -> style w (b, width); the layers learn at a hundredth of the rate, as in the paper."""

    def __init__(self, latent: int, width: int, depth: int, speed: float = 0.01):
        super().__init__()
        self.layers = nn.ModuleList(EqualLinear(latent if i == 0 else width, width, speed=speed) for i in range(depth))

    def forward(self, z: Tensor) -> Tensor:
        w = pixel_norm(z)
        for layer in self.layers:
            w = leaky_relu(layer(w), 0.2)
        return w
