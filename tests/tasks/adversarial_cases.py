"""Small cases of the adversarial tasks, for `cases.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Task
from descend.losses.adversarial import LeastSquares
from descend.models import progressive_gan
from descend.tasks.adversarial import Adversarial, GameRules
from descend.tasks.growing import GrowAdversarial
from descend.tasks.translation import TranslatePairs, TranslateUnpaired, TwoWays

B = 8


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def points() -> tuple[Task, Batch]:
    quality = lambda x: {"norm": x.norm(dim=1)}
    d = nn.Sequential(nn.Linear(2, 1), nn.Flatten(0))
    task = Adversarial(nn.Linear(3, 2), d, quality, GameRules(d_moves=2))
    return task, {"x": numbers(B, 2), "z": numbers(B, 3)}


def growing() -> tuple[Task, Batch]:
    config = replace(progressive_gan.TINY, width=3)
    g, d = progressive_gan.ProgressiveGAN(config), progressive_gan.GrowingDiscriminator(config)
    d.deviation = nn.ZeroPad3d((0, 0, 0, 0, 0, 1))  # type: ignore[assignment] # of a minibatch: micro-batches have others
    task = GrowAdversarial(g, d, lambda x: {"norm": x.flatten(1).norm(dim=1)})
    return task, {"x": numbers(B, 2, 16, 16), "z": numbers(B, 3), "growth": torch.full((B,), 0.5)}


class Judge(nn.Module):
    """Of an image and its source."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(5, 1, 3)

    def forward(self, x: Tensor, source: Tensor) -> Tensor:
        scores: Tensor = self.conv(torch.cat([x, source], dim=1))
        return scores


def quality(made: Tensor, batch: Batch) -> dict[str, Tensor]:
    return {"mean": made.flatten(1).mean(1)}


def pairs() -> tuple[Task, Batch]:
    task = TranslatePairs(nn.Conv2d(3, 2, 3, padding=1), Judge(), quality, GameRules())
    return task, {"source": numbers(B, 3, 6, 6), "x": numbers(B, 2, 6, 6)}


def unpaired() -> tuple[Task, Batch]:
    ways = [TwoWays(*(nn.Conv2d(2, n, 3, padding=1) for _ in range(2))) for n in (2, 1)]
    task = TranslateUnpaired(ways[0], ways[1], quality, LeastSquares(), identity=0.5)
    return task, {"x": numbers(B, 2, 6, 6), "y": numbers(B, 2, 6, 6)}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "Adversarial": points,
    "GrowAdversarial": growing,
    "TranslatePairs": pairs,
    "TranslateUnpaired": unpaired,
}
