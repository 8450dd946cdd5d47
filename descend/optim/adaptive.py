"""Adaptive steps in the forms that torch does not have: ε inside the root, and Adam without bias correction.

    RMSProp   E ← γ E + (1 − γ) g²,        θ ← θ − α g / √(E + ε)                        (DLN, MF 8.3.1, S940 2.2)
    Adagrad   G ← G + g²,                  θ ← θ − α g / √(G + ε)                        (DLN)
    Adam      m ← β₁ m + (1 − β₁) g,       v ← β₂ v + (1 − β₂) g²
              θ ← (1 − η λ) θ − η m̂ / √(v̂ + ε),    m̂ = m / (1 − β₁ᵗ),  v̂ = v / (1 − β₂ᵗ)   (MF 8.3.2; AdamW 8.3.3)
    uncorrected Adam                       θ ← θ − η m / (√v + ε)

torch puts ε outside the root, √v̂ + ε, for RMSprop, Adagrad and Adam (as DLN, S940 and VOM do for Adam) and inside for
Adadelta, D = −√(E[D²] + ε) / √(E[g²] + ε) · g; `rules.py` points to those. The placement matters once ε is not small
beside g²: with ε = 1e-8 and |g| = 1e-4 the first Adam step is 0.71 η inside and 0.9999 η outside.

Without bias correction the first step is 0.1 / √0.001 = √10 times too long. Erratum: VOM 5.5.3 prints m for m̂; the
text below it, and this code, have m̂.

How far Adam really goes is its step ratio m̂ / √v̂, the step in units of η: 1 where all gradients agree, about
√((1 − β₁) / (1 + β₁)) = 0.23 where they are pure noise.

Systems: rmsprop, adagrad, adam
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from descend.optim.elementwise import Elementwise, Group, Row, with_l2


class RMSPropInside(Elementwise):
    """RMSProp with √(E + ε)."""

    slots = ("square",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        gamma: float = 0.9,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr=lr, gamma=gamma, eps=eps, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (square,) = s
        g = with_l2(group, p, g)
        average_square(square, g, group["gamma"])
        torch._foreach_addcdiv_(p, g, root(square, group["eps"]), -group["lr"])


class AdagradInside(Elementwise):
    """Adagrad with √(G + ε)."""

    slots = ("sum",)

    def __init__(self, params: Iterable[Any], lr: float = 0.01, eps: float = 1e-8, weight_decay: float = 0.0):
        super().__init__(params, lr=lr, eps=eps, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (total,) = s
        g = with_l2(group, p, g)
        torch._foreach_addcmul_(total, g, g)
        torch._foreach_addcdiv_(p, g, root(total, group["eps"]), -group["lr"])


class AdamInside(Elementwise):
    """Adam with √(v̂ + ε); with λ it is MF's AdamW."""

    slots = ("m", "v")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (m, v), (b1, b2), lr = s, group["betas"], group["lr"]
        average_moments(m, v, g, b1, b2)
        if group["weight_decay"]:
            torch._foreach_mul_(p, 1 - lr * group["weight_decay"])
        c1, c2 = 1 - b1**t, 1 - b2**t
        # m̂ / √(v̂ + ε) = (√c₂ / c₁) m / √(v + c₂ ε)
        torch._foreach_addcdiv_(p, m, root(v, c2 * group["eps"]), -lr * c2**0.5 / c1)


class UncorrectedAdam(Elementwise):
    """Adam without bias correction, to show what the correction is for."""

    slots = ("m", "v")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ):
        super().__init__(params, lr=lr, betas=betas, eps=eps)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        m, v = s
        average_moments(m, v, g, *group["betas"])
        below = torch._foreach_sqrt(v)
        torch._foreach_add_(below, group["eps"])
        torch._foreach_addcdiv_(p, m, below, -group["lr"])


def average_moments(m: Row, v: Row, g: Row, b1: float, b2: float) -> None:
    """m ← β₁ m + (1 − β₁) g and v ← β₂ v + (1 − β₂) g²."""
    torch._foreach_lerp_(m, g, 1 - b1)
    average_square(v, g, b2)


def average_square(v: Row, g: Row, decay: float) -> None:
    """v ← β v + (1 − β) g²."""
    torch._foreach_mul_(v, decay)
    torch._foreach_addcmul_(v, g, g, 1 - decay)


def root(v: Row, eps: float) -> Row:
    """√(v + ε)."""
    below = torch._foreach_add(v, eps)
    torch._foreach_sqrt_(below)
    return below


def step_ratios(optimizer: torch.optim.Adam) -> list[Tensor]:
    """m̂ / (√v̂ + ε) of every parameter that has been stepped, in the optimizer's order: its last step over −η."""
    found = []
    for group in optimizer.param_groups:
        beta1, beta2 = group["betas"]
        for p in group["params"]:
            state = optimizer.state[p]
            if state:
                t = float(state["step"])
                m, v = state["exp_avg"] / (1 - beta1**t), state["exp_avg_sq"] / (1 - beta2**t)
                found.append(m / (v.sqrt() + group["eps"]))
    return found
