"""Regularised empirical risk in its two forms, penalised and constrained.

    penalised      min_w L(w) + λ Ω(w)             λ ≥ 0        proximal gradient: `lasso.ista`
    constrained    min_w L(w)  s.t.  Ω(w) ≤ t                   w ← P_t(w − η ∇L(w)): `projected_gradient`
    Ω = ‖w‖₂: ball     P_t(w) = w min(1, t/‖w‖₂)
    Ω = ‖w‖₁: diamond  P_t(w) = S_θ(w), with θ such that ‖S_θ(w)‖₁ = t; θ = 0 inside

The penalised solution for λ solves the constrained problem with t(λ) = Ω(w_λ). Erratum: DLD 9.1 calls λ ↔ t one-to-one.
It is only where the constraint is active, 0 < λ < λ_max: every λ ≥ λ_max gives t = 0, and every t above the norm of the
unpenalised solution belongs to λ = 0.

Systems: regularized-erm
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.optim.proximal import soft_threshold


def project_ball(w: Tensor, t: float) -> Tensor:
    """The nearest point with ‖w‖₂ ≤ t."""
    norm = w.norm()
    return w if bool(norm <= t) else w * (t / norm)


def project_diamond(w: Tensor, t: float) -> Tensor:
    """The nearest point with ‖w‖₁ ≤ t: a soft threshold, whose θ is found from the sorted sizes.

    If the k largest survive, Σ (|w|_(i) − θ) = t gives θ_k = (Σ_{i≤k} |w|_(i) − t)/k. The right k gives the largest θ.
    """
    size = w.abs().sort(descending=True).values
    theta = (size.cumsum(0) - t) / torch.arange(1, len(w) + 1, dtype=w.dtype)
    return soft_threshold(w, theta.max().clamp_min(0))


def projected_gradient(
    loss: Callable[[Tensor], Tensor],
    w: Tensor,
    project: Callable[[Tensor], Tensor],
    eta: float,
    tolerance: float = 1e-12,
) -> Tensor:
    """argmin L(w) over the set that `project` maps onto, from w, for a smooth convex L, by steps of size η."""
    w = project(w)
    for _ in range(100_000):
        w = w.detach().requires_grad_()
        (g,) = torch.autograd.grad(loss(w), w)
        new = project(w.detach() - eta * g)
        if not bool(new.isfinite().all()):
            raise Mistake(f"projected gradient: the steps diverge; eta {eta} is above 1/(largest curvature)")
        if bool((new - w).abs().max() <= tolerance * new.abs().max().clamp_min(1e-300)):
            return new
        w = new
    raise Mistake(f"projected gradient: no minimum after 100000 steps of {eta}; make eta larger")
