"""Noise-conditional score network: which way the density rises at x, at each of several noise levels.

    σ_1 > σ_2 > … > σ_L                                  the noisiest first; geometric by default
    u = x / √(ρ² + σ_t²)                                 ρ: the width of the data, so that u has size 1 at every level
    s̃(x, t) = (σ_t / √(ρ² + σ_t²)) u + MLP(u, t)         predicts the noise ε in x = x_0 + σ_t ε: the best linear guess
                                                         for data of width ρ, and what it leaves; t is embedded
    s(x, t) = −s̃(x, t)/σ_t                               the score of the data smoothed by σ_t

One level is not enough: where data are rare the score is not learned, on a lower-dimensional manifold it does not
exist, and Langevin dynamics from a bad start never mixes. Smoothing by a large σ cures all three, and is then taken
back level by level (annealed Langevin dynamics). DLN numbers the levels from the least noisy; it uses a U-Net for
images, here is a perceptron for vectors. New points: `steps` of a wish are those at each level.

Systems: multi-scale-score-model
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.ops.energy.score import noise_to_score
from descend.ranges import Count, Depth, Positive, Width
from descend.sampling.langevin import annealed_langevin, level_rates
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


def spread_levels(first: float, last: float, levels: int) -> tuple[float, ...]:
    """Noise levels from the first to the last, each the same part of the one before."""
    if levels == 1:
        return (last,)
    return tuple(first * (last / first) ** (i / (levels - 1)) for i in range(levels))


@dataclass(frozen=True)
class ScoreNetworkConfig:
    """The defaults fit points of the plane within about 3 of the origin."""

    inputs: Width = 2
    width: Width = 64
    depth: Depth = 3
    levels: Depth = 12
    first: Positive = 8.0
    """σ of the noisiest level."""
    last: Positive = 0.5
    """σ of the least noisy level."""
    spread: Positive = 2.6
    """ρ, the width of the data."""
    steps: Count = 100
    """Langevin steps at each level."""
    eta: Positive = 0.4
    """Length of a step, as a part of σ_t²."""


class ScoreNetwork(Pretrained):
    """points (b, inputs), the number of a level (b) -> predicted noise (b, inputs)"""

    Config = ScoreNetworkConfig
    offers = frozenset({"steps"})

    def __init__(self, config: ScoreNetworkConfig):
        super().__init__()
        c = self.config = config
        self.sizes = spread_levels(c.first, c.last, c.levels)
        self.level = nn.Embedding(c.levels, c.width)
        self.hidden = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise([c.inputs, *[c.width] * c.depth]))
        self.out = nn.Linear(c.width, c.inputs)

    def sigma(self, level: Tensor) -> Tensor:
        """σ_t of each example (b, 1)."""
        return torch.tensor(self.sizes, device=level.device, dtype=self.out.weight.dtype)[level][:, None]

    def forward(self, x: Tensor, level: Tensor) -> Tensor:
        """s̃(x, t)"""
        sigma = self.sigma(level)
        size = (self.config.spread**2 + sigma.square()).sqrt()
        u = h = x / size
        for i, layer in enumerate(self.hidden):
            h = layer(h)
            h = nn.functional.silu(h + self.level(level) if i == 0 else h)
        return sigma / size * u + self.out(h)

    def score(self, x: Tensor, level: int) -> Tensor:
        """s(x, t) = −s̃/σ_t of points at one level."""
        at = torch.full((len(x),), level, device=x.device)
        return noise_to_score(self(x, at), self.sizes[level])

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points (count, inputs) by annealed Langevin dynamics, from N(0, σ_1² + ρ²)."""
        c = self.config
        x = (c.first**2 + c.spread**2) ** 0.5 * chance.normal(c.inputs)
        noises = (chance.normal(wish.steps or c.steps, c.inputs).unbind(1) for _ in self.sizes)
        return annealed_langevin(self.score, x, noises, level_rates(self.sizes, c.eta * self.sizes[-1] ** 2))


SIZES: dict[str, ScoreNetworkConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = ScoreNetworkConfig(inputs=2, width=8, depth=2, levels=2, first=2.0, last=0.5, spread=1.0, steps=3)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Four points, two at each level."""
    x = torch.randn(4, TINY.inputs, generator=torch.Generator().manual_seed(0))
    return x, torch.tensor([0, 1, 0, 1])


LAYOUT = Layout("ScoreNetwork")
