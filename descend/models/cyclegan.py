"""CycleGAN's generators: two residual networks from image to image, one for each direction.

    c7s1-64, d128, d256, R256 × 9, u128, u64, c7s1-3
    c7s1: 7×7 of stride 1    d: 3×3 of stride 2    R: x + conv(relu(conv(x)))    u: transposed 3×3 of stride 2

Instance norm and ReLU after each layer, tanh at the end; edges are reflected. DLN's naming: G_Y: X -> Y makes Y and is
`y` here, G_X: Y -> X is `x`. The books leave the networks open: these are the paper's (Zhu et al. 2017), 11,378,179
parameters with nine blocks, for images of 256 and more, and 7,837,699 with six. The discriminators are `patchgan`'s,
the game is in `tasks/translation.py`.

Systems: cyclegan
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.models.dcgan import start_small
from descend.models.patchgan import PatchGAN, PatchGANConfig
from descend.ranges import Few, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class CycleGANConfig:
    """Of each of the two generators."""

    channels: Width = 3
    width: Width = 64
    halvings: Few = 2
    """How often the side is halved on the way in."""
    blocks: Few = 9
    """Residual blocks in the middle."""


class ResidualBlock(nn.Module):
    """x + conv(relu(conv(x))): (b, c, h, w) -> (b, c, h, w)"""

    def __init__(self, width: int):
        super().__init__()
        self.convs = nn.Sequential(
            *unit(nn.Conv2d(width, width, 3, padding=1, padding_mode="reflect")),
            *unit(nn.Conv2d(width, width, 3, padding=1, padding_mode="reflect"))[:2],
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convs(x)


class ResidualTranslator(nn.Module):
    """images (b, channels, h, w) -> images of the same size in −1..1"""

    def __init__(self, channels: int, width: int, halvings: int, blocks: int):
        super().__init__()
        widths = [width * 2**level for level in range(halvings + 1)]
        levels = list(pairwise(widths))
        self.multiple = 2**halvings
        self.first = nn.Sequential(*unit(nn.Conv2d(channels, width, 7, padding=3, padding_mode="reflect")))
        self.downs = nn.ModuleList(nn.Sequential(*unit(nn.Conv2d(n, m, 3, 2, 1))) for n, m in levels)
        self.blocks = nn.ModuleList(ResidualBlock(widths[-1]) for _ in range(blocks))
        self.ups = nn.ModuleList(
            nn.Sequential(*unit(nn.ConvTranspose2d(m, n, 3, 2, 1, output_padding=1))) for n, m in reversed(levels)
        )
        self.last = nn.Conv2d(width, channels, 7, padding=3, padding_mode="reflect")
        self.apply(start_small)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[2] % self.multiple or x.shape[3] % self.multiple:
            raise ValueError(f"images of {x.shape[2]}×{x.shape[3]}: sides must be multiples of {self.multiple}")
        x = self.first(x)
        for layer in (*self.downs, *self.blocks, *self.ups):
            x = layer(x)
        return self.last(x).tanh()


def unit(layer: nn.Conv2d | nn.ConvTranspose2d) -> list[nn.Module]:
    """A layer, instance norm and ReLU."""
    return [layer, nn.InstanceNorm2d(layer.out_channels), nn.ReLU()]


class CycleGAN(Pretrained):
    """x (b, c, h, w), y (b, c, h, w) -> G_Y(x), G_X(y)"""

    Config = CycleGANConfig
    ways: tuple[str, ...] = ("there", "back")

    def __init__(self, config: CycleGANConfig):
        super().__init__()
        c = self.config = config
        self.x, self.y = (ResidualTranslator(c.channels, c.width, c.halvings, c.blocks) for _ in range(2))

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.y(x), self.x(y)

    def translate(self, x: Tensor, way: str) -> Tensor:
        """G_Y(x) there, G_X(y) back."""
        made: Tensor = self.x(x) if way == "back" else self.y(x)
        return made


SIZES = {"nine-blocks": CycleGANConfig(), "six-blocks": CycleGANConfig(blocks=6)}
PARAMETERS = {"nine-blocks": 2 * 11_378_179, "six-blocks": 2 * 7_837_699}
TINY = CycleGANConfig(channels=2, width=4, halvings=1, blocks=1)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images of each domain."""
    random = torch.Generator().manual_seed(0)
    x, y = (torch.randn(2, TINY.channels, 8, 10, generator=random) for _ in range(2))
    return x, y


def make_discriminator(config: CycleGANConfig, patches: PatchGANConfig) -> PatchGAN:
    """The judge of one of the two domains."""
    return PatchGAN(replace(patches, channels=config.channels))


LAYOUT = Layout("CycleGAN")
