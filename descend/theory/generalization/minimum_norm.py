"""Which of many solutions gradient descent finds: the one nearest to its start.

    A θ = y with fewer equations than unknowns, ½ ‖A θ − y‖² by gradient descent, η < 2/λ_max(AᵀA)
    from θ₀:   θ_∞ = θ₀ + A⁺ (y − A θ₀)              every step lies in the row space of A
    from 0:    θ_∞ = A⁺ y = Aᵀ (A Aᵀ)⁻¹ y            the solution of the smallest norm

Nobody asked for a small norm: start and method choose it. This is how over-parameterised fits can still generalise.

Systems: implicit-regularization-gd
"""

from __future__ import annotations

import torch
from torch import Tensor


def minimum_norm(a: Tensor, y: Tensor) -> Tensor:
    """Aᵀ (A Aᵀ)⁻¹ y for A (m, n) with independent rows; the least squares of the smallest norm for any other."""
    return torch.linalg.pinv(a) @ y


def descent_limit(a: Tensor, y: Tensor, start: Tensor) -> Tensor:
    """θ₀ + A⁺ (y − A θ₀)."""
    return start + minimum_norm(a, y - a @ start)


def descend_to(a: Tensor, y: Tensor, start: Tensor, lr: float, steps: int) -> Tensor:
    """θ after so many steps θ ← θ − η Aᵀ (A θ − y)."""
    theta = start
    for _ in range(steps):
        theta = theta - lr * a.T @ (a @ theta - y)
    return theta
