"""Embed, then pool: a features extractor that keeps what is stable.

    embedding   many non-linear detectors at every place: a_k = relu(w_k * x + b_k), more dimensions than the input
    pooling     the strongest answer of a detector over a region: points that mean the same are merged

What a detector finds is kept, where exactly it was found is not: the output changes less than the input when the input
is moved a little, and a linear classifier behind it can tell classes apart that it cannot tell apart in the pixels. The
filters may be trained with the classifier, or be patches of the data (`with_patches`): then nothing is trained.

Systems: embed-then-pool
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn


class EmbedThenPool(nn.Module):
    """images (b, c, h, w) -> features (b, detectors · regions²)"""

    def __init__(self, channels: int, detectors: int, size: int, regions: int = 1):
        super().__init__()
        self.embed = nn.Conv2d(channels, detectors, size)
        self.pool = nn.AdaptiveMaxPool2d(regions)

    def embedding(self, x: Tensor) -> Tensor:
        """a (b, detectors, h', w')"""
        return self.embed(x).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.embedding(x)).flatten(1)

    @classmethod
    @torch.no_grad()
    def with_patches(cls, x: Tensor, detectors: int, size: int, regions: int, random: torch.Generator) -> Self:
        """Filters that are patches of images x (n, c, h, w), without their mean and of length 1; threshold a half."""
        made = cls(x.shape[1], detectors, size, regions)
        patches = x.unfold(2, size, 1).unfold(3, size, 1).permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
        flat = patches.flatten(1) - patches.flatten(1).mean(1, keepdim=True)
        long = flat.norm(dim=1)
        full = (long > 0.5 * long.max()).nonzero().flatten()  # not the empty ones
        rows = full[torch.randint(len(full), (detectors,), generator=random)]
        filters = (flat[rows] / long[rows, None]).view(detectors, *patches.shape[1:])
        made.embed.weight.copy_(filters)
        made.embed.bias.copy_(-0.5 * long[rows])  # type: ignore[union-attr]
        return made
