"""Restricted Boltzmann machine: an energy of visible and hidden bits, without links inside either layer.

    E(v, h) = −vᵀ W h − b·v − c·h                        v in {0, 1}^visible,  h in {0, 1}^hidden
    p(h_j = 1 | v) = σ(c_j + Σ_i v_i W_ij)               p(v_i = 1 | h) = σ(b_i + Σ_j W_ij h_j)
    F(v) = −b·v − Σ_j log(1 + e^{c_j + (vᵀW)_j})         e^{−F(v)} = Σ_h e^{−E(v, h)},  p(v) = e^{−F(v)} / Z

Given one layer the bits of the other are independent, so a round of Gibbs sampling is two products. The model gives
F(v), whose difference between data and samples is trained by contrastive divergence (`tasks/boltzmann.py`). DLN leaves
the details of Gibbs sampling to a textbook; this is the standard case. W begins as N(0, 0.01²), as in scikit-learn.

Systems: gibbs-contrastive-divergence
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from descend.contracts import Chance, Wish
from descend.ranges import Count, Width
from descend.sampling.gibbs import draw_bits, gibbs_blocks
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

FIRST = 0.01  # standard deviation of the initial weights


@dataclass(frozen=True)
class RBMConfig:
    """The defaults fit images of 8 × 8 bits."""

    shape: tuple[Width, ...] = (1, 8, 8)
    """Of an example: the visible bits are its numbers, in order."""
    hidden: Width = 128
    steps: Count = 500
    """Rounds of Gibbs sampling that make a new example."""


class RBM(Pretrained):
    """bits (b, visible) or (b, *shape) -> free energies (b)"""

    Config = RBMConfig
    offers = frozenset({"steps"})

    def __init__(self, config: RBMConfig):
        super().__init__()
        c = self.config = config
        self.visible = math.prod(c.shape)
        self.weight = nn.Parameter(FIRST * torch.randn(self.visible, c.hidden))
        self.visible_bias = nn.Parameter(torch.zeros(self.visible))
        self.hidden_bias = nn.Parameter(torch.zeros(c.hidden))

    def forward(self, v: Tensor) -> Tensor:
        """F(v)"""
        v = v.flatten(1)
        return -v @ self.visible_bias - softplus(v @ self.weight + self.hidden_bias).sum(-1)

    def energy(self, v: Tensor, h: Tensor) -> Tensor:
        """E(v, h)"""
        return -((v @ self.weight) * h).sum(-1) - v @ self.visible_bias - h @ self.hidden_bias

    def hidden_probability(self, v: Tensor) -> Tensor:
        """p(h = 1 | v) (b, hidden)"""
        return (v @ self.weight + self.hidden_bias).sigmoid()

    def visible_probability(self, h: Tensor) -> Tensor:
        """p(v = 1 | h) (b, visible)"""
        return (h @ self.weight.T + self.visible_bias).sigmoid()

    def turned_free_energies(self, v: Tensor) -> Tensor:
        """F of v with bit i turned, for every i (b, visible): one product, not one for each bit."""
        into, turn = v @ self.weight + self.hidden_bias, 1 - 2 * v
        found = [softplus(into + turn[:, i, None] * row).sum(-1) for i, row in enumerate(self.weight)]
        return -(v @ self.visible_bias)[:, None] - turn * self.visible_bias - torch.stack(found, 1)

    def features(self, x: Tensor) -> Tensor:
        """p(h = 1 | v): what the machine has found in an example."""
        return self.hidden_probability(x.flatten(1))

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New examples (count, *shape) by Gibbs sampling from fair coins; the probabilities of the last round."""
        c = self.config
        v = (chance.uniform(self.visible) < 0.5).to(self.weight.dtype)
        for _ in range((wish.steps or c.steps) - 1):
            pair = chance.uniform(c.hidden), chance.uniform(self.visible)
            v = gibbs_blocks(self.hidden_probability, self.visible_probability, v, [pair])
        h = draw_bits(self.hidden_probability(v), chance.uniform(c.hidden))
        return self.visible_probability(h).view(-1, *c.shape)


SIZES: dict[str, RBMConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = RBMConfig(shape=(1, 2, 3), hidden=4, steps=3)


def TINY_INPUT() -> Tensor:
    """Three rows of bits."""
    return (torch.rand(3, *TINY.shape, generator=torch.Generator().manual_seed(0)) < 0.5).float()


LAYOUT = Layout("RBM")
