"""Elastic net by coordinate descent: one weight at a time, each at its exact minimum.

    min_w ½ ‖Xw − y‖² + λ (α ‖w‖₁ + (1 − α)/2 ‖w‖²)        α = 1: lasso, α = 0: ridge
    w_j ← S_{λα}(x_jᵀ (y − X_{−j} w_{−j})) / (‖x_j‖² + λ(1 − α))
    orthonormal X:   w = S_{λα}(Xᵀy) / (1 + λ(1 − α))

It is the ½ sum objective, as in `ridge.py` (scikit-learn's `ElasticNet` has the ½ mean: its alpha is λ/n, its l1_ratio
our α). Weights are taken in turn, but any number of problems at once: the leading dimensions of X, y and λ broadcast,
so a whole path of λ, or many resamples, costs about as much as one.

At the minimum, with g the gradient of the smooth part (data and L2 together) and μ = λα:
g_j = −μ sign w_j where w_j ≠ 0, |g_j| ≤ μ where w_j = 0. `kkt_residual` is how far that is missed.

Systems: elastic-net
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.optim.proximal import soft_threshold


def elastic_net(
    x: Tensor, y: Tensor, lam: float | Tensor, alpha: float = 0.5, tolerance: float = 1e-12, sweeps: int = 10_000
) -> Tensor:
    """Weights (.., d) for x (.., n, d), y (.., n) and λ, a number or a tensor (..).

    It ends when a sweep over the weights moves none by more than `tolerance` of the largest.
    """
    lam = torch.as_tensor(lam, dtype=x.dtype)
    if not 0 <= alpha <= 1 or bool((lam < 0).any()):
        raise Mistake(f"elastic net: alpha {alpha} must be between 0 and 1, and every lam at least 0")
    gram, c = x.mT @ x, (x.mT @ y[..., None]).squeeze(-1)
    lam = lam.expand(torch.broadcast_shapes(lam.shape, c.shape[:-1]))
    ones = (None,) * (lam.dim() - c.dim() + 1)
    gram, c = gram[ones].movedim((-2, -1), (0, 1)).contiguous(), c[ones].movedim(-1, 0).contiguous()  # weights first
    squares = torch.stack([row[j] for j, row in enumerate(gram)])
    bottom = (squares + lam * (1 - alpha)).clamp_min(torch.finfo(x.dtype).tiny)
    w = torch.zeros(len(c), *lam.shape, dtype=x.dtype)
    for _ in range(sweeps):
        before = w.clone()
        for j in range(len(w)):
            # What x_j can still explain: its correlation with the residual, plus its own part.
            rest = c[j] - (gram[j] * w).sum(0) + gram[j, j] * w[j]
            w[j] = soft_threshold(rest, lam * alpha) / bottom[j]
        if bool(((w - before).abs().amax(0) <= tolerance * w.abs().amax(0)).all()):
            return w.movedim(0, -1)
    raise Mistake(f"elastic net: no minimum after {sweeps} sweeps; scale the columns of x, or raise lam or sweeps")


def gradient(x: Tensor, y: Tensor, w: Tensor, lam: float, alpha: float) -> Tensor:
    """Of the smooth part: Xᵀ(Xw − y) + λ(1 − α) w."""
    return x.T @ (x @ w - y) + lam * (1 - alpha) * w


def kkt_residual(w: Tensor, g: Tensor, mu: float) -> Tensor:
    """How far w is from a minimum of (smooth part) + μ‖w‖₁, where g is the gradient of the smooth part; 0 at it."""
    active, idle = (g + mu * w.sign()).abs(), (g.abs() - mu).clamp_min(0)
    return torch.where(w != 0, active, idle).max()
