"""Transfer learning: freeze what is learned, give the network a new head, unfreeze from the top.

    features     φ(x), learned on a large set of data
    new task     z = W φ(x) + b        W, b new; φ frozen, or trained with a lower learning rate

With few examples φ stays as it is (feature extraction, a linear probe); with more the deeper layers are unfrozen too,
the last ones first. `descend.optim.by_part` has the learning rates and the steps at which a part begins to learn.

A frozen part takes no gradient and stays in evaluation mode, so that no weight and no batch statistic of it changes.

Systems: transfer-learning
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from torch import nn

from descend.errors import Mistake, nearest


def stages(model: nn.Module) -> list[str]:
    """The parts that hold parameters, from the input to the output: children, and the members of a list or sequence."""
    return list(_stages(model, ""))


def _stages(module: nn.Module, prefix: str) -> Iterator[str]:
    for name, child in module.named_children():
        if not any(True for _ in child.parameters()):
            continue
        lists = [c for c in child.children() if isinstance(c, nn.ModuleList | nn.Sequential) and len(c) > 1]
        if isinstance(child, nn.ModuleList | nn.Sequential) or lists:
            yield from _stages(child, f"{prefix}{name}.")
        else:
            yield prefix + name


def inside(name: str, parts: Iterable[str]) -> bool:
    """Whether a parameter or a module of this name lies in one of the parts."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def freeze(model: nn.Module, parts: Iterable[str]) -> None:
    """No gradient for these parts (or single parameters), and no training mode."""
    for part in parts:
        found = [p for name, p in model.named_parameters() if inside(name, [part])]
        if not found:
            known = stages(model)
            raise Mistake(
                f"{type(model).__name__} has no part {part!r}.{nearest(part, known)} It has {', '.join(known)}"
            )
        for p in found:
            p.requires_grad_(False)
        if part in dict(model.named_modules()):
            hold(model.get_submodule(part))


def freeze_features(model: nn.Module, head: str) -> None:
    """Everything but the head: what is left to train is a linear probe."""
    freeze(model, [name for name in stages(model) if not inside(name, [head]) and not inside(head, [name])])
    for name, p in model.named_parameters():
        p.requires_grad_(inside(name, [head]))


def unfreeze(model: nn.Module, parts: Iterable[str]) -> None:
    """Gradients again, and training mode when the model is trained."""
    for part in parts:
        for name, p in model.named_parameters():
            if inside(name, [part]):
                p.requires_grad_(True)
        if part in dict(model.named_modules()):
            vars(model.get_submodule(part)).pop("train", None)


def hold(module: nn.Module) -> None:
    """Evaluation mode, whatever is asked of the model around it: dropout is off, batch norm keeps its statistics."""
    module.eval()
    module.train = partial(stay, module)  # type: ignore[method-assign]


def stay(module: nn.Module, mode: bool = True) -> nn.Module:
    """In place of `train`: nothing changes."""
    return module


def replace_head(model: nn.Module, name: str, outputs: int) -> nn.Linear:
    """A new linear layer in the place of the old head, with as many outputs as the new task has classes."""
    old = model.get_submodule(name)
    if not isinstance(old, nn.Linear):
        raise Mistake(f"{name!r} of {type(model).__name__} is a {type(old).__name__}, not a linear head")
    new = nn.Linear(old.in_features, outputs, bias=old.bias is not None).to(old.weight)
    holder, _, last = name.rpartition(".")
    setattr(model.get_submodule(holder), last, new)
    return new
