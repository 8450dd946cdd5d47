"""PatchGAN: a discriminator that scores every patch of an image, so that it judges texture and not the whole scene.

    [x ; condition] -> convolutions of 4×4: L of stride 2, two of stride 1 -> a map of scores (b, h, w)
    each score sees N × N pixels:    N = 1 + 3 Σ_l Π_{i<l} S_i = 70 for L = 3 (strides 2, 2, 2, 1, 1)

It is fully convolutional, so it takes images of any size; losses of the scores are averaged over all patches. Leaky
ReLU 0.2, batch norm (pix2pix) or instance norm (CycleGAN) but after the first layer, width doubling up to 8 times the
first. Layers are a fill-in from the papers: 2,768,705 parameters for pix2pix (6 channels), 2,764,737 for CycleGAN.

Systems: patchgan
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from descend.models.dcgan import start_small
from descend.ranges import Depth, Width
from descend.theory.convolution import Field, Kernel, receptive_field
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

NormName = Literal["none", "batch", "instance"]
NORMS: dict[NormName, Callable[[int], nn.Module]] = {
    "none": nn.Identity,
    "batch": nn.BatchNorm2d,
    "instance": nn.InstanceNorm2d,
}
WIDEST = 8  # times the first width


@dataclass(frozen=True)
class PatchGANConfig:
    """The defaults are pix2pix's, for colour images and a condition of as many channels."""

    channels: Width = 6
    """Of the image and its condition together."""
    width: Width = 64
    depth: Depth = 3
    """Layers of stride 2."""
    norm: NormName = "batch"

    @property
    def layers(self) -> list[Kernel]:
        """Kernel, stride and padding of each layer."""
        return [*[(4, 2, 1)] * self.depth, *[(4, 1, 1)] * 2]

    @property
    def field(self) -> Field:
        """What one score sees: N = field.size pixels on a side."""
        return receptive_field(self.layers)


class PatchGAN(Pretrained):
    """images (b, c, h, w), and a condition (b, c', h, w) where there is one -> scores (b, h', w')"""

    Config = PatchGANConfig

    def __init__(self, config: PatchGANConfig):
        super().__init__()
        c = self.config = config
        widths = [min(2**level, WIDEST) * c.width for level in range(c.depth + 1)]
        self.first = nn.Conv2d(c.channels, c.width, 4, 2, 1)
        self.blocks = nn.ModuleList(
            block(n, out, layer[1], c.norm) for n, out, layer in zip(widths, widths[1:], c.layers[1:], strict=False)
        )
        self.last = nn.Conv2d(widths[-1], 1, 4, 1, 1)
        self.apply(start_small)

    def forward(self, x: Tensor, *condition: Tensor) -> Tensor:
        h = nn.functional.leaky_relu(self.first(torch.cat([x, *condition], dim=1)), 0.2)
        for layer in self.blocks:
            h = layer(h)
        return self.last(h).squeeze(1)


def block(channels: int, out: int, stride: int, norm: NormName) -> nn.Sequential:
    """Convolution of 4×4, norm, leaky ReLU. A batch norm has the bias of the layer before it."""
    layer = nn.Conv2d(channels, out, 4, stride, 1, bias=norm != "batch")
    return nn.Sequential(layer, NORMS[norm](out), nn.LeakyReLU(0.2))


SIZES = {"pix2pix": PatchGANConfig(), "cyclegan": PatchGANConfig(channels=3, norm="instance")}
PARAMETERS = {"pix2pix": 2_768_705, "cyclegan": 2_764_737}
TINY = PatchGANConfig(channels=2, width=4, depth=1)


def TINY_INPUT() -> Tensor:
    """Two images with odd sides."""
    return torch.randn(2, TINY.channels, 11, 14, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("PatchGAN")
