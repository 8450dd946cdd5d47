"""A task in shards on several processes (fully_shard): what `--parallel fsdp` does to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.modules.batchnorm import _BatchNorm

from descend.contracts import Loss
from descend.engine.distributed import Call, Found, World, open_loss
from descend.engine.frozen import find_frozen


class Shards:
    """A task whose parameters lie in shards on the processes: one for each block, gathered when its turn comes, and
    one for all that is left, gathered for the length of a computation.

    Frozen parts stay whole, and so do single numbers (a temperature), which cannot be cut.
    """

    def __init__(self, task: nn.Module, world: World):
        self.world = world
        apart = {p for part in find_frozen(task).values() for p in part.parameters()}
        self.numbers = [p for p in task.parameters() if p.dim() == 0 and p not in apart]
        self.call = Call(task)
        self.statistics = [b for m in task.modules() if isinstance(m, _BatchNorm) for b in m.buffers(recurse=False)]
        # The warning is for outputs that are then changed in place, which no task does.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
        stay = apart | set(self.numbers)
        for block in reversed(list_blocks(task)):
            if not any(p in stay for p in block.parameters()):
                fully_shard(block)
        fully_shard(self.call, ignored_params=stay, reshard_after_forward=True)

    def compute(self, computation: Callable[[], Found]) -> Found:
        """The result of a computation with whole weights."""
        found: Found = self.call(computation)
        return found

    def evaluate(self, computation: Callable[[], Found]) -> Found:
        """The same with all blocks whole at once."""
        modules = [module for module in self.call.modules() if isinstance(module, FSDPModule)]
        for module in modules:
            module.set_reshard_after_forward(False, recurse=False)
            module.unshard()
        try:
            return self.compute(computation)
        finally:
            for module in modules:
                module.set_reshard_after_forward(True, recurse=False)
                module.reshard()

    def backward(self, part: Callable[[], Loss], last: bool) -> Loss:
        """As `Replica.backward`."""
        assert isinstance(self.call, FSDPModule)
        self.call.set_requires_gradient_sync(last)
        for buffer in self.statistics:  # as DistributedDataParallel does
            dist.broadcast(buffer, 0)
        found = Loss(*self.compute(lambda: open_loss(part())))
        found.total().backward()
        for p in self.numbers if last else ():
            if p.grad is not None:
                p.grad.copy_(self.world.mean(p.grad))
        return found


def list_blocks(task: nn.Module) -> list[nn.Module]:
    """The members of every list of modules, outer ones first."""
    return [block for child in task.modules() if isinstance(child, nn.ModuleList) for block in child]
