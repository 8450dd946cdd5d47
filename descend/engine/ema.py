"""Exponential moving average of the weights.

θ̄ ← β θ̄ + (1 − β) θ          after every step; θ̄ is evaluated and saved, θ is trained

The running mean and variance of batch norms are averaged too: those of θ do not fit the activations that θ̄ makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

STATISTICS = ("running_mean", "running_var")


class Ema:
    """Shadow copies of a module's parameters and running statistics; other buffers are taken as they are."""

    def __init__(self, module: nn.Module, beta: float):
        self.beta = beta
        statistics = [b for name, b in module.named_buffers() if name.endswith(STATISTICS)]
        self.live: list[Tensor] = [*module.parameters(), *statistics]
        self.shadow = [p.detach().clone() for p in self.live]

    @torch.no_grad()
    def update(self) -> None:
        torch._foreach_lerp_(self.shadow, self.live, 1 - self.beta)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the module holds the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for p, s in zip(self.live, self.shadow, strict=True):
            keep = p.detach().clone()
            p.copy_(s)
            s.copy_(keep)

    def state_dict(self) -> dict[str, list[Tensor]]:
        return {"shadow": self.shadow}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        for mine, saved in zip(self.shadow, state["shadow"], strict=True):
            mine.copy_(saved)
