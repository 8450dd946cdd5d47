"""Lion: the sign of an interpolated momentum, with decoupled weight decay.

    c = β₁ m + (1 − β₁) g,    θ ← θ − η (sign c + λ θ),    m ← β₂ m + (1 − β₂) g

One buffer, against two of Adam. With λ = 0 every coordinate moves by exactly η (or 0 where c = 0), so η is 3 to 10
times smaller than Adam's and λ as much larger. The books print no β; 0.9 and 0.99 are those of the paper that found
it by program search (`evolution.py` can express it).

Systems: lion
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from descend.optim.elementwise import Elementwise, Group, Row


class Lion(Elementwise):
    """θ ← θ − η (sign(β₁ m + (1 − β₁) g) + λ θ)."""

    slots = ("m",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (m,), (b1, b2), lr = s, group["betas"], group["lr"]
        c = torch._foreach_lerp(m, g, 1 - b1)
        torch._foreach_sign_(c)
        if group["weight_decay"]:
            torch._foreach_mul_(p, 1 - lr * group["weight_decay"])
        torch._foreach_add_(p, c, alpha=-lr)
        torch._foreach_lerp_(m, g, 1 - b2)
