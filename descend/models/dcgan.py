"""DCGAN: a generator of transposed convolutions, and a discriminator of strided ones, its mirror image.

    G: z ~ N(0, I) -> dense to C 2ᴸ⁻¹ maps of s/2ᴸ × s/2ᴸ -> L times (transposed convolution, stride 2) -> s × s
       batch norm and ReLU after each layer, tanh after the last: pixels in −1..1
    D: the mirror: L convolutions of stride 2, batch norm but after the first, leaky ReLU 0.2, then one number d(x);
       D(x) = σ(d(x))

No pooling and no hidden dense layers. DLN's figure is missing, so sizes are the paper's (Radford et al. 2016): 100,
4×4×1024, 8×8×512, 16×16×256, 32×32×128, 64×64×3 with kernels of 5: 18,851,200 weights, beside 3,840 of the batch norms
and 3 biases. Weights start as N(0, 0.02²). DLN adds that both grow from a low resolution; that is another model,
`progressive_gan`. An odd kernel needs one more pixel on one side to double the side exactly, an even one does not.

Systems: dcgan
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.ranges import Depth, Range, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class DCGANConfig:
    """The defaults are the paper's; a recipe takes channels and side from its data."""

    latent: Width = 100
    channels: Width = 3
    side: Side = 64
    width: Width = 128
    """Channels of the finest hidden maps, C; each coarser level has twice as many."""
    depth: Depth = 4
    """How often the side is doubled, L."""
    kernel: Annotated[int, Range(int, least=3, most=9)] = 5

    def __post_init__(self) -> None:
        if self.side % 2**self.depth:
            raise ValueError(f"side {self.side} is not divisible by 2^{self.depth}, the levels; use another depth")

    @property
    def widths(self) -> list[int]:
        """Channels of the hidden maps, from coarse to fine."""
        return [self.width * 2**level for level in reversed(range(self.depth))]

    @property
    def start(self) -> int:
        """Side of the first maps."""
        return self.side // 2**self.depth


class DCGAN(Pretrained):
    """noise (b, latent) -> images (b, channels, side, side) in −1..1"""

    Config = DCGANConfig
    offers: frozenset[str] = frozenset()

    def __init__(self, config: DCGANConfig):
        super().__init__()
        c = self.config = config
        self.first = nn.Linear(c.latent, c.widths[0] * c.start**2, bias=False)
        self.norm = nn.BatchNorm2d(c.widths[0])
        self.ups = nn.ModuleList(up(n, out, c.kernel) for n, out in pairwise(c.widths))
        padding, more = doubling(c.kernel)
        self.last = nn.ConvTranspose2d(c.width, c.channels, c.kernel, 2, padding, output_padding=more)
        self.apply(start_small)

    def forward(self, z: Tensor) -> Tensor:
        h = self.first(z).view(len(z), -1, self.config.start, self.config.start)
        h = self.norm(h).relu()
        for block in self.ups:
            h = block(h)
        return self.last(h).tanh()

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New images."""
        return self(chance.normal(self.config.latent))


class ImageDiscriminator(nn.Module):
    """images (b, channels, side, side) -> d(x) (b), of the generator's config"""

    def __init__(self, config: DCGANConfig):
        super().__init__()
        c, padding = config, doubling(config.kernel)[0]
        self.first = nn.Conv2d(c.channels, c.width, c.kernel, 2, padding)
        self.downs = nn.ModuleList(down(n, out, c.kernel) for n, out in pairwise(reversed(c.widths)))
        self.head = nn.Linear(c.widths[0] * c.start**2, 1)
        self.apply(start_small)

    def features(self, x: Tensor) -> Tensor:
        """What the head reads (b, d)."""
        h = nn.functional.leaky_relu(self.first(x), 0.2)
        for block in self.downs:
            h = block(h)
        return h.flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x)).squeeze(-1)


def doubling(kernel: int) -> tuple[int, int]:
    """Padding, and pixels to add on one side, with which stride 2 doubles a side exactly."""
    return (kernel - 1) // 2, kernel % 2


def up(channels: int, out: int, kernel: int) -> nn.Sequential:
    """Transposed convolution, batch norm, ReLU: twice the side."""
    padding, more = doubling(kernel)
    layer = nn.ConvTranspose2d(channels, out, kernel, 2, padding, output_padding=more, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(out), nn.ReLU())


def down(channels: int, out: int, kernel: int) -> nn.Sequential:
    """Convolution, batch norm, leaky ReLU: half the side."""
    layer = nn.Conv2d(channels, out, kernel, 2, doubling(kernel)[0], bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(out), nn.LeakyReLU(0.2))


def start_small(layer: nn.Module) -> None:
    """Weights N(0, 0.02²), gains of norms N(1, 0.02²), biases 0."""
    if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(layer.weight, std=0.02)
    if isinstance(layer, nn.BatchNorm2d) and layer.affine:
        nn.init.normal_(layer.weight, 1.0, 0.02)
    bias = getattr(layer, "bias", None)
    if isinstance(bias, nn.Parameter):
        nn.init.zeros_(bias)


SIZES = {"dcgan": DCGANConfig()}
PARAMETERS = {"dcgan": 18_855_043}
TINY = DCGANConfig(latent=3, channels=2, side=8, width=4, depth=2)


def TINY_INPUT() -> Tensor:
    """Four vectors of noise: a batch norm needs some."""
    return torch.randn(4, TINY.latent, generator=torch.Generator().manual_seed(0))


INPUTS = ("z",)
"""What the generator reads of a batch."""
GIVEN: tuple[str, ...] = ()
"""What both players are told."""


def draw_inputs(config: DCGANConfig, random: torch.Generator, n: int) -> dict[str, Tensor]:
    """What n examples are made of."""
    return {"z": torch.randn(n, config.latent, generator=random)}


def make_discriminator(config: DCGANConfig) -> nn.Module:
    """The other player."""
    return ImageDiscriminator(config)


LAYOUT = Layout("DCGAN")
