"""Penalties as a step of their own: the proximal step, which gives exact zeros, and decoupled weight decay.

    S_a(z) = sign(z) max(|z| − a, 0)                           soft threshold: argmin_w ½ (w − z)² + a |w|
    w ← S_{ηλα}(w − η g) / (1 + ηλ(1 − α))                     elastic net; α = 1 is L1
    w ← (1 − ηλ) w − η g                                       weight decay: the gradient step on loss + λ/2 ‖w‖²

S_a is the proximal operator of a ‖w‖₁ (DLD 9.3 says of ‖w‖₁). The subgradient step w − η (g + λ sign w) jumps over 0
and back; S_a lands on it. `ProximalGradient` is the rule that a recipe holds: matrices are thresholded, vectors only
descend.

Systems: l1-penalty
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from descend.optim.rules import group_by_decay
from descend.ranges import Rate, Share


def soft_threshold(z: Tensor, a: float | Tensor) -> Tensor:
    """S_a(z) = sign(z) max(|z| − a, 0)"""
    return z.sign() * (z.abs() - a).clamp_min(0)


def proximal(z: Tensor, eta: float, lam: float, alpha: float = 1.0) -> Tensor:
    """argmin_w ½ ‖w − z‖² + ηλ (α ‖w‖₁ + (1 − α)/2 ‖w‖²)"""
    return soft_threshold(z, eta * lam * alpha) / (1 + eta * lam * (1 - alpha))


def decay(w: Tensor, eta: float, lam: float) -> Tensor:
    """(1 − ηλ) w"""
    return (1 - eta * lam) * w


class ProximalSGD(torch.optim.Optimizer):
    """w ← prox(w − η g); the groups say λ (0: plain gradient descent) and α."""

    def __init__(self, params: Any, lr: float, lam: float = 0.0, alpha: float = 1.0):
        if lr < 0 or lam < 0 or not 0 <= alpha <= 1:
            raise ValueError(f"lr {lr} and lam {lam} must be at least 0, alpha {alpha} between 0 and 1")
        super().__init__(params, {"lr": lr, "lam": lam, "alpha": alpha})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(proximal(p - group["lr"] * p.grad, group["lr"], group["lam"], group["alpha"]))
        return loss


@dataclass(frozen=True)
class ProximalGradient:
    """Gradient descent with the elastic net's proximal step on matrices; alpha 1 is L1, and gives exact zeros."""

    lr: Rate = 0.1
    lam: Share = 1e-3
    alpha: Share = 1.0

    def build(self, module: nn.Module) -> torch.optim.Optimizer:
        groups = [{"params": g["params"], "lam": g["weight_decay"]} for g in group_by_decay(module, self.lam)]
        return ProximalSGD(groups, self.lr, self.lam, self.alpha)
