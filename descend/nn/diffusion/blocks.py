"""The blocks of a diffusion U-Net and of the autoencoder before it.

    residual   y = S x + conv(silu(norm(h + W e)))           h = conv(silu(norm(x))),  S = I or a 1×1 convolution
    attention  y = x + W_O softmax(Q Kᵀ/√D) V                Q, K, V from norm(x), every place of the map a token
    down       3×3 convolution of stride 2                   up: each pixel doubled, then a 3×3 convolution

norm is group norm: its statistics do not depend on the other images of a batch. e is the time's vector, after silu, and
adds one number to every channel; the autoencoder's blocks have none. DLN says transposed convolutions for the way up;
the original, and this, doubles pixels and convolves, which leaves no checkerboard.

Systems: diffusion-unet
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.attention.multi_head import attend
from descend.nn.convolution.packed import PackedConv2d


class NormSiLU(nn.GroupNorm):
    """silu(γ (x − μ)/σ + β), mean and variance of each group of channels of an image."""

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(super().forward(input), inplace=not torch.is_grad_enabled())


class ResidualBlock(nn.Module):
    """(b, c, h, w), e (b, time) -> (b, out, h, w); with time 0 it has no place for e."""

    def __init__(self, channels: int, out: int, groups: int, eps: float, time: int = 0, dropout: float = 0.0):
        super().__init__()
        self.norm1 = NormSiLU(groups, channels, eps)
        self.conv1 = PackedConv2d(channels, out, 3, padding=1)
        if time:
            self.time_emb_proj = nn.Linear(time, out)
        self.norm2 = NormSiLU(groups, out, eps)
        self.drop = nn.Dropout(dropout)
        self.conv2 = PackedConv2d(out, out, 3, padding=1)
        if channels != out:
            self.conv_shortcut = nn.Conv2d(channels, out, 1)
        self.changes_width = channels != out

    def forward(self, x: Tensor, e: Tensor | None = None) -> Tensor:
        h = self.conv1(self.norm1(x))
        if e is not None:
            h = add_to(h, self.time_emb_proj(e)[:, :, None, None])
        h = self.conv2(self.drop(self.norm2(h)))
        return add_to(h, mix_channels(self.conv_shortcut, x) if self.changes_width else x)


class MapAttention(nn.Module):
    """Self-attention among the places of a map: (b, c, h, w) -> (b, c, h, w)"""

    def __init__(self, width: int, head_size: int, groups: int, eps: float):
        super().__init__()
        if width % head_size:
            raise ValueError(f"{width} channels are not a multiple of heads of size {head_size}")
        self.head_size = head_size
        self.group_norm = nn.GroupNorm(groups, width, eps)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """What a condition says is not looked at here."""
        tokens = as_tokens(self.group_norm(x))
        q, k, v = (part(tokens).unflatten(-1, (-1, self.head_size)) for part in (self.q, self.k, self.v))
        return add_to(as_map(self.out(attend(q, k, v).flatten(-2)), x), x)


class Downsample(nn.Module):
    """Half the sides. Padding 1 is on all edges; 0 pads one row and column at the end, as the first DDPM did."""

    def __init__(self, width: int, padding: int):
        super().__init__()
        self.edge = 1 - padding
        self.conv = PackedConv2d(width, width, 3, stride=2, padding=padding)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (0, self.edge, 0, self.edge)) if self.edge else x)


class Upsample(nn.Module):
    """Twice the sides: each pixel four times, then a 3×3 convolution."""

    def __init__(self, width: int):
        super().__init__()
        self.conv = PackedConv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


def add_to(h: Tensor, x: Tensor) -> Tensor:
    """h + x; without gradients in the memory of h, which nobody else reads."""
    return h + x if torch.is_grad_enabled() or h.dtype != x.dtype else h.add_(x)


def mix_channels(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """A 1×1 convolution as the matrix product that it is, which torch's own is several times slower than on CPUs."""
    return F.linear(x.permute(0, 2, 3, 1), layer.weight.flatten(1), layer.bias).permute(0, 3, 1, 2)


def as_tokens(x: Tensor) -> Tensor:
    """(b, c, h, w) -> (b, h·w, c)"""
    return x.permute(0, 2, 3, 1).flatten(1, 2)


def as_map(tokens: Tensor, like: Tensor) -> Tensor:
    """(b, h·w, c) -> (b, c, h, w), of the sides of another map"""
    return tokens.unflatten(1, like.shape[2:]).permute(0, 3, 1, 2)
