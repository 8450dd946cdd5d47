"""Gradient clipping by global norm.

    g ← g · min(1, τ / ‖g‖)          ‖g‖ over all parameters together

No ε in the denominator, as the books print it (torch adds 1e-6); the norm before clipping is returned.

Systems: gradient-clipping
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor


def clip_norm(parameters: Iterable[Tensor], tau: float) -> Tensor:
    """Scale the gradients in place so that their global norm is at most τ; return the norm before."""
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads)
    if isinstance(norm, DTensor):
        norm = norm.full_tensor()
    torch._foreach_mul_(grads, (tau / norm).clamp(max=1.0))
    return norm


def clip_value(parameters: Iterable[Tensor], tau: float) -> None:
    """Clamp every entry of the gradients to [−τ, τ] (DLN-B.15 clips this way)."""
    for p in parameters:
        if p.grad is not None:
            p.grad.clamp_(-tau, tau)
