"""Energy network: a multilayer perceptron whose one output is the energy of a point.

    E(x) = w·h_depth + ‖x‖²/2ρ²        h_0 = x,  h_l = silu(W_l h_{l−1} + b_l),  l = 1..depth
    p(x) = exp(−E(x)) / Z              score  s(x) = −∇_x E(x)

The last term is the energy of N(0, ρ² I): it makes Z finite, and it is where chains begin. There is no bias on the
energy, since adding a constant to it changes nothing; `NormalisedEnergyNetwork` has one, the learned log-normaliser c
of noise-contrastive estimation, and gives −log p(x) = E(x) + c itself. silu is smooth, so that the score is, too.
New points come from Langevin dynamics (`sampling/langevin.py`); `steps` of a wish is the length of the chain.

Systems: gibbs-distribution, noise-contrastive-estimation
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.ops.energy.score import score_of_energy
from descend.ranges import Count, Depth, Positive, Width
from descend.sampling.langevin import langevin
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

DRAWN = 64  # steps whose noise is drawn at once


@dataclass(frozen=True)
class EnergyNetworkConfig:
    """The defaults fit standardized points of the plane."""

    inputs: Width = 2
    width: Width = 128
    depth: Depth = 3
    reach: Positive = 2.0
    """ρ, the width of the Gaussian that the energy is measured against and that chains begin with."""
    steps: Count = 1000
    """Of a chain that makes a new point."""
    eta: Positive = 0.005
    """Length of its steps."""


class EnergyNetwork(Pretrained):
    """points (b, inputs) -> energies (b)"""

    Config = EnergyNetworkConfig
    offers = frozenset({"steps"})

    def __init__(self, config: EnergyNetworkConfig):
        super().__init__()
        c = self.config = config
        # One piece: shards of single layers could not be differentiated in the middle of a step, as chains need.
        sizes = pairwise([c.inputs, *[c.width] * c.depth])
        self.hidden = nn.Sequential(*(part for i, o in sizes for part in (nn.Linear(i, o), nn.SiLU())))
        self.out = nn.Linear(c.width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        energy: Tensor = self.out(self.hidden(x)).squeeze(-1) + x.square().sum(-1) / (2 * self.config.reach**2)
        return energy

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points (count, inputs) by Langevin dynamics."""
        c = self.config
        x, left = c.reach * chance.normal(c.inputs), wish.steps or c.steps
        while left:
            noises = chance.normal(min(left, DRAWN), c.inputs)
            x, left = langevin(score_of_energy(self), x, noises.unbind(1), c.eta), left - noises.shape[1]
        return x


class NormalisedEnergyNetwork(EnergyNetwork):
    """points (b, inputs) -> −log p(x) (b), with a learned log-normaliser"""

    def __init__(self, config: EnergyNetworkConfig):
        super().__init__(config)
        self.log_normaliser = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.log_normaliser


SIZES: dict[str, EnergyNetworkConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = EnergyNetworkConfig(inputs=2, width=8, depth=2, steps=3)
ARCHITECTURES = {"NormalisedEnergyNetwork": NormalisedEnergyNetwork, "EnergyNetwork": EnergyNetwork}


def TINY_INPUT() -> Tensor:
    """Two points."""
    return torch.randn(2, TINY.inputs, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("EnergyNetwork")
