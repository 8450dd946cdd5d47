"""The descent inequality of a smooth loss, and the largest safe step.

    ‖∇f(a) − ∇f(b)‖ ≤ L ‖a − b‖   ⇒   f(θ − η g) ≤ f(θ) − η ⟨∇f(θ), g⟩ + (L η²/2) ‖g‖²

for every direction g, e.g. a mini-batch gradient. With g = ∇f the right side is f − η (1 − L η/2) ‖∇f‖²: the loss falls
in every step with η < 2/L, most surely at 1/L. On f = (L/2) ‖θ‖² it is an equality, so 2/L cannot be improved.

    logistic loss, mean over n:   L = λ_max(XᵀX) / (4 n)       least squares, ½ mean:   L = λ_max(XᵀX) / n

Systems: descent-inequality
"""

from __future__ import annotations

import torch
from torch import Tensor


def descent_bound(value: Tensor, gradient: Tensor, step: Tensor, lr: float, smoothness: float) -> Tensor:
    """f − η ⟨∇f, g⟩ + (L η²/2) ‖g‖²: the loss after a step −η g is at most this."""
    return value - lr * (gradient * step).sum() + smoothness * lr**2 / 2 * step.square().sum()


def largest_rate(smoothness: float) -> float:
    """2 / L: below it every exact step lowers the loss."""
    return 2 / smoothness


def smoothness_of_logistic(x: Tensor) -> float:
    """L of the mean logistic loss of examples x (n, d)."""
    return float(torch.linalg.matrix_norm(x, 2)) ** 2 / (4 * len(x))


def smoothness_of_least_squares(x: Tensor) -> float:
    """L of (1/2n) Σ (w·x_i − y_i)²."""
    return float(torch.linalg.matrix_norm(x, 2)) ** 2 / len(x)
