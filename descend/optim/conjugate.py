"""Conjugate gradients: linear, for A x = b from products A v alone; and non-linear, for any loss.

    linear       p₀ = r₀ = b − A x₀;   α = rᵀr / pᵀA p,   x ← x + α p,   r' = r − α A p,   p ← r' + (r'ᵀr' / rᵀr) p
    non-linear   d ← −g + β d,  x ← x + t d with t by a line search
                 Fletcher-Reeves   β = gᵀg / g₋ᵀg₋          Polak-Ribière   β = max(0, gᵀ(g − g₋) / g₋ᵀg₋)

The directions are conjugate, pᵢᵀ A pⱼ = 0: a step along one does not spoil the minimum along those before it. N steps
solve an N-dimensional quadratic, and on one the non-linear forms are the linear one. The text prints no formula;
these are the standard ones. The non-linear form is a batch method, or takes many steps on each large mini-batch
(`inner`).

Systems: conjugate-gradient
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.optim.elementwise import Closure, evaluate, number
from descend.optim.flat import Flat
from descend.optim.line import line_minimum

Product = Callable[[Tensor], Tensor]


class Step(NamedTuple):
    """After one step: the iterate x, its residual b − A x, and the direction that led there."""

    x: Tensor
    residual: Tensor
    direction: Tensor


def cg_steps(product: Product, b: Tensor, x: Tensor | None = None) -> Iterator[Step]:
    """Linear CG, step by step, until the residual is 0 or a direction has no positive curvature."""
    x = torch.zeros_like(b) if x is None else x
    r = b - product(x)
    p, rr = r, r @ r
    while rr > 0:
        ap = product(p)
        curvature = p @ ap
        if not curvature > 0:
            return
        alpha = rr / curvature
        x, r = x + alpha * p, r - alpha * ap
        yield Step(x, r, p)
        rr, old = r @ r, rr
        p = r + (rr / old) * p


def conjugate_gradient(product: Product, b: Tensor, tolerance: float = 1e-10, most: int | None = None) -> Tensor:
    """Solve A x = b for a symmetric positive definite A given as v ↦ A v, to a residual of `tolerance` · ‖b‖.

    At most 2 N steps: N are enough without rounding.
    """
    x = torch.zeros_like(b)
    for at in islice(cg_steps(product, b), 2 * b.numel() if most is None else most):
        x = at.x
        if at.residual.norm() <= tolerance * b.norm():
            break
    return x


class NonlinearCG(Flat):
    """Conjugate directions with a line search; each step evaluates the closure several times."""

    def __init__(self, params: Iterable[Any], lr: float = 1.0, inner: int = 1):
        super().__init__(params, lr=lr, inner=inner)

    def beta(self, g: Tensor, last: Tensor) -> Tensor:
        """How much of the old direction stays."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """`inner` line searches; returns the loss before the first. `lr` is the length of the very first trial."""
        loss = value = number(evaluate(closure))
        g = self.gradient()
        for _ in range(self.setting("inner")):
            value, g = self.search(closure, value, g)
        return loss

    def search(self, closure: Closure | None, value: float, g: Tensor) -> tuple[float, Tensor]:
        """One direction and the minimum along it; returns loss and gradient there."""
        memory, x = self.memory, torch.cat([p.reshape(-1) for p in self.params])
        d = -g
        if "direction" in memory and memory["count"] % g.numel():  # every N steps it starts afresh
            d = d + self.beta(g, memory["gradient"]) * memory["direction"]
        if g @ d >= 0:
            d = -g
        slope = float(g @ d)
        if not slope:
            return value, g

        def along(t: float) -> tuple[float, float]:
            self.place(x + t * d)
            f = number(evaluate(closure))
            return f, float(self.gradient() @ d)

        # The first trial is lr / ‖d‖, then the last step scaled to the same expected fall.
        first = memory["fall"] / slope if "fall" in memory else self.setting("lr") / float(d.norm())
        found = line_minimum(along, value, slope, first)
        if found.t == 0:  # no fall along d: stay, and begin again with steepest descent
            self.place(x)
            memory.pop("direction", None)
            return value, g
        self.place(x + found.t * d)
        memory.update(direction=d, gradient=g, fall=found.t * slope, count=memory.get("count", 0) + 1)
        return found.value, self.gradient()


class FletcherReeves(NonlinearCG):
    """β = gᵀg / g₋ᵀg₋."""

    def beta(self, g: Tensor, last: Tensor) -> Tensor:
        return (g @ g) / (last @ last)


class PolakRibiere(NonlinearCG):
    """β = max(0, gᵀ(g − g₋) / g₋ᵀg₋); where it is 0 the method starts afresh."""

    def beta(self, g: Tensor, last: Tensor) -> Tensor:
        return ((g @ (g - last)) / (last @ last)).clamp_min(0)
