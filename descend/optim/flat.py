"""Parameters as one vector, for methods that look along directions of the whole space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from descend.errors import Mistake
from descend.optim.elementwise import check
from descend.optim.shards import is_shard


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """All entries in one vector."""
    return torch.cat([t.reshape(-1) for t in tensors])


def unflatten(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The vector's parts in the shapes of `like`, as views."""
    parts = vector.split([t.numel() for t in like])
    return [part.view(t.shape) for part, t in zip(parts, like, strict=True)]


class Flat(Optimizer):
    """An optimizer over one group of parameters, seen as one vector. Its state is with the first parameter."""

    def __init__(self, params: Iterable[Any], **defaults: Any):
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise Mistake(f"{type(self).__name__} sees all parameters as one vector: give it one group")
        check(self.param_groups[0])
        if any(is_shard(p) for p in self.params):
            raise Mistake(f"{type(self).__name__} does not work on sharded parameters; train with --parallel ddp")

    @property
    def params(self) -> list[Tensor]:
        return [p for p in self.param_groups[0]["params"] if p.requires_grad]

    @property
    def memory(self) -> dict[str, Any]:
        """The state of the whole vector."""
        return self.state[self.param_groups[0]["params"][0]]

    def setting(self, name: str) -> Any:
        return self.param_groups[0][name]

    def gradient(self) -> Tensor:
        """The gradients that the last closure left, 0 where there is none."""
        return flatten(torch.zeros_like(p) if p.grad is None else p.grad for p in self.params)

    @torch.no_grad()
    def place(self, vector: Tensor) -> None:
        """Put the parameters at this point."""
        params = self.params
        torch._foreach_copy_(params, unflatten(vector, params))
