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

from descend.optim.shards import is_shard


def clip_norm(parameters: Iterable[Tensor], tau: float) -> Tensor:
    """Scale the gradients in place so that their global norm is at most τ; return the norm before."""
    grads, norm = gradients(parameters)
    shrink(grads, norm, tau)
    return norm


def shrink(grads: list[Tensor], norm: Tensor, tau: float) -> None:
    """g ← g · min(1, τ / ‖g‖), in place, with the norm that is known already."""
    if grads:
        torch._foreach_mul_(grads, (tau / norm).clamp(max=1.0))


def clip_value(parameters: Iterable[Tensor], tau: float) -> Tensor:
    """Clamp every entry of the gradients to [−τ, τ]; return the norm before."""
    grads, norm = gradients(parameters)
    for g in grads:
        g.clamp_(-tau, tau)
    return norm


def gradients(parameters: Iterable[Tensor]) -> tuple[list[Tensor], Tensor]:
    """The gradients that there are, and their global norm."""
    grads = [p.grad for p in parameters if p.grad is not None]
    shards = [g for g in grads if is_shard(g)]
    if not shards:
        alike = len({(g.device, g.dtype, g.is_sparse) for g in grads}) == 1 and not grads[0].is_sparse
        norms = list(torch._foreach_norm(grads)) if alike else []
        return grads, torch.linalg.vector_norm(torch.stack(norms)) if alike else torch.nn.utils.get_total_norm(grads)
    sharded = torch.nn.utils.get_total_norm(shards)
    whole = torch.nn.utils.get_total_norm([g for g in grads if not is_shard(g)])
    return grads, torch.hypot(sharded.full_tensor() if is_shard(sharded) else sharded, whole)
