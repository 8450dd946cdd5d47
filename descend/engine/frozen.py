"""Parts that never change: a teacher, a reference, a reward model, the base below an adapter.

A task names its own (`Task.frozen`), and so does a model that a task holds (`Pretrained.frozen`). They are read
from where the recipe says, kept out of every checkpoint, and known to the run by the checksum of their tensors. A
resume with other weights behind the same path is refused, and so is a run whose frozen part has moved.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from descend.contracts import Task
from descend.errors import Mistake
from descend.weights.digests import digest_state
from descend.weights.pretrained import Pretrained


def find_frozen(module: nn.Module) -> dict[str, nn.Module]:
    """The frozen parts, by where they are: teacher, model.base."""
    own = module.frozen if isinstance(module, Task) else ()
    below = (f"{prefix}{part}" for prefix, part in _parts_of_models(module))
    return {name: module.get_submodule(name) for name in dict.fromkeys((*own, *below))}


def _parts_of_models(module: nn.Module) -> Iterator[tuple[str, str]]:
    for path, model in module.named_modules(remove_duplicate=False):
        if isinstance(model, Pretrained):
            yield from ((f"{path}." if path else "", part) for part in model.frozen)


def select_trained(task: Task) -> dict[str, Tensor]:
    """The state of a task without its frozen parts."""
    frozen = tuple(f"{name}." for name in find_frozen(task))
    return {name: tensor for name, tensor in task.state_dict().items() if not name.startswith(frozen)}


def checksums(task: Task) -> dict[str, str]:
    """Frozen part -> checksum of its tensors, names and shapes included."""
    return {name: checksum(part) for name, part in find_frozen(task).items()}


def checksum(module: nn.Module) -> str:
    return digest_state(module.state_dict())


def check_unchanged(now: dict[str, str], before: dict[str, str]) -> None:
    """Refuse frozen parts that are not those the run began with."""
    for name, value in before.items():
        if now.get(name) != value:
            raise Mistake(
                f"the {name} is not the one this run started with (its weights have changed); "
                f"put the original back, or start a new run"
            )
