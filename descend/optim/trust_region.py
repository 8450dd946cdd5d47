"""A step along the natural gradient, as long as a divergence allows.

    minimise L(θ)  subject to  D(θ_old, θ) ≤ δ                 D(θ_old, θ_old) = 0, ∇D = 0, and F = ∇²D there
    s = F⁻¹ (−g) by conjugate gradients on v ↦ F v + λ v       g = ∇L: the direction that falls fastest for its D
    β = √(2δ / sᵀ(F + λ)s)                                     ½ β² sᵀ F s = δ: the longest step of the quadratic model
    θ = θ_old + c^k β s,  k = 0, 1, ..                         the first with L(θ) < L(θ_old) and D ≤ δ; none: stay

The closure is the training loop's. What it evaluates is asked for through a `Query`, which the loss reads: L, D, or
⟨∇D, v⟩, whose gradient is F v. So products are summed over micro-batches and processes as every gradient is.
Clipping would shorten the products: train without it.

Systems: trpo
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from descend.optim.conjugate import conjugate_gradient
from descend.optim.curvature import slopes
from descend.optim.elementwise import Closure, evaluate, number
from descend.optim.flat import Flat, flatten
from descend.optim.rules import list_whole
from descend.ranges import Between, Depth, NonNegative, Rate

LOSS, DIVERGENCE, PRODUCT, REPORT = "loss", "divergence", "product", "report"


class Query:
    """What the next evaluation of a loss is of: the optimizer asks, the loss answers."""

    def __init__(self) -> None:
        self.about, self.direction = LOSS, torch.zeros(0)

    def product(self, divergence: Tensor, params: Sequence[Tensor]) -> Tensor:
        """⟨∇D, v⟩, with its graph."""
        return slopes(divergence, params) @ self.direction


class TrustRegionStep(Flat):
    """One natural step for each call; it has no memory."""

    def __init__(self, params: Iterable[Any], query: Query, lr: float, damping: float, inner: int, **search: Any):
        super().__init__(params, lr=lr, damping=damping, inner=inner, **search)
        self.query = query

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Returns the loss after the step (before it a surrogate is always the same)."""
        x, before = flatten(self.params).clone(), self.ask(LOSS, closure)
        g, delta = self.gradient(), self.setting("lr")

        def product(v: Tensor) -> Tensor:
            self.query.direction = v
            self.ask(PRODUCT, closure)
            return self.gradient() + self.setting("damping") * v

        s = conjugate_gradient(product, -g, most=self.setting("inner"))
        length = 2 * delta / (s @ product(s))
        step = s * length.sqrt() if length.isfinite() and length > 0 else torch.zeros_like(s)
        self.search(x, step, before, delta, closure)
        return self.ask(REPORT, closure)

    def search(self, x: Tensor, step: Tensor, before: float, delta: float, closure: Closure | None) -> None:
        """Shorten the step until it helps and is allowed."""
        for _ in range(self.setting("trials")):
            self.place(x + step)
            if self.ask(LOSS, closure) < before and self.ask(DIVERGENCE, closure) <= delta:
                return
            step = self.setting("shrink") * step
        self.place(x)

    def ask(self, about: str, closure: Closure | None) -> float:
        self.query.about = about
        try:
            return number(evaluate(closure))
        finally:
            self.query.about = LOSS


@dataclass(frozen=True)
class TrustRegion:
    """Natural-gradient steps inside a trust region."""

    lr: Rate = 0.01
    """δ: the largest divergence of a step."""
    damping: NonNegative = 0.1
    """λ, added to the diagonal of F."""
    inner: Depth = 10
    """Steps of conjugate gradients."""
    trials: Depth = 10
    """Lengths that are tried before the step is given up."""
    shrink: Between = 0.8
    """c: each length as a share of the one before."""

    def answer(self, query: Query) -> QueryRule:
        """The rule for a loss that reads this query."""
        return QueryRule(lambda module: TrustRegionStep(
            list_whole(module, self), query, self.lr, self.damping, self.inner, trials=self.trials, shrink=self.shrink
        ))  # fmt: skip


class QueryRule:
    """A rule whose optimizer asks through a query."""

    def __init__(self, make: Callable[[nn.Module], TrustRegionStep]):
        self.make = make

    def build(self, module: nn.Module) -> TrustRegionStep:
        return self.make(module)
