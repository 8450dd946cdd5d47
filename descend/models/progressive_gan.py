"""Progressive growing: generator and discriminator begin with images of 4×4 and double the side while they train.

    stage k    images of 4·2ᵏ         growth k + α: stage k is complete, stage k + 1 is being faded in
    G          (1 − α) up(rgb_k(h_k)) + α rgb_{k+1}(h_{k+1})        h_{k+1} = block(up(h_k)), up: each pixel four times
    D          (1 − α) in_k(down(x)) + α down(block(in_{k+1}(x)))   down: mean of 2×2

With α = 0 the larger image is the old stage's, upsampled; with α = 1 it is the new stage's alone. So nothing that was
learned is lost when layers are added. `growth` is a buffer of both players: a checkpoint knows where it stands, and
sampling makes images of the stage, enlarged to the full side.

The books only name it; networks are the paper's (Karras et al. 2018): pixel norm and leaky ReLU after each 3×3
convolution of G, equalised learning rates, the deviation over the minibatch as a last feature of D. At 1024×1024 the
generator has 23,079,115 parameters, 1×1 layers to colours of all stages included.

Systems: progressive-gan
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, leaky_relu

from descend.contracts import Chance, Wish
from descend.nn.adversarial.equalised import EqualConv2d, EqualLinear, pixel_norm
from descend.nn.adversarial.minibatch import MinibatchDeviation
from descend.ranges import Finite, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

START = 4  # side of the first stage


@dataclass(frozen=True)
class ProgressiveGANConfig:
    """The defaults are the paper's; a recipe takes channels and side from its data."""

    latent: Width = 512
    channels: Width = 3
    side: Side = 1024
    width: Width = 512
    """Most channels of a stage."""
    total: Width = 8192
    """Stage k has total / 2^(k + 1) channels, and no more than `width`."""
    growth: Finite = -1.0
    """Where growing begins: k + α; −1: fully grown."""

    def __post_init__(self) -> None:
        if self.side < START or self.side != START * 2 ** (self.side // START).bit_length() // 2:
            raise ValueError(f"side {self.side}: it is doubled from {START} on, so use 8, 16, 32, ..")

    @property
    def stages(self) -> int:
        """How many there are: 4×4 is the first."""
        return (self.side // START).bit_length()

    @property
    def grown(self) -> float:
        """Where growing begins."""
        return float(self.stages - 1) if self.growth < 0 else self.growth

    @property
    def widths(self) -> list[int]:
        """Channels of each stage."""
        return [max(1, min(self.total // 2 ** (k + 1), self.width)) for k in range(self.stages)]


def find_stage(growth: float) -> tuple[int, float]:
    """The newest stage and its α: growth 1.3 is stage 2 with α = 0.3, growth 1 is stage 1 with α = 1."""
    stage = math.ceil(growth)
    return stage, growth - (stage - 1) if stage else 1.0


def enlarge(x: Tensor) -> Tensor:
    """Each pixel four times."""
    return interpolate(x, scale_factor=2, mode="nearest")


class GrowBlock(nn.Module):
    """up, then twice a 3×3 convolution: (b, c, s, s) -> (b, out, 2s, 2s)"""

    def __init__(self, channels: int, out: int):
        super().__init__()
        self.convs = nn.ModuleList([EqualConv2d(channels, out, 3, 1), EqualConv2d(out, out, 3, 1)])

    def forward(self, x: Tensor) -> Tensor:
        x = enlarge(x)
        for conv in self.convs:
            x = pixel_norm(leaky_relu(conv(x), 0.2))
        return x


class ProgressiveGAN(Pretrained):
    """noise (b, latent) -> images (b, channels, s, s), s = 4·2ᵏ of the newest stage"""

    Config = ProgressiveGANConfig
    offers: frozenset[str] = frozenset()
    growth: Tensor

    def __init__(self, config: ProgressiveGANConfig):
        super().__init__()
        c, n = config, config.widths
        self.config = config
        self.first = EqualConv2d(c.latent, n[0], START, START - 1)  # of one pixel: dense, with a bias a map
        self.second = EqualConv2d(n[0], n[0], 3, 1)
        self.blocks = nn.ModuleList(GrowBlock(a, b) for a, b in pairwise(n))
        self.colours = nn.ModuleList(EqualConv2d(width, c.channels, 1, 0, gain=1.0) for width in n)
        self.register_buffer("growth", torch.tensor(c.grown))

    def forward(self, z: Tensor) -> Tensor:
        return self.forward_at(z, *find_stage(float(self.growth)))

    def forward_at(self, z: Tensor, stage: int, alpha: float) -> Tensor:
        """Images of this stage, of which the newest layers count α."""
        h = pixel_norm(leaky_relu(self.first(pixel_norm(z)[..., None, None]), 0.2))
        before = h = pixel_norm(leaky_relu(self.second(h), 0.2))
        for block in self.blocks[:stage]:
            before, h = h, block(h)
        x = self.colours[stage](h)
        if stage == 0 or alpha == 1:
            return x
        return torch.lerp(enlarge(self.colours[stage - 1](before)), x, alpha)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New images of the full side."""
        return interpolate(self(chance.normal(self.config.latent)), size=self.config.side, mode="nearest")


class ShrinkBlock(nn.Module):
    """Twice a 3×3 convolution, then down: (b, c, 2s, 2s) -> (b, out, s, s)"""

    def __init__(self, channels: int, out: int):
        super().__init__()
        self.convs = nn.ModuleList([EqualConv2d(channels, channels, 3, 1), EqualConv2d(channels, out, 3, 1)])

    def forward(self, x: Tensor) -> Tensor:
        for conv in self.convs:
            x = leaky_relu(conv(x), 0.2)
        return avg_pool2d(x, 2)


class GrowingDiscriminator(nn.Module):
    """images (b, channels, s, s) of the newest stage -> scores (b), of the generator's config"""

    growth: Tensor

    def __init__(self, config: ProgressiveGANConfig):
        super().__init__()
        c, n = config, config.widths
        self.inputs = nn.ModuleList(EqualConv2d(c.channels, width, 1, 0) for width in n)
        self.blocks = nn.ModuleList(ShrinkBlock(b, a) for a, b in pairwise(n))
        self.deviation = MinibatchDeviation()
        self.last = EqualConv2d(n[0] + 1, n[0], 3, 1)
        self.dense = EqualLinear(n[0] * START**2, n[0])
        self.head = EqualLinear(n[0], 1, gain=1.0)
        self.register_buffer("growth", torch.tensor(c.grown))

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_at(x, *find_stage(float(self.growth)))

    def forward_at(self, x: Tensor, stage: int, alpha: float) -> Tensor:
        """Scores by this stage, of which the newest layers count α."""
        h = leaky_relu(self.inputs[stage](x), 0.2)
        if stage:
            h = self.blocks[stage - 1](h)
            if alpha < 1:
                h = torch.lerp(leaky_relu(self.inputs[stage - 1](avg_pool2d(x, 2)), 0.2), h, alpha)
        for block in reversed(self.blocks[: max(0, stage - 1)]):
            h = block(h)
        h = leaky_relu(self.last(self.deviation(h)), 0.2)
        return self.head(leaky_relu(self.dense(h.flatten(1)), 0.2)).squeeze(-1)


INPUTS = ("z",)
"""What the generator reads of a batch."""
GIVEN: tuple[str, ...] = ()
"""What both players are told."""


def draw_inputs(config: ProgressiveGANConfig, random: torch.Generator, n: int) -> dict[str, Tensor]:
    """What n examples are made of."""
    return {"z": torch.randn(n, config.latent, generator=random)}


def make_discriminator(config: ProgressiveGANConfig) -> nn.Module:
    """The other player."""
    return GrowingDiscriminator(config)


SIZES = {"1024": ProgressiveGANConfig()}
PARAMETERS = {"1024": 23_079_115}
TINY = ProgressiveGANConfig(latent=3, channels=2, side=8, width=4, total=16, growth=0.5)


def TINY_INPUT() -> Tensor:
    """Three vectors of noise."""
    return torch.randn(3, TINY.latent, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("ProgressiveGAN")
