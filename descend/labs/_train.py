"""The training that most labs share: AdamW, a short warm-up, a cosine to zero, clipped gradients, by the engine."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine


def train(model: nn.Module, loss: Callable[[], Tensor], steps: int, lr: float) -> list[float]:
    """Step `steps` times down `loss()`, a fresh batch each time; the losses on the way."""
    rule = AdamW(lr, betas=(0.9, 0.98), weight_decay=0.01)
    return minimise(model, loss, steps, rule, Cosine(warmup=steps // 10, floor=0.0), clip=1.0)
