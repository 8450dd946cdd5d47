"""Several processes as one: started by torchrun, equal to one process up to rounding.

    ddp    every process holds the model; gradients are averaged      (DistributedDataParallel)
    fsdp   every process holds a shard of each parameter              (fully_shard)

Each process sees its slice of every batch. The backward is a plain one, since `backward(inputs=...)` leaves sharded
parameters without a gradient; `Training.moving` keeps the players apart.

Systems: pathways-training
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from descend.contracts import Loss
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.optim.by_part import ByPart
from descend.optim.shards import is_shard

if TYPE_CHECKING:
    from descend.engine.sharding import Shards

Found = TypeVar("Found")
Replicas = dict[str, "Replica"]
Opened = tuple[dict[str, Tensor], dict[str, Tensor]]  # a loss: its terms and what it tells


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

    def agree(self, values: dict[str, float]) -> dict[str, float]:
        """The first process's values, so that all judge alike."""
        if self.size == 1 or not values:
            return values
        told = torch.tensor(list(values.values()), dtype=torch.float64)
        dist.broadcast(told, 0)
        return dict(zip(values, told.tolist(), strict=True))

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            dist.barrier()


LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Timed out waiting", "timed out after")


@contextmanager
def tell_lost_processes() -> Iterator[None]:
    """Inside, a process that has gone is told by the others in one line; torchrun then ends or restarts them all."""
    try:
        yield
    except RuntimeError as error:
        if not dist.is_initialized() or not (isinstance(error, dist.DistError) or any(t in str(error) for t in LOST)):
            raise
        raise Mistake(
            f"process {dist.get_rank()} of {dist.get_world_size()} stops, since another one has gone (its own message, "
            "if it had time for one, says why); torchrun --max-restarts 3 goes on by itself, descend resume RUN by hand"
        ) from None


def join() -> World:
    """Join the processes that torchrun started; alone without it."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return World()
    if not dist.is_initialized():
        # torchrun keeps its store when it restarts: without a name of their own the new processes would find the
        # addresses of those that have gone.
        store, rank, size = next(rendezvous("env://"))
        own = PrefixStore(f"restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"  # by where the numbers are: --device
        dist.init_process_group(backend, store=own, rank=rank, world_size=size)
    return World(dist.get_rank(), dist.get_world_size())


class Replica:
    """A player's module among the processes that train it together: as equal copies (ddp) or in shards (fsdp)."""

    def __init__(self, module: nn.Module, world: World, mode: str, shards: Shards | None = None, thaws: bool = False):
        self.module, self.world, self.shards = module, world, shards
        several = world.size > 1 and mode == "ddp"
        # A convolution of 1 x 1 has two layouts that are the same numbers in the same order.
        warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
        self.copies = DistributedDataParallel(Call(module), find_unused_parameters=thaws) if several else None

    def compute(self, computation: Callable[[], Found]) -> Found:
        """The result of a computation that reads the weights; inside, they are whole."""
        return computation() if self.shards is None else self.shards.compute(computation)

    def evaluate(self, computation: Callable[[], Found]) -> Found:
        """The same without gradients, for what goes around a block's forward, as a decoder with a cache does."""
        return computation() if self.shards is None else self.shards.evaluate(computation)

    def backward(self, part: Callable[[], Loss], last: bool) -> Loss:
        """Evaluate a part of a step and differentiate it; the processes exchange gradients after the last one."""
        if self.shards is not None:
            return self.shards.backward(part, last)
        with nullcontext() if self.copies is None or last else self.copies.no_sync():
            found: Loss = part() if self.copies is None else Loss(*self.run_copies(self.copies, part))
            found.total().backward()
        return found

    def run_copies(self, copies: nn.Module, part: Callable[[], Loss]) -> Opened:
        """The loss of a part, opened, by one of the equal copies."""
        try:
            opened: Opened = copies(lambda: open_loss(part()))
        except RuntimeError as error:
            if "not used in producing loss" not in str(error):
                raise
            unused = [name for name, p in self.module.named_parameters() if p.requires_grad and p.grad is None]
            raise Mistake(
                f"{type(self.module).__name__} has parameters that take no part in its loss"
                f"{f' ({unused[0]})' if unused else ''}, which several processes would wait for: leave them out, or "
                "give them requires_grad_(False)"
            ) from None
        return opened


def replicate(parts: Parts, world: World, mode: str) -> Replicas:
    """Every player of a task among the processes."""
    task, shards = parts.task, None
    if world.size > 1 and mode == "fsdp":
        from descend.engine.sharding import Shards

        shards = Shards(task, world)
    thaws = {name: isinstance(rule, ByPart) and rule.thaws for name, rule in parts.optims.items()}
    return {name: Replica(getattr(task, name), world, mode, shards, thaws[name]) for name in task.players}


class Call(nn.Module):
    """A module whose forward is any computation with `module`, so that all of its methods can be used."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, computation: Callable[[], Found]) -> Found:
        return computation()


def open_loss(loss: Loss) -> Opened:
    """Its terms and what it tells, as the dicts in which torch finds the tensors that a backward pass begins with."""
    return loss.terms, loss.told


def gather(value: Any) -> Any:
    """The same nest of dicts and lists with whole tensors instead of shards. All processes call it together."""
    if is_shard(value):
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
    if is_shard(like):
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(whole, like.device_mesh, like.placements)
    return torch.empty_like(like, dtype=whole.dtype).copy_(whole)
