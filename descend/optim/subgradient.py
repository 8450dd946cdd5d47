"""Subgradient descent, for convex losses with kinks.

    x_{k+1} = x_k − α_k g_k,    α_k = α / √k,    g_k any subgradient: f(y) ≥ f(x_k) + g_kᵀ (y − x_k) for all y

α_k → 0 and Σ α_k = ∞, so the best value seen converges; a constant step only comes within its own length. The loss may
rise at a step, so keep the best. At a kink autograd returns one slope of the allowed set (0 for |x| and ReLU at 0).

Systems: subgradient-descent
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from descend.optim.elementwise import Elementwise, Group, Row, with_l2


class Subgradient(Elementwise):
    """θ ← θ − (α / √k) g at step k."""

    def __init__(self, params: Iterable[Any], lr: float = 0.1, weight_decay: float = 0.0):
        super().__init__(params, lr=lr, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        torch._foreach_add_(p, with_l2(group, p, g), alpha=-group["lr"] / t**0.5)
