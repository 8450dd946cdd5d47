"""Momentum with the learning rate inside the velocity, and Nesterov's gradient at the look-ahead point.

    heavy ball   D ← β D − α ∇E(θ),           θ ← θ + D                    (Polyak; DLN, S940 2.2, VOM 5.5.3)
    Nesterov     θ̂ = θ + β D,  D ← β D − α ∇E(θ̂),  θ ← θ + D = θ̂ − α ∇E(θ̂)

The other form, v ← β v + g, θ ← θ − η v (MF 7.3, torch.optim.SGD), has v = −D / α: the same path for a constant α,
another one under a schedule, because here old velocity keeps the rate it was made with. Under a constant gradient the
velocity tends to −α g / (1 − β). torch's nesterov=True keeps the shifted point θ̂ as its parameter: its iterates are
the look-ahead points of this one.

Errata: MF 7.3.2 prints W₂ = (.6919, .7890, .8758); its own numbers give (.6924, .7887, .8850).

Systems: momentum, nesterov-momentum
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from descend.optim.elementwise import Closure, Elementwise, Group, Row, evaluate, with_l2
from descend.optim.shards import local


class HeavyBall(Elementwise):
    """D ← β D − α g, θ ← θ + D."""

    slots = ("velocity",)

    def __init__(self, params: Iterable[Any], lr: float = 0.01, momentum: float = 0.9, weight_decay: float = 0.0):
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (d,) = s
        torch._foreach_mul_(d, group["momentum"])
        torch._foreach_add_(d, with_l2(group, p, g), alpha=-group["lr"])
        torch._foreach_add_(p, d)


class Nesterov(Elementwise):
    """The gradient is really taken at θ + β D, so `step` needs a closure; between steps the parameters are θ."""

    slots = ("velocity",)

    def __init__(self, params: Iterable[Any], lr: float = 0.01, momentum: float = 0.9, weight_decay: float = 0.0):
        super().__init__(params, lr=lr, momentum=momentum, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        ahead = self.moving()
        self.shift(ahead, 1.0)
        try:
            loss = evaluate(closure)
        except BaseException:
            self.shift(ahead, -1.0)
            raise
        stay = {p for p, _ in ahead if p.grad is None}
        self.shift([(p, beta) for p, beta in ahead if p in stay], -1.0)
        super().step()
        return loss

    def moving(self) -> list[tuple[torch.Tensor, float]]:
        """The parameters that have a velocity, with their β."""
        return [(p, g["momentum"]) for g in self.param_groups for p in g["params"] if self.state.get(p)]

    def shift(self, ahead: list[tuple[torch.Tensor, float]], sign: float) -> None:
        """θ ← θ ± β D."""
        for p, beta in ahead:
            local(p).add_(local(self.state[p]["velocity"]), alpha=sign * beta)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (d,) = s
        g = with_l2(group, p, g)
        torch._foreach_mul_(d, group["momentum"])
        torch._foreach_add_(d, g, alpha=-group["lr"])
        torch._foreach_add_(p, g, alpha=-group["lr"])  # p is θ̂, so this is θ + D
