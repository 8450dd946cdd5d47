"""Lasso: least squares, or any smooth loss, with an L1 penalty; many weights are exactly 0.

    min_w ½ ‖Xw − y‖² + λ ‖w‖₁
    coordinate descent   w_j ← S_λ(x_jᵀ (y − X_{−j} w_{−j})) / ‖x_j‖²                 `lasso`
    ISTA                 w ← S_{ηλ}(w − η ∇L(w)),  η ≤ 1/(largest curvature of L)     `ista`, for any smooth L
    orthonormal X        w = S_λ(Xᵀy)
    all w are 0          from λ_max = max_j |x_jᵀ y| on

Erratum: DLD 9.3 prints S_λ(Xᵀy) for an objective with (1/n). It belongs to the ½ sum; with the mean squared loss the
threshold is nλ/2, with half of it nλ (scikit-learn's `Lasso`, whose alpha is our λ/n).

Systems: lasso
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.classic.elastic_net import elastic_net
from descend.errors import Mistake
from descend.optim.proximal import proximal


def lasso(x: Tensor, y: Tensor, lam: float | Tensor) -> Tensor:
    """argmin ½ ‖Xw − y‖² + λ ‖w‖₁ by coordinate descent; a tensor of λ gives the regularisation path."""
    return elastic_net(x, y, lam, alpha=1.0)


def lasso_of_mean_square(x: Tensor, y: Tensor, lam: float) -> Tensor:
    """argmin (1/n) ‖Xw − y‖² + λ ‖w‖₁"""
    return lasso(x, y, len(x) * lam / 2)


def lasso_of_half_mean_square(x: Tensor, y: Tensor, lam: float) -> Tensor:
    """argmin (1/2n) ‖Xw − y‖² + λ ‖w‖₁"""
    return lasso(x, y, len(x) * lam)


def largest_lambda(x: Tensor, y: Tensor) -> Tensor:
    """max_j |x_jᵀ y|: the λ from which on every weight is 0."""
    return (x.T @ y).abs().max()


def ista(loss: Callable[[Tensor], Tensor], w: Tensor, lam: float, eta: float, tolerance: float = 1e-12) -> Tensor:
    """argmin L(w) + λ ‖w‖₁ from w, for a smooth convex L, by proximal gradient steps of size η."""
    for _ in range(100_000):
        w = w.detach().requires_grad_()
        (g,) = torch.autograd.grad(loss(w), w)
        new = proximal(w.detach() - eta * g, eta, lam)
        if not bool(new.isfinite().all()):
            raise Mistake(f"ista: the steps diverge; eta {eta} is above 1/(largest curvature), make it smaller")
        if bool((new - w).abs().max() <= tolerance * new.abs().max()):
            return new
        w = new
    raise Mistake(f"ista: no minimum after 100000 steps of {eta}; make eta larger, up to 1/(largest curvature)")
