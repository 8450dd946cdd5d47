"""Generative adversarial network with dense layers: noise to points, and points to "is it real?".

    G: z ~ N(0, I_latent) -> x        h_l = relu(W_l h_{l-1} + b_l),          l = 1..depth, then a linear layer
    D: x -> s, D(x) = σ(s)            h_l = leaky_relu(W_l h_{l-1} + b_l),    the same depth and width, one output

G pushes the distribution of the noise forward to that of the data. The game between the two is in
`descend.losses.adversarial`; D is needed only to play it, so a saved model is G alone.

Systems: gan
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.nn.adversarial.minibatch import MinibatchDiscrimination
from descend.ranges import Depth, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

SIZE = 4  # numbers of a kernel of minibatch discrimination


@dataclass(frozen=True)
class GANConfig:
    """The configuration of both players."""

    latent: Width = 2
    """Dimensions of the noise."""
    outputs: Width = 2
    """Dimensions of a point."""
    width: Width = 128
    depth: Depth = 2


class Generator(Pretrained):
    """noise (b, latent) -> points (b, outputs)"""

    Config = GANConfig
    offers: frozenset[str] = frozenset()

    def __init__(self, config: GANConfig):
        super().__init__()
        c = self.config = config
        self.hidden = stack(c.latent, c.width, c.depth)
        self.out = nn.Linear(c.width, c.outputs)

    def forward(self, z: Tensor) -> Tensor:
        for layer in self.hidden:
            z = layer(z).relu()
        return self.out(z)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New points."""
        return self(chance.normal(self.config.latent))


class Discriminator(nn.Module):
    """points (b, outputs) -> logits (b): above 0 means real. With `kernels` of minibatch discrimination before the last
    layer it sees how alike the points of a batch are."""

    def __init__(self, inputs: int, width: int, depth: int, kernels: int = 0):
        super().__init__()
        self.hidden = stack(inputs, width, depth)
        self.compare = MinibatchDiscrimination(width, kernels, SIZE) if kernels else nn.Identity()
        self.out = nn.Linear(width + kernels, 1)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.hidden:
            x = nn.functional.leaky_relu(layer(x), 0.2)
        return self.out(self.compare(x)).squeeze(-1)


def stack(inputs: int, width: int, depth: int) -> nn.ModuleList:
    """The hidden layers: inputs -> width -> .. -> width."""
    return nn.ModuleList(nn.Linear(n, out) for n, out in pairwise([inputs, *[width] * depth]))


SIZES: dict[str, GANConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = GANConfig(latent=3, outputs=2, width=8, depth=2)


def TINY_INPUT() -> Tensor:
    """Two vectors of noise."""
    return torch.randn(2, TINY.latent, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("Generator")
