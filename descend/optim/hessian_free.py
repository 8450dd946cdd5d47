"""Hessian-free optimization: a quadratic at the current point, minimised by conjugate gradients, again and again.

    q(δ) = E(θ) + gᵀ δ + ½ δᵀ (B + λ I) δ          B v from products alone; CG stops on little relative progress
    of CG's iterates the best by the true loss is taken, then shortened until the loss falls     (backtracking)
    ρ = (E(θ + δ) − E(θ)) / (q(δ) − E(θ)):  λ ← 3/2 λ if ρ < ¼,  ⅔ λ if ρ > ¾                     (Levenberg-Marquardt)

What B is, is the class:

    HessianFree     B = H by a second backward pass; the closure returns the loss with its graph
    GaussNewton     B = Jᵀ H_L J, never indefinite for a convex loss; the closure returns `Parts`.
                    Parts with `hidden` add μ λ J_hᵀ J_h, a penalty on the change of the hidden activities: structural
                    damping, for recurrent nets whose hidden states a small step can throw far away
    DifferenceHF    B v = (∇E(θ + ε v) − ∇E(θ − ε v)) / 2ε; needs gradients only, so it runs in `fit`

The text names the method and calls it low-rank, which it is not; products, damping and stopping are Martens (2010), the
structural damping is Martens and Sutskever (2011). Use the whole data or large batches: the closure must be the same
function for all calls of one step.

Systems: hessian-free-optimization
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.optim.conjugate import Product, cg_steps
from descend.optim.curvature import gauss_newton_product, hessian_product, jacobian_products, slopes
from descend.optim.elementwise import Closure, evaluate, number
from descend.optim.flat import Flat, flatten


class Parts(NamedTuple):
    """What GaussNewton's closure returns: the loss, the outputs it is a function of, and hidden activities."""

    loss: Tensor
    outputs: Tensor
    hidden: Tensor | None = None


class HessianFree(Flat):
    """Truncated Newton with exact Hessian products."""

    def __init__(self, params: Iterable[Any], lr: float = 1.0, damping: float = 1.0, inner: int = 50):
        super().__init__(params, lr=lr, damping=damping, inner=inner)

    def quadratic(self, closure: Closure | None) -> tuple[float, Tensor, Product]:
        """Loss, gradient and v ↦ B v at the current point."""
        loss = evaluate(closure)
        g = slopes(loss, self.params)
        return number(loss), g.detach(), hessian_product(g, self.params)

    def loss(self, closure: Closure | None) -> float:
        """The loss alone."""
        return number(evaluate(closure))

    def step(self, closure: Closure | None = None) -> Any:
        """One outer step; returns the loss before it. A step that would not lower the loss is not taken."""
        memory, x = self.memory, flatten(self.params).detach().clone()
        damping = memory.setdefault("damping", self.setting("damping"))
        before, g, product = self.quadratic(closure)

        def damped(v: Tensor) -> Tensor:
            return product(v) + damping * v

        found = solve(damped, g, memory.get("direction"), self.setting("inner"))

        def loss_at(delta: Tensor) -> float:
            self.place(x + delta)
            return self.loss(closure)

        after, delta, promised = best_of(found, loss_at)
        memory["direction"], whole, rate = found[-1][0], after, self.setting("lr")
        delta = rate * delta
        after = loss_at(delta) if rate != 1 else after
        for _ in range(30):
            if after <= before + 1e-2 * float(g @ delta):
                break
            delta = 0.8 * delta
            after = loss_at(delta)
        else:
            delta = torch.zeros_like(delta)
            del memory["direction"]
        self.place(x + delta)
        ratio = (whole - before) / promised if promised < 0 else 0.0
        memory["damping"] = damping * (1.5 if not ratio >= 0.25 else 2 / 3 if ratio > 0.75 else 1.0)
        return before


class GaussNewton(HessianFree):
    """Gauss-Newton products; `structural` is μ, the weight of the penalty on hidden activities beside λ."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        damping: float = 1.0,
        inner: int = 50,
        structural: float = 0.0,
    ):
        super().__init__(params, lr, damping, inner)
        self.param_groups[0].setdefault("structural", structural)

    def quadratic(self, closure: Closure | None) -> tuple[float, Tensor, Product]:
        parts: Parts = evaluate(closure)
        g = slopes(parts.loss, self.params).detach()
        curved = gauss_newton_product(parts.loss, parts.outputs, self.params)
        strength = self.setting("structural") * self.memory["damping"]
        if parts.hidden is None or not strength:
            return number(parts.loss), g, curved
        forward, backward = jacobian_products(parts.hidden, self.params)
        return number(parts.loss), g, lambda v: curved(v) + strength * backward(forward(v))

    def loss(self, closure: Closure | None) -> float:
        with torch.no_grad():
            return number(evaluate(closure).loss)


class DifferenceHF(HessianFree):
    """Products by central differences of the gradient, for closures that call backward. Train without clipping."""

    def quadratic(self, closure: Closure | None) -> tuple[float, Tensor, Product]:
        loss, x = number(evaluate(closure)), flatten(self.params).detach().clone()
        small = torch.finfo(x.dtype).eps ** (1 / 3) * (1 + float(x.norm()))

        def slope_at(point: Tensor) -> Tensor:
            self.place(point)
            evaluate(closure)
            return self.gradient()

        def product(v: Tensor) -> Tensor:
            if not v.any():
                return torch.zeros_like(v)
            h = small / v.norm()
            return (slope_at(x + h * v) - slope_at(x - h * v)) / (2 * h)

        return loss, self.gradient(), product

    def loss(self, closure: Closure | None) -> float:
        return number(evaluate(closure))


def solve(product: Product, g: Tensor, start: Tensor | None, most: int) -> list[tuple[Tensor, float]]:
    """CG on q from the last direction: iterates δ with q(δ) − E, at steps that grow by 1.3, and the last one.

    It stops when the last k = max(10, i/10) of i steps brought less than k · 0.0005 of the fall so far.
    """
    falls: list[float] = []
    kept: list[tuple[Tensor, float]] = []
    last, mark = (-g, -float(g @ g)), 1.0
    for i, (x, r, _) in enumerate(islice(cg_steps(product, -g, None if start is None else 0.95 * start), most), 1):
        falls.append(float(0.5 * x @ (g - r)))  # ½ xᵀA x + gᵀx, as A x = −g − r
        last = x, falls[-1]
        k = max(10, i // 10)
        if i > k and falls[-1] < 0 and (falls[-1] - falls[-1 - k]) / falls[-1] < 5e-4 * k:
            break
        if r.norm() <= 1e-10 * g.norm():
            break
        if i >= mark:
            kept.append(last)
            mark *= 1.3
    return [*(at for at in kept if at is not last), last]


def best_of(found: list[tuple[Tensor, float]], loss_at: Callable[[Tensor], float]) -> tuple[float, Tensor, float]:
    """Loss, δ and promise of the best iterate, from the last backwards while the loss falls."""
    best = loss_at(found[-1][0]), *found[-1]
    for delta, promised in reversed(found[:-1]):
        value = loss_at(delta)
        if math.isfinite(best[0]) and not value < best[0]:
            break
        best = value, delta, promised
    return best
