"""A gain for every weight, and Rprop: step sizes from the signs of gradients.

    gains    Δθ = −α γ g,    γ ← γ + 0.05 if g g₋₁ > 0, else 0.95 γ, clipped to [0.1, 10] (or [0.01, 100])
    Rprop    Δ ← 1.2 Δ if g g₋₁ > 0, 0.5 Δ if g g₋₁ < 0, else Δ;    θ ← θ − sign(g) Δ

The gain is 1 at first and has nothing to compare at the first step; a product of 0 counts as disagreement, as
printed. With momentum, the gradient is compared with the velocity instead (agreement: they point against each other).

DLN prints Rprop's step sizes only; the move by −sign(g) Δ is the obvious one, and Δ stays in [1e-6, 50].
torch.optim.Rprop is the paper's form: on a change of sign it does not move, and forgets the gradient. Both are for
full batches: nine gradients of 0.1 and one of −0.9 average to 0, yet Rprop walks far. Erratum: with descent those are
nine decrements and one increment, not the reverse.

Systems: local-adaptive-gains, rprop
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from descend.optim.elementwise import Elementwise, Group, Row, with_l2


class LocalGains(Elementwise):
    """Gains that grow while consecutive gradients agree."""

    slots = ("last", "gain")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        add: float = 0.05,
        multiply: float = 0.95,
        clip: tuple[float, float] = (0.1, 10.0),
        weight_decay: float = 0.0,
    ):
        super().__init__(params, lr=lr, add=add, multiply=multiply, clip=clip, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        last, gain = s
        g = with_l2(group, p, g)
        if t > 1:
            adapt(gain, torch._foreach_mul(g, last), group)
        else:
            torch._foreach_add_(gain, 1.0)
        torch._foreach_copy_(last, g)
        torch._foreach_addcmul_(p, g, gain, -group["lr"])


class VelocityGains(Elementwise):
    """Gains that grow while the gradient agrees with the velocity: D ← β D − α γ g, θ ← θ + D."""

    slots = ("velocity", "gain")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.01,
        momentum: float = 0.9,
        clip: tuple[float, float] = (0.1, 10.0),
        weight_decay: float = 0.0,
    ):
        super().__init__(
            params, lr=lr, momentum=momentum, add=0.05, multiply=0.95, clip=clip, weight_decay=weight_decay
        )

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        d, gain = s
        g = with_l2(group, p, g)
        if t > 1:
            agree = torch._foreach_mul(g, d)
            torch._foreach_neg_(agree)
            adapt(gain, agree, group)
        else:
            torch._foreach_add_(gain, 1.0)
        torch._foreach_mul_(d, group["momentum"])
        torch._foreach_addcmul_(d, g, gain, -group["lr"])
        torch._foreach_add_(p, d)


def adapt(gain: Row, agree: Row, group: Group) -> None:
    """γ + a where `agree` is positive, else b γ, clipped; `agree` is spent."""
    a, b, (low, high) = group["add"], group["multiply"], group["clip"]
    torch._foreach_sign_(agree)
    torch._foreach_clamp_min_(agree, 0.0)
    # b γ + k ((1 − b) γ + a), with k = 1 where they agree and else 0
    grown = torch._foreach_mul(gain, 1 - b)
    torch._foreach_add_(grown, a)
    torch._foreach_mul_(gain, b)
    torch._foreach_addcmul_(gain, grown, agree)
    torch._foreach_clamp_min_(gain, low)
    torch._foreach_clamp_max_(gain, high)


class PlainRprop(Elementwise):
    """θ ← θ − sign(g) Δ at every step, also where the sign has just changed. `lr` is the first Δ."""

    slots = ("last", "delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.1,
        etas: tuple[float, float] = (0.5, 1.2),
        steps: tuple[float, float] = (1e-6, 50.0),
    ):
        super().__init__(params, lr=lr, etas=etas, steps=steps)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        (last, delta), (down, up), (least, most) = s, group["etas"], group["steps"]
        sign = torch._foreach_sign(g)
        if t == 1:
            torch._foreach_add_(delta, group["lr"])
        product = torch._foreach_mul(sign, last)
        # 1 + a k + b k² is 1, η⁺ and η⁻ at k = 0, 1 and −1
        factor = torch._foreach_mul(product, (up + down) / 2 - 1)
        torch._foreach_add_(factor, (up - down) / 2)
        torch._foreach_mul_(factor, product)
        torch._foreach_add_(factor, 1.0)
        torch._foreach_mul_(delta, factor)
        torch._foreach_clamp_min_(delta, least)
        torch._foreach_clamp_max_(delta, most)
        torch._foreach_copy_(last, sign)
        torch._foreach_addcmul_(p, sign, delta, -1.0)
