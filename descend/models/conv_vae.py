"""Variational autoencoder with convolutions, which halve the image, and transposed ones, which double it again.

    encoder   [conv 4×4, stride 2, ReLU] × m, flatten, W        c → w_1 → .. → w_m maps, side / 2ᵐ
    decoder   W, ReLU, [transposed conv 4×4, stride 2, ReLU between] × m

The objective, the posterior and the decoders' distributions are those of `vae`.

Systems: vae
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.models._latent import Decoder, LatentModel
from descend.nn.posterior import GaussianPosterior
from descend.ranges import Positive, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class ConvVAEConfig:
    """A recipe takes `image` from its data."""

    image: tuple[Width, ...] = (1, 28, 28)
    maps: tuple[Width, ...] = (32, 64)
    """After each halving."""
    hidden: Width = 256
    """Numbers between the maps and the code."""
    latent: Width = 20
    decoder: Decoder = "bernoulli"
    variance: Positive = 1.0

    @property
    def last(self) -> tuple[int, int, int]:
        """Shape of the smallest maps."""
        _, height, width = self.image
        by = 2 ** len(self.maps)
        if height % by or width % by:
            raise ValueError(
                f"images of {height}×{width} cannot be halved {len(self.maps)} times; use fewer --model.maps"
            )
        return self.maps[-1], height // by, width // by


class ConvVAE(LatentModel):
    """images (b, c, h, w), noise (b, s, k) -> what the decoder says (b, s, c, h, w), and KL (b)"""

    Config = ConvVAEConfig

    def __init__(self, config: ConvVAEConfig):
        super().__init__()
        c = self.config = config
        last, channels = c.last, (c.image[0], *c.maps)
        flat = last[0] * last[1] * last[2]
        down = [part for n, m in pairwise(channels) for part in (nn.Conv2d(n, m, 4, 2, 1), nn.ReLU())]
        up = [part for n, m in pairwise(channels[::-1]) for part in (nn.ReLU(), nn.ConvTranspose2d(n, m, 4, 2, 1))]
        encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(flat, c.hidden), nn.ReLU())
        self.posterior = GaussianPosterior(c.hidden, c.latent)
        wide = [nn.Linear(c.latent, c.hidden), nn.ReLU(), nn.Linear(c.hidden, flat), nn.Unflatten(-1, last)]
        decoder = nn.Sequential(*wide, *up)
        self.encoder, self.decoder = encoder, decoder
        for part in [*encoder, *decoder][:-1]:
            keep_scale(part)


def keep_scale(layer: nn.Module) -> None:
    """Weights N(0, 2/n), n inputs of a unit: without it the code hardly reaches the image, and training begins in a
    long plateau where the decoder ignores it."""
    if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
        inputs = layer.weight.shape[0] * 4 if isinstance(layer, nn.ConvTranspose2d) else layer.weight[0].numel()
        nn.init.normal_(layer.weight, std=(2 / inputs) ** 0.5)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


SIZES: dict[str, ConvVAEConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = ConvVAEConfig(image=(1, 8, 8), maps=(4, 6), hidden=10, latent=3)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images, and noise for two samples of each."""
    random = torch.Generator().manual_seed(0)
    return torch.rand(2, *TINY.image, generator=random), torch.randn(2, 2, TINY.latent, generator=random)


LAYOUT = Layout("ConvVAE")
