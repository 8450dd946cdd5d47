"""The trace of a velocity's Jacobian, exact or estimated, by reverse passes.

    Tr(∂f/∂z) = Σ_i ∂f_i/∂z_i                          D passes, one for each row of the Jacobian
    Tr(A) = E[εᵀ A ε],  E ε = 0, E ε εᵀ = I            one pass: Hutchinson's estimate, unbiased for any number of ε

    variance of one ε:   signs ±1:  2 Σ_{i≠j} S_ij²        Gaussian:  2 ‖S‖²_F        S = (A + Aᵀ)/2

One reverse pass gives εᵀ A, a vector-Jacobian product, and not A ε as DLN says, which would take forward mode; the
number εᵀ A ε is the same. For a general Jacobian the determinant costs O(D³); the trace O(D) once its diagonal is
there, and the diagonal D passes of O(D) each.

Systems: hutchinson-trace
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Velocity = Callable[[Tensor], Tensor]
"""z (b, D) -> dz/dt (b, D), each row by itself"""


def exact_divergence(f: Velocity, z: Tensor) -> tuple[Tensor, Tensor]:
    """f(z) and Tr(∂f/∂z) of each row (b), by D reverse passes; differentiable where gradients are on."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        z = z if again and z.requires_grad else z.detach().requires_grad_(True)
        v = f(z)
        rows = [pull_back(v[:, i], z, None, again)[:, i] for i in range(z.shape[1])]
        trace = torch.stack(rows).sum(0)
    return (v, trace) if again else (v.detach(), trace.detach())


def estimate_divergence(f: Velocity, z: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
    """f(z) and εᵀ (∂f/∂z) ε of each row (b), by one reverse pass; ε (b, D), or (m, b, D) for a mean of m."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        z = z if again and z.requires_grad else z.detach().requires_grad_(True)
        v = f(z)
        draws = eps if eps.dim() == 3 else eps[None]
        trace = torch.stack([(pull_back(v, z, e, again) * e).sum(1) for e in draws]).mean(0)
    return (v, trace) if again else (v.detach(), trace.detach())


def pull_back(v: Tensor, z: Tensor, eps: Tensor | None, again: bool) -> Tensor:
    """εᵀ ∂v/∂z by one reverse pass; without ε the sum of v's rows."""
    eps = torch.ones_like(v) if eps is None else eps
    return torch.autograd.grad(v, z, eps, create_graph=again, retain_graph=True, materialize_grads=True)[0]


def draw_signs(uniform: Tensor) -> Tensor:
    """ε of ±1 (Rademacher) from numbers uniform in 0..1."""
    return torch.where(uniform < 0.5, -1.0, 1.0).to(uniform)
