"""Variational autoencoder whose posterior is a Gaussian bent by a normalizing flow.

    z_0 = μ + σ ε        z_j = f_j(z_{j−1}; x), j = 1..K        log q(z_K|x) = log q_0(z_0|x) − Σ_j log|det ∂f_j/∂z|
    ELBO = E log p(x|z_K) + log p(z_K) − log q(z_K|x)            K = 0: the VAE

The true posterior may have several modes, which one Gaussian cannot have. The book names the idea and gives no formula:
planar maps whose numbers come from the encoder, as in Rezende and Mohamed (2015). Encoder and decoder are the VAE's.

Systems: flow-posterior-vae
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.models._latent import Decoder, LatentModel
from descend.models.vae import dense, dense_decoder
from descend.nn.posterior import FlowPosterior
from descend.ranges import Few, Positive, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class FlowVAEConfig:
    """A VAE's, and the length of the flow."""

    image: tuple[Width, ...] = (1, 28, 28)
    hidden: tuple[Width, ...] = (500,)
    latent: Width = 20
    decoder: Decoder = "bernoulli"
    variance: Positive = 1.0
    steps: Few = 8
    """K planar maps; 0: none, a Gaussian posterior."""


class FlowVAE(LatentModel):
    """images (b, *image), noise (b, s, k) -> what the decoder says (b, s, *image), and KL (b)"""

    Config = FlowVAEConfig

    def __init__(self, config: FlowVAEConfig):
        super().__init__()
        c = self.config = config
        self.encoder = nn.Sequential(nn.Flatten(), *dense(math.prod(c.image), *c.hidden))
        self.posterior = FlowPosterior((math.prod(c.image), *c.hidden)[-1], c.latent, c.steps)
        self.decoder = dense_decoder(c.image, c.hidden, c.latent)


SIZES: dict[str, FlowVAEConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = FlowVAEConfig(image=(1, 4, 4), hidden=(8, 6), latent=3, steps=2)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images, and noise for two samples of each."""
    random = torch.Generator().manual_seed(0)
    return torch.rand(2, *TINY.image, generator=random), torch.randn(2, 2, TINY.latent, generator=random)


LAYOUT = Layout("FlowVAE")
