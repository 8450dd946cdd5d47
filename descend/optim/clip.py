"""Gradient clipping, by global norm and by value. Both return the global norm before clipping.

    by norm     g ← g · min(1, τ / ‖g‖)          ‖g‖ over all parameters together
    by value    g ← min(max(g, −τ), τ)           every entry (DLN-B.15)

No ε in the denominator, as the books print it (torch adds 1e-6). The norm form keeps the direction, the value form
does not.

Systems: gradient-clipping
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


def clip_norm(parameters: Iterable[Tensor], tau: float) -> Tensor:
    """Scale the gradients in place so that their global norm is at most τ; return the norm before."""
    grads, norm = gradients(parameters)
    if grads:
        torch._foreach_mul_(grads, (tau / norm).clamp(max=1.0))
    return norm


def clip_value(parameters: Iterable[Tensor], tau: float) -> Tensor:
    """Clamp every entry of the gradients to [−τ, τ]; return the norm before."""
    grads, norm = gradients(parameters)
    for g in grads:
        g.clamp_(-tau, tau)
    return norm


def gradients(parameters: Iterable[Tensor]) -> tuple[list[Tensor], Tensor]:
    """The gradients that there are, and their global norm."""
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads)
    return grads, norm.full_tensor() if isinstance(norm, DTensor) else norm
