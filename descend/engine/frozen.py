"""Parts that never change: a teacher, a reference, a reward model, the base below an adapter.

They are read from where the recipe says, kept out of every checkpoint, and known to the run by the checksum of their
tensors. A resume with other weights behind the same path is refused, and so is a run whose frozen part has moved.
"""

from __future__ import annotations

import xxhash
from torch import Tensor, nn

from descend.contracts import Task
from descend.errors import Mistake
from descend.weights.tensor_file import raw_bytes


def select_trained(task: Task) -> dict[str, Tensor]:
    """The state of a task without its frozen parts."""
    frozen = tuple(f"{name}." for name in task.frozen)
    return {name: tensor for name, tensor in task.state_dict().items() if not name.startswith(frozen)}


def checksums(task: Task) -> dict[str, str]:
    """Frozen part -> checksum of its tensors, names and shapes included."""
    return {name: checksum(getattr(task, name)) for name in task.frozen}


def checksum(module: nn.Module) -> str:
    found = xxhash.xxh3_128()
    for name, tensor in module.state_dict().items():
        found.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        found.update(raw_bytes(tensor.cpu().contiguous()))
    return found.hexdigest()


def check_unchanged(now: dict[str, str], before: dict[str, str]) -> None:
    """Refuse frozen parts that are not those the run began with."""
    for name, value in before.items():
        if now.get(name) != value:
            raise Mistake(
                f"the {name} is not the one this run started with (its weights have changed); "
                f"put the original back, or start a new run"
            )
