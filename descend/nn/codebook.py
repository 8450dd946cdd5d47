"""A codebook of patches: the nearest of v typical patches is a patch's visual token.

    token(x) = argmin_k |x − c_k|²                 c_k: v centres, learned by k-means
    start: c_k is a patch drawn with probability ∝ its squared distance from c_1 .. c_{k−1}        (k-means++)
    c_k ← mean of the patches whose token is k     repeated

A substitute for the discrete VAE of BEiT, which takes days to train and is not published with it: like the VAE it turns
an image into a few whole numbers that can be predicted and, roughly, turned back. It knows one patch at a time, so its
tokens are closer to pixels than those of the VAE. A centre that lost all its patches starts again at the patch that is
farthest from its own.

Systems: beit
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn


class Codebook(nn.Module):
    """Patches (.., l) <-> tokens (..); the centres (v, l) are not trained by gradients."""

    centres: Tensor

    def __init__(self, centres: Tensor):
        super().__init__()
        self.register_buffer("centres", centres)

    def forward(self, patches: Tensor) -> Tensor:
        """The number of the nearest centre."""
        return distances(patches, self.centres).argmin(dim=-1)

    def decode(self, tokens: Tensor) -> Tensor:
        """The centres of these tokens: (..) -> (.., l)"""
        return self.centres[tokens]

    @classmethod
    def learn(cls, patches: Tensor, vocab: int, random: torch.Generator, steps: int = 20) -> Self:
        """k-means on patches (n, l), from v of them that are far apart."""
        if len(patches) < vocab:
            raise ValueError(f"{len(patches)} patches are too few for {vocab} visual tokens")
        centres = spread(patches, vocab, random)
        for _ in range(steps):
            far, token = distances(patches, centres).min(dim=-1)
            counts = torch.bincount(token, minlength=vocab)
            sums = torch.zeros_like(centres).index_add_(0, token, patches)
            moved = sums / counts.clamp(min=1)[:, None]
            empty = counts == 0
            moved[empty] = patches[far.argsort(descending=True)[: int(empty.sum())]]
            centres = moved
        return cls(centres)


def spread(patches: Tensor, vocab: int, random: torch.Generator) -> Tensor:
    """v patches (v, l), each drawn with probability ∝ the squared distance from those before it."""
    chosen = patches[torch.randint(len(patches), (1,), generator=random)]
    far = (patches - chosen).square().sum(-1)
    for k in range(1, vocab):
        if not far.any():
            raise ValueError(f"{k} different patches are too few for {vocab} visual tokens")
        new = patches[torch.multinomial(far, 1, generator=random)]
        chosen, far = torch.cat([chosen, new]), far.minimum((patches - new).square().sum(-1))
    return chosen


def distances(x: Tensor, centres: Tensor) -> Tensor:
    """|x − c_k|² for every k: (.., l), (v, l) -> (.., v)"""
    return x.square().sum(-1, keepdim=True) - 2 * x @ centres.T + centres.square().sum(-1)
