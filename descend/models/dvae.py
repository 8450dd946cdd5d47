"""Discrete VAE: an autoencoder whose code is a grid of choices among V entries, relaxed while it learns.

    a = encoder(x) (b, h', w', V)     y = softmax((a + Gumbel noise) / τ)     x̂ = decoder(y E)     token = argmax a
    loss: ‖x − x̂‖² + β KL(softmax(a) ‖ uniform)                   `descend.tasks.relaxed_tokens`

The original DALL-E's source of image tokens (8192 codes, 32 × 32 places); the book's is a VQ-VAE (`vq_vae`), which
takes the nearest entry instead and passes the gradient straight through. Both give tokens and images back, so either
can be the `codes` of a `dalle`. Encoder and decoder are those of `vq_vae`; left out: the original's residual blocks
and its logit-Laplace likelihood of pixels.

Systems: dall-e-1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from descend.models.vq_vae import VQVAEConfig, make_decoder, make_encoder
from descend.ops.relaxed_categorical import relax
from descend.ranges import Positive
from descend.weights.layout import Layout, config_to_json
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class DVAEConfig(VQVAEConfig):
    """The sizes of a VQ-VAE, and the temperature."""

    temperature: Positive = 0.5
    """τ of the relaxation."""

    def write(self) -> dict[str, Any]:
        """As a part of another config.json."""
        return config_to_json(self, LAYOUT, "dvae", "float32")


class DVAE(Pretrained):
    """images (b, c, h, w), noise u (b, h', w', V) -> reconstruction (b, c, h, w), logits (b, h', w', V)"""

    Config = DVAEConfig

    def __init__(self, config: DVAEConfig):
        super().__init__()
        c = self.config = config
        assert c.grid
        self.encoder = make_encoder(c, c.vocab)
        self.codebook = nn.Embedding(c.vocab, c.code)
        self.decoder = make_decoder(c)

    def forward(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        a = self.logits(x)
        return self.decode(relax(a, u, self.config.temperature) @ self.codebook.weight), a

    def logits(self, x: Tensor) -> Tensor:
        """a (b, h', w', V)"""
        return self.encoder(x).movedim(1, -1)

    def decode(self, code: Tensor) -> Tensor:
        """Mixed entries (b, h', w', d) -> images"""
        return self.decoder(code.movedim(-1, 1))

    @torch.no_grad()
    def tokens(self, x: Tensor) -> Tensor:
        """The likeliest choices: images -> tokens (b, h', w')"""
        return self.logits(x).argmax(-1)

    def from_tokens(self, tokens: Tensor) -> Tensor:
        """Tokens (b, h', w') -> images"""
        return self.decode(self.codebook(tokens))

    def reconstruct(self, x: Tensor) -> Tensor:
        """Through tokens and back."""
        return self.from_tokens(self.tokens(x))


SIZES: dict[str, DVAEConfig] = {}
PARAMETERS: dict[str, int] = {}
TINY = DVAEConfig(image=(3, 8, 8), maps=6, halvings=1, blocks=1, vocab=5, code=4)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images and noise."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(2, *TINY.image, generator=random)
    return x, torch.rand(2, *TINY.grid, TINY.vocab, generator=random)


LAYOUT = Layout("DVAE")
