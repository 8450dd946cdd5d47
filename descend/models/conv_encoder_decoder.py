"""Encoder-decoder convolutional network: the image goes through a narrow code and is unfolded again.

    encode   h ← max-pool 2×2 of convs(h), L times;  code = convs(h)          width C 2ˡ, side / 2ᴸ
    decode   h ← convs(up(h)), L times;  output = 1×1 convolution of h

convs and up are those of the U-Net, and so is everything else but the skips: what the code does not hold is lost, first
the high frequencies (DLD 4.7). The two halves can be taken apart, decode(encode(x)) is the network; with as many
outputs as channels, trained to give back x, it is an autoencoder. Any image size: the output has the image's.

Systems: conv-encoder-decoder
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.models.unet import NORMS, Convs, NormName, start
from descend.ranges import Depth, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class ConvEncoderDecoderConfig:
    """A recipe takes channels and classes from its data."""

    channels: Width = 1
    """Of the image."""
    classes: Width = 2
    """Channels of the output."""
    width: Width = 64
    """Channels of the first level, C; each level below has twice as many."""
    depth: Depth = 4
    """Levels that are pooled, L."""
    norm: NormName = "none"
    """After each 3×3 convolution: none or batch."""

    def __post_init__(self) -> None:
        if self.depth < 1 or self.width < 1:
            raise ValueError(f"depth {self.depth}, width {self.width}: both are at least 1")
        if self.norm not in NORMS:
            raise ValueError(f"norm {self.norm!r}: choose {', '.join(NORMS)}")


class ConvEncoderDecoder(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes, h, w)"""

    Config = ConvEncoderDecoderConfig

    def __init__(self, config: ConvEncoderDecoderConfig):
        super().__init__()
        c = self.config = config
        widths, norm = [c.width * 2**level for level in range(c.depth + 1)], NORMS[c.norm]
        self.down = nn.ModuleList(Convs(n, out, 1, norm) for n, out in zip([c.channels, *widths], widths, strict=False))
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.up = nn.ModuleList(nn.ConvTranspose2d(n, n // 2, 2, stride=2) for n in reversed(widths[1:]))
        self.convs = nn.ModuleList(Convs(n, n, 1, norm) for n in reversed(widths[:-1]))
        self.head = nn.Conv2d(c.width, c.classes, 1)
        self.apply(start)

    def encode(self, x: Tensor) -> Tensor:
        """The code (b, C 2ᴸ, h/2ᴸ, w/2ᴸ)."""
        for convs in self.down[:-1]:
            x = self.pool(convs(x))
        return self.down[-1](x)

    def maps(self, x: Tensor) -> Tensor:
        """What the head reads: (b, C, h, w)."""
        return self.unfold(self.encode(x))[:, :, : x.shape[2], : x.shape[3]]

    def unfold(self, code: Tensor) -> Tensor:
        """(b, C, 2ᴸ h', 2ᴸ w') from a code of h' × w'."""
        for up, convs in zip(self.up, self.convs, strict=True):
            code = convs(up(code))
        return code

    def decode(self, code: Tensor, height: int, width: int) -> Tensor:
        """The output of this size from the code alone."""
        return self.head(self.unfold(code)[:, :, :height, :width])

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x), *x.shape[2:])


TINY = ConvEncoderDecoderConfig(channels=2, classes=3, width=4, depth=2, norm="batch")


def TINY_INPUT() -> Tensor:
    """Two images with odd sides."""
    return torch.randn(2, TINY.channels, 11, 14, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("ConvEncoderDecoder")
