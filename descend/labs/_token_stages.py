"""Training of a DALL-E in its two stages: the VQ-VAE first, then the transformer over tokens that no longer change."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from descend.labs._train import train
from descend.models.dalle import DallE, DalleConfig
from descend.seeds import generator
from descend.tasks.visual_tokens import Quantize

BATCH = 48


def train_stages(config: DalleConfig, captions: Tensor, x: Tensor, steps: tuple[int, int], seed: int) -> DallE:
    """Captions (n, T) and images (n, c, h, w), so many steps for the VQ-VAE and for the transformer."""
    torch.manual_seed(seed)
    model, random = DallE(config), generator(seed, 1)
    with torch.no_grad():
        model.codes.quantizer.place_entries(model.codes.encode(x[:200]).flatten(0, 2), random)
    task = Quantize(model.codes)
    train(task, lambda: task.loss(x[torch.randint(len(x), (BATCH,), generator=random)]).total(), steps[0], 5e-3)
    with torch.no_grad():
        rows = model.join(captions, model.codes.tokens(x))

    def loss() -> Tensor:
        row = rows[torch.randint(len(rows), (BATCH,), generator=random)]
        _, image = model.split_logits(model.next_logits(row))
        return cross_entropy(image.mT, row[:, config.caption :] - config.words)

    train(model.transformer, loss, steps[1], 5e-3)
    return model.eval()
