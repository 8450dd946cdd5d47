"""The small training loop that labs share: AdamW, a short warm-up, a cosine to zero, clipped gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

WARM_UP = 0.1


def train(model: nn.Module, loss: Callable[[], Tensor], steps: int, lr: float) -> list[float]:
    """Step `steps` times down `loss()`, a fresh batch each time; the losses on the way."""
    rule = torch.optim.AdamW(model.parameters(), lr, betas=(0.9, 0.98), weight_decay=0.01)
    seen = []
    for step in range(steps):
        rise = min(1.0, (step + 1) / max(1.0, WARM_UP * steps))
        for group in rule.param_groups:
            group["lr"] = lr * rise * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        rule.zero_grad()
        value = loss()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rule.step()
        seen.append(float(value.detach()))
    return seen
