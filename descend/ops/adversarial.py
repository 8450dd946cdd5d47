"""Adversarial examples: the change of the input, at most ε in every entry, that raises the loss most.

    FGSM   x' = x + ε sign(∂L/∂x)                                   one step; exact for a loss that is linear in x
    PGD    x ← clamp(x + a sign(∂L/∂x), x₀ − ε, x₀ + ε), repeated   several smaller steps of size a

Always |x' − x₀| ≤ ε; with `low` and `high` the result also stays a possible input (pixels in 0..1). No parameter gets a
gradient. Both are named only in DLN; the equations are those of Goodfellow et al. (2015) and Madry et al. (2018).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Loss = Callable[[Tensor], Tensor]


def slope(loss: Loss, x: Tensor) -> Tensor:
    """sign(∂L/∂x), where L sums over the examples."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(loss(x).sum(), x)[0].sign()


def within(x: Tensor, start: Tensor, eps: float, low: float, high: float) -> Tensor:
    """x brought back to |x − start| ≤ ε and low..high."""
    return torch.minimum(torch.maximum(x, start - eps), start + eps).clamp(low, high)


def fgsm(loss: Loss, x: Tensor, eps: float, low: float = -math.inf, high: float = math.inf) -> Tensor:
    """x + ε sign(∂L/∂x), kept in low..high; `loss` gives one value for each example, or their sum."""
    x = x.detach()
    return within(x + eps * slope(loss, x), x, eps, low, high)


def pgd(loss: Loss, x: Tensor, eps: float, steps: int = 10, low: float = -math.inf, high: float = math.inf) -> Tensor:
    """`steps` steps of size 2.5 ε/steps from x, each brought back to within ε and low..high."""
    start = x = x.detach()
    for _ in range(steps):
        x = within(x + 2.5 * eps / steps * slope(loss, x), start, eps, low, high)
    return x
