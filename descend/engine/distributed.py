"""Several processes as one: started by torchrun, equal to one process up to rounding.

    ddp    every process holds the model; gradients are averaged      (DistributedDataParallel)
    fsdp   every process holds a shard of each parameter              (fully_shard)

Each process sees its slice of every batch. The backward is a plain one, since `backward(inputs=...)` leaves sharded
parameters without a gradient; `Training.moving` keeps the players apart.

Systems: pathways-training
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class World:
    """This process among all."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def mean(self, x: Tensor) -> Tensor:
        """The mean over the processes."""
        if self.size > 1:
            x = x.clone()
            dist.all_reduce(x)
            x /= self.size
        return x

    def any(self, flag: bool) -> bool:
        """Whether any process says so."""
        if self.size == 1:
            return flag
        votes = torch.tensor(float(flag))
        dist.all_reduce(votes)
        return bool(votes > 0)

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            dist.barrier()


def join() -> World:
    """Join the processes that torchrun started; alone without it."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return World()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return World(dist.get_rank(), dist.get_world_size())


def spread(task: nn.Module, players: tuple[str, ...], mode: str) -> None:
    """Wrap or shard each player, in place."""
    for name in players:
        module = getattr(task, name)
        if mode == "ddp":
            setattr(task, name, DistributedDataParallel(module))
            continue
        for child in module.modules():
            if isinstance(child, nn.ModuleList):  # a shard for each block, gathered when its turn comes
                for block in child:
                    fully_shard(block)
        fully_shard(module)


@contextmanager
def syncing(module: nn.Module, on: bool) -> Iterator[None]:
    """Whether this backward exchanges gradients: only the last micro-batch of a step does."""
    if isinstance(module, DistributedDataParallel) and not on:
        with module.no_sync():
            yield
        return
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(on)
    yield


def gather(value: Any) -> Any:
    """The same nest of dicts and lists with whole tensors instead of shards. All processes call it together."""
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {k: gather(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(gather(v) for v in value)
    return value


def scatter(whole: Tensor, like: Tensor) -> Tensor:
    """A whole tensor cut as `like` is, when that is sharded, and laid out in memory as it is.

    The layout matters: torch's fused optimizers step wrongly when a moment's strides differ from its parameter's.
    """
    if whole.shape != like.shape:
        return whole
    if isinstance(like, DTensor):
        return distribute_tensor(whole, like.device_mesh, like.placements)
    return torch.empty_like(like, dtype=whole.dtype).copy_(whole)
