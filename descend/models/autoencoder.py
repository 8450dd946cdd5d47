"""Autoencoder: an encoder to a few numbers, a decoder back, trained on the inputs alone.

    z = f(W x + b)        y = g(W′ z + b′)        dim z < dim x        J: `descend.losses.reconstruction`

The encoder has any number of hidden layers, the decoder mirrors them: none, with linear codes and outputs, is the
linear autoencoder, whose best subspace is that of PCA; 784-1000-500-250-30 is the deep one (the book's widths are in a
figure that is missing; these are Hinton and Salakhutdinov's of 2006). A wide code with a penalty on its activations is
the sparse autoencoder; a spoilt input with the clean one as target the denoising one: both are in the task.

Systems: autoencoder, deep-autoencoder, linear-autoencoder-is-pca
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from descend.ranges import Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

Activation = Literal["identity", "relu", "elu", "sigmoid", "tanh"]
FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "relu": torch.relu,
    "elu": nn.functional.elu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


@dataclass(frozen=True)
class AutoencoderConfig:
    """Widths from the input to the code; the decoder has the same in reverse. A recipe takes `image` from its data."""

    image: tuple[Width, ...] = (1, 28, 28)
    """Shape of an input; (d,) for vectors."""
    hidden: tuple[Width, ...] = (1000, 500, 250)
    latent: Width = 30
    activation: Activation = "relu"
    """Of the hidden layers."""
    code: Activation = "identity"
    """f of the code."""
    output: Activation = "identity"
    """g of the reconstruction."""

    @property
    def widths(self) -> tuple[int, ...]:
        """n_0 .. the code's."""
        return math.prod(self.image), *self.hidden, self.latent

    @property
    def compression(self) -> float:
        """Numbers of an input for each number of its code."""
        return math.prod(self.image) / self.latent


class Autoencoder(Pretrained):
    """x (b, *image) -> y (b, *image)"""

    Config = AutoencoderConfig

    def __init__(self, config: AutoencoderConfig):
        super().__init__()
        self.config = config
        self.encoder = nn.ModuleList(nn.Linear(n, m) for n, m in pairwise(config.widths))
        self.decoder = nn.ModuleList(nn.Linear(n, m) for n, m in pairwise(config.widths[::-1]))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(self.encode(x))

    def encode(self, x: Tensor) -> Tensor:
        """z (b, latent)"""
        return self.run(self.encoder, x.flatten(1), self.config.code)

    def decode(self, z: Tensor) -> Tensor:
        """y (b, *image)"""
        return self.run(self.decoder, z, self.config.output).unflatten(-1, self.config.image)

    def run(self, layers: Sequence[nn.Module] | nn.ModuleList, a: Tensor, last: Activation) -> Tensor:
        """Affine maps with the activation between them and `last` at the end."""
        for layer in layers[:-1]:
            a = FUNCTIONS[self.config.activation](layer(a))
        return FUNCTIONS[last](layers[-1](a))

    def features(self, x: Tensor) -> Tensor:
        """The codes, for a classifier."""
        return self.encode(x)

    def reconstruct(self, x: Tensor) -> Tensor:
        """y of x."""
        return self.forward(x)


SIZES = {"hinton-2006": AutoencoderConfig()}
PARAMETERS = {"hinton-2006": 2_837_314}
TINY = AutoencoderConfig(image=(1, 3, 4), hidden=(8,), latent=3, activation="tanh")


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("Autoencoder")
