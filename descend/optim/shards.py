"""Tensors that lie in shards on several processes. What torch needs for them is imported by whoever makes one: it takes
as long as the rest of a small model's run to start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_shard(x: object) -> TypeGuard[DTensor]:
    """Whether it is a sharded tensor; there is none as long as nobody has imported their module."""
    made = sys.modules.get("torch.distributed.tensor")
    return made is not None and isinstance(x, made.DTensor)


def local(x: Tensor) -> Tensor:
    """The part of a sharded tensor that lies here."""
    return x.to_local() if is_shard(x) else x
