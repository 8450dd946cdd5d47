"""Adversarial training while both players grow: a batch says how far, and real images are brought to that size.

    growth k + α     stage k is complete, stage k + 1 counts α        one number for all examples of a step
    real images      (1 − α) up(down(x)) + α x,  x at the side of stage k + 1: as blurred as what the generator makes

Systems: progressive-gan
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, interpolate

from descend.contracts import Batch, JointMove, Move
from descend.tasks.adversarial import Adversarial


def fade(x: Tensor, growth: float, smallest: int) -> Tensor:
    """Images (b, c, s, s) at the side of the newest stage, smallest · 2ᵏ, and blurred as its α says."""
    stage = math.ceil(growth)
    x = avg_pool2d(x, x.shape[-1] // (smallest * 2**stage))
    alpha = growth - (stage - 1)
    if stage == 0 or alpha == 1:
        return x
    return torch.lerp(interpolate(avg_pool2d(x, 2), scale_factor=2, mode="nearest"), x, alpha)


class GrowAdversarial(Adversarial):
    """Both players have a buffer `growth`; the batch has the growth of its step."""

    smallest = 4

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        growth = float(batch["growth"][0])
        for player in (self.g, self.d):
            player.get_buffer("growth").fill_(growth)
        yield from super().moves({**batch, "x": fade(batch["x"], growth, self.smallest)})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        made = interpolate(self.make(batch), size=batch["x"].shape[-2:], mode="nearest")
        return self.quality(made, *self.conditions(batch))
