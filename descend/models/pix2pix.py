"""pix2pix's generator: a U-Net from image to image, whose skips hand the detail of the source across.

    down   C 64-128-256-512-512-512-512-512    convolution 4×4 of stride 2, batch norm, leaky ReLU 0.2
    up     512-512-512-512-256-128-64          transposed 4×4 of stride 2, batch norm, dropout, ReLU; joined with the
                                               map of the same size on the way down
    out    transposed 4×4 to the channels of the target, tanh

The first and the innermost layer have no batch norm; dropout ½ in the three innermost ups is the paper's only noise
(none in evaluation, so that an answer is the same each time). Layers are a fill-in from Isola et al. (2017), with
54,413,955 parameters at 256×256. The discriminator is `patchgan`, the game `tasks/translation.py`.

Systems: pix2pix
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.models.dcgan import start_small
from descend.models.patchgan import PatchGAN, PatchGANConfig
from descend.ranges import Depth, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

DROPPED = 3  # ups with dropout
WIDEST = 8  # times the first width


@dataclass(frozen=True)
class Pix2PixConfig:
    """The defaults are the paper's, for images of 256×256."""

    channels: Width = 3
    """Of the source."""
    outputs: Width = 3
    """Channels of the target."""
    width: Width = 64
    depth: Depth = 8
    """How often the side is halved: 8 bring 256 to 1."""
    dropout: Fraction = 0.5

    def __post_init__(self) -> None:
        if self.depth < 2:
            raise ValueError(f"depth {self.depth}: at least 2, or there is nothing to skip")

    @property
    def widths(self) -> list[int]:
        """Channels on the way down."""
        return [min(2**level, WIDEST) * self.width for level in range(self.depth)]


class Pix2Pix(Pretrained):
    """images (b, channels, h, w) -> images (b, outputs, h, w) in −1..1; h and w are multiples of 2^depth"""

    Config = Pix2PixConfig
    ways: tuple[str, ...] = ("there",)

    def __init__(self, config: Pix2PixConfig):
        super().__init__()
        c = self.config = config
        widths = c.widths
        self.first = nn.Conv2d(c.channels, widths[0], 4, 2, 1, bias=False)
        self.downs = nn.ModuleList(down(n, out) for n, out in pairwise(widths[:-1]))
        self.bottom = nn.Conv2d(widths[-2], widths[-1], 4, 2, 1, bias=False)
        ins = [widths[-1], *(2 * n for n in reversed(widths[1:-1]))]
        rates = [0.0] + [c.dropout if level < DROPPED else 0.0 for level in range(c.depth - 2)]
        self.ups = nn.ModuleList(
            up(n, out, rate) for n, out, rate in zip(ins, reversed(widths[:-1]), rates, strict=True)
        )
        self.last = nn.ConvTranspose2d(2 * widths[0], c.outputs, 4, 2, 1)
        self.apply(start_small)

    def forward(self, x: Tensor) -> Tensor:
        multiple = 2**self.config.depth
        if x.shape[2] % multiple or x.shape[3] % multiple:
            raise ValueError(f"images of {x.shape[2]}×{x.shape[3]}: sides must be multiples of {multiple}")
        skips = [self.first(x)]
        for layer in self.downs:
            skips.append(layer(skips[-1]))
        h = self.bottom(nn.functional.leaky_relu(skips[-1], 0.2))
        for layer, skip in zip(self.ups, reversed(skips), strict=True):
            h = torch.cat([skip, layer(h)], dim=1)
        return self.last(h.relu()).tanh()

    def translate(self, x: Tensor, way: str) -> Tensor:
        """The target of a source; it knows no way back."""
        return self(x)


def down(channels: int, out: int) -> nn.Sequential:
    """Leaky ReLU, convolution, batch norm: the activation comes first, so that a skip is what the norm gives."""
    layer = nn.Conv2d(channels, out, 4, 2, 1, bias=False)
    return nn.Sequential(nn.LeakyReLU(0.2), layer, nn.BatchNorm2d(out))


def up(channels: int, out: int, dropout: float) -> nn.Sequential:
    """ReLU, transposed convolution, batch norm, dropout: twice the side."""
    layer = nn.ConvTranspose2d(channels, out, 4, 2, 1, bias=False)
    return nn.Sequential(nn.ReLU(), layer, nn.BatchNorm2d(out), nn.Dropout(dropout))


SIZES = {"pix2pix": Pix2PixConfig()}
PARAMETERS = {"pix2pix": 54_413_955}
TINY = Pix2PixConfig(channels=2, outputs=1, width=4, depth=3, dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, TINY.channels, 16, 24, generator=torch.Generator().manual_seed(0))


def make_discriminator(config: Pix2PixConfig, patches: PatchGANConfig) -> PatchGAN:
    """The other player, which sees source and target."""
    return PatchGAN(replace(patches, channels=config.channels + config.outputs))


LAYOUT = Layout("Pix2Pix")
