"""Training of a DALL-E in its two stages: what makes tokens first, then the transformer over tokens that stay."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from descend.labs._train import train
from descend.models.dalle import DallE, DalleConfig
from descend.models.dvae import DVAE
from descend.models.vq_vae import VQVAE
from descend.seeds import generator
from descend.tasks.relaxed_tokens import RelaxedTokens
from descend.tasks.visual_tokens import Quantize

BATCH = 48


def train_codes(codes: VQVAE | DVAE, x: Tensor, steps: int, random: torch.Generator) -> None:
    """A VQ-VAE or a discrete VAE on images x."""

    def take() -> Tensor:
        return x[torch.randint(len(x), (BATCH,), generator=random)]

    if isinstance(codes, DVAE):
        relaxed, shape = RelaxedTokens(codes), (*codes.config.grid, codes.config.vocab)
        noise = lambda: torch.rand(BATCH, *shape, generator=random)
        train(relaxed, lambda: relaxed.loss({"x": take(), "u": noise()}).total(), steps, 5e-3)
        return
    with torch.no_grad():
        codes.quantizer.place_entries(codes.encode(x[:200]).flatten(0, 2), random)
    task = Quantize(codes)
    train(task, lambda: task.loss(take()).total(), steps, 5e-3)


def train_stages(config: DalleConfig, captions: Tensor, x: Tensor, steps: tuple[int, int], seed: int) -> DallE:
    """Captions (n, T) and images (n, c, h, w), so many steps for the tokens and for the transformer."""
    torch.manual_seed(seed)
    model, random = DallE(config), generator(seed, 1)
    train_codes(model.codes, x, steps[0], random)
    with torch.no_grad():
        rows = model.join(captions, model.codes.tokens(x))

    def loss() -> Tensor:
        row = rows[torch.randint(len(rows), (BATCH,), generator=random)]
        _, image = model.split_logits(model.next_logits(row))
        return cross_entropy(image.mT, row[:, config.caption :] - config.words)

    train(model.transformer, loss, steps[1], 5e-3)
    return model.eval()
