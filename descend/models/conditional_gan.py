"""Conditional GAN: both players are told what to make, a class c.

    min_G max_D  E log D(x | c) + E log(1 − D(G(z | c) | c))
    G(z | c) = tanh of dense layers of [z ; e(c)]        d(x | c) = dense layers of [x ; e(c)]

e(c) is one-hot, or a learned vector where `label_width` gives it a size; G and D learn their own. All classes share the
layers, and asking for a class keeps the generator from forgetting it. With a constant c it is the plain GAN:
W [z ; e(c)] + b = W_z z + (b + W_c e(c)), only another bias. Dense layers as in the paper (Mirza & Osindero 2014);
sizes are ours, since the books leave the networks open. Images are read and made as vectors.

Systems: conditional-gan
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.contracts import Chance, Wish
from descend.models.gan import stack
from descend.ranges import Depth, Few, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class ConditionalGANConfig:
    """A recipe takes the shape and the classes from its data."""

    latent: Width = 16
    classes: Width = 10
    shape: tuple[Width, ...] = (1, 8, 8)
    """Of an example: channels, height and width of an image, or the numbers of a point."""
    width: Width = 128
    depth: Depth = 2
    label_width: Few = 0
    """Size of a learned vector for each class; 0: one-hot."""

    @property
    def outputs(self) -> int:
        """Numbers of an example."""
        return math.prod(self.shape)

    @property
    def told(self) -> int:
        """Numbers that say the class."""
        return self.label_width or self.classes


class OneHot(nn.Module):
    """classes c (b) -> (b, classes)"""

    def __init__(self, classes: int):
        super().__init__()
        self.classes = classes

    def forward(self, c: Tensor) -> Tensor:
        return nn.functional.one_hot(c, self.classes).float()


def label_layer(config: ConditionalGANConfig) -> nn.Module:
    """e: a class as a vector."""
    c = config
    return nn.Embedding(c.classes, c.label_width) if c.label_width else OneHot(c.classes)


class ConditionalGAN(Pretrained):
    """noise (b, latent), classes (b) -> examples (b, *shape) in −1..1"""

    Config = ConditionalGANConfig
    offers: frozenset[str] = frozenset({"classes"})

    def __init__(self, config: ConditionalGANConfig):
        super().__init__()
        c = self.config = config
        self.labels = label_layer(c)
        self.hidden = stack(c.latent + c.told, c.width, c.depth)
        self.out = nn.Linear(c.width, c.outputs)

    def forward(self, z: Tensor, classes: Tensor) -> Tensor:
        h = torch.cat([z, self.labels(classes).to(z)], dim=-1)
        for layer in self.hidden:
            h = layer(h).relu()
        return self.out(h).tanh().view(-1, *self.config.shape)

    def generate(self, chance: Chance, wish: Wish) -> Tensor:
        """New examples of the classes asked for, else of all classes equally often."""
        z, u = chance.normal(self.config.latent), chance.uniform()
        any_class = (u * self.config.classes).long().clamp(max=self.config.classes - 1)
        return self(z, any_class if wish.classes is None else wish.classes)


class ConditionalDiscriminator(nn.Module):
    """examples (b, *shape), classes (b) -> d(x | c) (b), of the generator's config"""

    def __init__(self, config: ConditionalGANConfig):
        super().__init__()
        c = config
        self.labels = label_layer(c)
        self.hidden = stack(c.outputs + c.told, c.width, c.depth)
        self.out = nn.Linear(c.width, 1)

    def forward(self, x: Tensor, classes: Tensor) -> Tensor:
        h = torch.cat([x.flatten(1), self.labels(classes).to(x)], dim=-1)
        for layer in self.hidden:
            h = nn.functional.leaky_relu(layer(h), 0.2)
        return self.out(h).squeeze(-1)


SIZES: dict[str, ConditionalGANConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = ConditionalGANConfig(latent=3, classes=2, shape=(1, 2, 2), width=8, label_width=2)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Noise, and both classes."""
    return torch.randn(2, TINY.latent, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 1])


INPUTS = ("z",)
"""What the generator reads of a batch."""
GIVEN: tuple[str, ...] = ("y",)
"""What both players are told."""


def draw_inputs(config: ConditionalGANConfig, random: torch.Generator, n: int) -> dict[str, Tensor]:
    """What n examples are made of."""
    return {"z": torch.randn(n, config.latent, generator=random)}


def make_discriminator(config: ConditionalGANConfig) -> nn.Module:
    """The other player."""
    return ConditionalDiscriminator(config)


LAYOUT = Layout("ConditionalGAN")
