"""Exponential moving average of the weights.

    θ̄_t = θ̄_{t−1} + w_t (θ_t − θ̄_{t−1})        w_t = max(1 − β, 9 / (t + 8)),   t = 1, 2, …

after every step; θ̄ is evaluated and saved, θ is trained. From t = 9/(1−β) − 8 on this is the usual θ̄ ← β θ̄ + (1 − β) θ.
Before that the usual form is mostly the initial weights (β^t of it: half after 69 steps for β = 0.99). Here w_1 = 1, so
they have no share at all, and a short run averages over the last of its steps: before that t, the share of the first k
of t steps is Π_{j=0..8} (k + j) / (t + j), about (k/t)⁹.

The running mean and variance of batch norms are averaged too: those of θ do not fit the activations that θ̄ makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from descend.engine.frozen import find_frozen

STATISTICS = ("running_mean", "running_var")


def weight(t: int, beta: float) -> float:
    """w_t = max(1 − β, 9 / (t + 8)): how much of θ̄_t is θ_t."""
    return max(1 - beta, 9 / (t + 8))


class Ema:
    """Shadow copies of a module's parameters and running statistics; other buffers are taken as they are."""

    def __init__(self, module: nn.Module, beta: float):
        self.beta = beta
        frozen = {id(t) for part in find_frozen(module).values() for t in (*part.parameters(), *part.buffers())}
        statistics = [b for name, b in module.named_buffers() if name.endswith(STATISTICS)]
        self.live: list[Tensor] = [t for t in (*module.parameters(), *statistics) if id(t) not in frozen]
        self.shadow = [p.detach().clone() for p in self.live]

    @torch.no_grad()
    def update(self, t: int) -> None:
        """θ̄_t, after step t = 1, 2, …"""
        for kind in dict.fromkeys(map(type, self.shadow)):  # shards, and what stays whole
            mine = [at for at, shadow in enumerate(self.shadow) if type(shadow) is kind]
            shadow, live = ([tensors[at] for at in mine] for tensors in (self.shadow, self.live))
            torch._foreach_lerp_(shadow, live, weight(t, self.beta))

    @contextmanager
    def swap_in(self) -> Iterator[None]:
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
