"""Variational autoencoder with dense layers: an encoder to a distribution of codes, a decoder that can make new images.

    p(z) = N(0, I)        q(z|x) = N(μ(x), diag σ²(x))        p(x|z): Bernoulli with logits f(z), or N(f(z), s² I)
    log p(x) ≥ ELBO = E_q log p(x|z) − KL(q(z|x) ‖ p(z))     `descend.losses.variational`

One network with shared hidden layers has two branches, for the mean and for the log-variance; the decoder mirrors it.
Hidden layers are followed by tanh, as in the first experiments. DLN's batch objective is a SUM over the examples; the
task takes the mean, as practice does. `conv_vae` has convolutions, `flow_vae` a posterior that is no Gaussian.

Systems: vae
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.models._latent import Decoder, LatentModel
from descend.nn.posterior import GaussianPosterior
from descend.ranges import Positive, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class VAEConfig:
    """A recipe takes `image` from its data."""

    image: tuple[Width, ...] = (1, 28, 28)
    hidden: tuple[Width, ...] = (500,)
    """Of the encoder; the decoder has the same in reverse."""
    latent: Width = 20
    """k."""
    decoder: Decoder = "bernoulli"
    """p(x|z): bernoulli for pixels in 0..1, or gaussian."""
    variance: Positive = 1.0
    """s² of the Gaussian decoder."""


class VAE(LatentModel):
    """images (b, *image), noise (b, s, k) -> what the decoder says (b, s, *image), and KL (b)"""

    Config = VAEConfig

    def __init__(self, config: VAEConfig):
        super().__init__()
        c = self.config = config
        self.encoder = nn.Sequential(nn.Flatten(), *dense(math.prod(c.image), *c.hidden))
        self.posterior = GaussianPosterior((math.prod(c.image), *c.hidden)[-1], c.latent)
        self.decoder = dense_decoder(c.image, c.hidden, c.latent)


def dense(*widths: int) -> list[nn.Module]:
    """Layers from width to width, each followed by tanh."""
    return [part for n, m in pairwise(widths) for part in (nn.Linear(n, m), nn.Tanh())]


def dense_decoder(image: tuple[int, ...], hidden: tuple[int, ...], latent: int) -> nn.Sequential:
    """z -> what it says of every pixel."""
    last = nn.Linear((latent, *hidden[::-1])[-1], math.prod(image))
    return nn.Sequential(*dense(latent, *hidden[::-1]), last, nn.Unflatten(-1, image))


SIZES: dict[str, VAEConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = VAEConfig(image=(1, 4, 4), hidden=(8, 6), latent=3)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images, and noise for two samples of each."""
    random = torch.Generator().manual_seed(0)
    return torch.rand(2, *TINY.image, generator=random), torch.randn(2, 2, TINY.latent, generator=random)


LAYOUT = Layout("VAE")
