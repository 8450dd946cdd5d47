"""Several processes as one: started by torchrun, equal to one process up to rounding.

    ddp    every process holds the model; gradients are averaged      (DistributedDataParallel)
    fsdp   every process holds a shard of each parameter              (fully_shard)

Each process sees its slice of every batch. The backward is a plain one, since `backward(inputs=...)` leaves sharded
parameters without a gradient; `Training.moving` keeps the players apart.

Systems: pathways-training
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import isfunction
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from descend.contracts import Loss


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
        return self.sum(x) / self.size if self.size > 1 else x

    def sum(self, x: Tensor) -> Tensor:
        """The sum over the processes."""
        if self.size > 1:
            x = x.clone()
            dist.all_reduce(x)
        return x

    def means(self, values: dict[str, Tensor]) -> dict[str, float]:
        """Each value's mean over the processes."""
        if self.size == 1 or not values:
            return {name: value.item() for name, value in values.items()}
        found = self.mean(torch.stack([v.double() for v in values.values()])).tolist()
        return dict(zip(values, found, strict=True))

    def gather_rows(self, x: Tensor) -> Tensor:
        """The rows of every process, in the order of the processes; all have the same number."""
        if self.size == 1:
            return x
        parts = [torch.empty_like(x) for _ in range(self.size)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

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


class Replica:
    """A player's module among the processes that train it together: as equal copies (ddp) or in shards (fsdp)."""

    def __init__(self, module: nn.Module, world: World, mode: str):
        self.module, self.world = module, world
        self.copies = DistributedDataParallel(Call(module)) if world.size > 1 and mode == "ddp" else None
        if world.size > 1 and mode == "fsdp":
            shard(module)

    def backward(self, part: Callable[[], Loss], last: bool) -> Loss:
        """Evaluate a part of a step and differentiate it; the processes exchange gradients after the last one."""
        if isinstance(self.module, FSDPModule):
            self.module.set_requires_gradient_sync(last)
        with nullcontext() if self.copies is None or last else self.copies.no_sync():
            found: Loss = part() if self.copies is None else self.copies(part)
            found.total().backward()
        return found


class Call(nn.Module):
    """A module whose forward is any computation with `module`, so that all of its methods can be used under DDP."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, computation: Callable[[], Loss]) -> Loss:
        return computation()


def shard(module: nn.Module) -> None:
    """Shard in place: a shard for each block, gathered when its turn comes, and for what is left.

    Methods of the model beside forward, such as encode_image, gather the weights too.
    """
    for child in module.modules():
        if isinstance(child, nn.ModuleList):
            for block in child:
                fully_shard(block)
    fully_shard(module)
    for kind in type(module).__mro__:
        if kind.__module__.startswith("descend.models"):
            for name, method in vars(kind).items():
                if isfunction(method) and not name.startswith("_") and name != "forward":
                    register_fsdp_forward_method(module, name)


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
