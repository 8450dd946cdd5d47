"""An adapter: a few trained numbers beside a frozen model, and the places where they enter it.

    attach(base)     from now on the model computes with them; no module, no name and no weight of it changes
    detach()         the model is again what it was

An adapter enters by forward hooks, so that the model's tensors keep their names and their bits: the base of ten
adapters is one model in memory and on disk. One adapter is attached at a time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from torch import Tensor, nn

from descend.errors import Mistake, nearest


class Handle(Protocol):
    """The way out of a model."""

    def remove(self) -> None: ...


class Instead:
    """A module computes with this function instead of its own `forward`, until it is removed."""

    def __init__(self, module: nn.Module, forward: Callable[..., Tensor]):
        self.module = module
        vars(module)["forward"] = forward

    def remove(self) -> None:
        vars(self.module).pop("forward", None)


class Adapter(nn.Module):
    """What all kinds have in common."""

    handles: tuple[Handle, ...] = ()

    def attach(self, base: nn.Module) -> None:
        """Enter the model."""
        self.handles = tuple(self.enter(base))

    def enter(self, base: Any) -> Iterable[Handle]:
        """Enter, and give the ways out."""
        raise NotImplementedError

    def detach(self) -> None:
        """Leave the model."""
        for handle in self.handles:
            handle.remove()
        self.handles = ()

    def merged(self, base: Any) -> Any:
        """A model of the base's own kind whose weights do the same, where there is one; the base stays as it is."""
        raise Mistake(
            f"{describe(self)} cannot be merged into the weights: it is no update of a matrix; use it with its base"
        )

    def decoder(self, base: Any) -> Any:
        """The model with this adapter in the middle of writing."""
        raise NotImplementedError

    def count(self) -> int:
        """Numbers that are trained."""
        return sum(p.numel() for p in self.parameters())


class VirtualAdapter(Adapter):
    """An adapter that puts m virtual tokens in front of every text, so that m places of the context are its own."""

    virtual: int

    def ids(self, vocab: int) -> Tensor:
        """What stands for the virtual tokens (m) in a row of tokens."""
        raise NotImplementedError


def describe(adapter: Adapter) -> str:
    """For messages."""
    return (type(adapter).__doc__ or "").partition(":")[0].strip().lower() or type(adapter).__name__


def share(model: nn.Module) -> Any:
    """A copy of the modules with the very same tensors: what is then replaced in it leaves the model as it is."""
    tensors = [*model.parameters(), *model.buffers()]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})


def find_places(model: nn.Module, targets: Iterable[str], kinds: tuple[type[nn.Module], ...]) -> list[str]:
    """The modules that the targets name, in the model's order: each by its whole name or by the end of it."""
    names = {name: module for name, module in model.named_modules() if name}
    found: set[str] = set()
    for target in targets:
        meant = [name for name in names if name == target or name.endswith(f".{target}")]
        fit = [name for name in meant if isinstance(names[name], kinds)]
        if not fit:
            known = sorted({end for name in names if isinstance(names[name], kinds) for end in ends(name)})
            if meant:
                wrong, wanted = type(names[meant[0]]).__name__, kinds[0].__name__
                raise Mistake(
                    f"{target} of {type(model).__name__} is a {wrong}, not a {wanted}: name one of {tell(known)}"
                )
            raise Mistake(
                f"{type(model).__name__} has no module {target!r}.{nearest(target, known)} It has {tell(known)}"
            )
        found.update(fit)
    return [name for name in names if name in found]


def ends(name: str) -> list[str]:
    """How a module may be named: blocks.0.attn.q -> attn.q and q; numbers of layers are left out."""
    last = [part for part in name.split(".") if not part.isdigit()]
    return [".".join(last[-2:]), last[-1]] if len(last) > 1 else last


def tell(names: list[str], most: int = 12) -> str:
    """Some names, for a message."""
    return ", ".join(names[:most]) + (", .." if names[most:] else "")
