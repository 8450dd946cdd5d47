"""One attention layer on several processes, a shard on each (`nn/attention/shards.py`).

    forward     y = Σ_processes shard(x)              an all-reduce; the same y everywhere
    backward    ∂L/∂x = Σ_processes of the shards'    an all-reduce; the gradient of a shard's own weights stays with it

Every process has the same x and, after it, the same loss: what is summed on the way forth is not summed again on the
way back, and the other way round.

Systems: tensor-parallel-attention
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def add_up(x: Tensor) -> Tensor:
    """The sum over all processes; without others the tensor itself."""
    if dist.is_initialized():
        x = x.contiguous().clone()
        dist.all_reduce(x)
    return x


class _Share(torch.autograd.Function):
    """The same x for every shard; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return add_up(grads[0])


class _Sum(torch.autograd.Function):
    """The sum of the shards' outputs; each has the gradient of the sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return add_up(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


class TensorParallel(nn.Module):
    """A shard of a layer, which gives the output of the whole layer."""

    def __init__(self, part: nn.Module):
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, look: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """`look` calls the shard where it needs more than x: a mask, angles."""
        shared = _Share.apply(x)
        found: Tensor = _Sum.apply(self.part(shared) if look is None else look(shared))
        return found
