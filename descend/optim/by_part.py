"""A learning rate and a beginning for each part of a network: fine-tuning with care.

    η_part = η · rate          lower for what is already learned (DLN: "lower learning rate"), 1 for a new head
    layer-wise decay           rate of the l-th part below the head = rate · decayˡ
    gradual unfreezing         a part takes no step before step `begins`

The values are parameter groups of one optimizer. Schedules multiply them all, and a checkpoint holds them.

Systems: transfer-learning
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from descend.ranges import NonNegative, Whole


@dataclass(frozen=True)
class Part:
    """The parameters whose names begin with `name`; an empty name stands for all others."""

    name: str
    rate: NonNegative = 1.0
    begins: Whole = 0


@dataclass(frozen=True)
class ByPart:
    """Another rule, with these parts; the longest name that fits a parameter decides."""

    rule: Any
    parts: tuple[Part, ...]

    @property
    def thaws(self) -> bool:
        """Whether a part begins later than the others."""
        return any(part.begins for part in self.parts)

    def build(self, module: nn.Module) -> Optimizer:
        optimizer: Optimizer = self.rule.build(module)
        if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS):
            raise ValueError(f"{type(self.rule).__name__} has one learning rate for all; use AdamW or SGD")
        owner = {p: self.part_of(name.removeprefix("module.")) for name, p in module.named_parameters()}
        groups: list[dict[str, Any]] = []
        for group in optimizer.param_groups:
            found = [owner[p] for p in group["params"]]
            for rate, begins in sorted({(part.rate, part.begins) for part in found}, key=lambda k: (k[1], -k[0])):
                mine = [p for p in group["params"] if (owner[p].rate, owner[p].begins) == (rate, begins)]
                groups.append({**group, "params": mine, "lr": group["lr"] * rate, "begins": begins, "taken": 0})
        optimizer.param_groups = sorted(groups, key=lambda g: (g["begins"], -g["lr"]))  # the head first: it is logged
        if any(group["begins"] for group in groups):
            optimizer.register_step_pre_hook(begin)
        return optimizer

    def part_of(self, name: str) -> Part:
        """The part that a parameter belongs to."""
        fits = [p for p in self.parts if not p.name or name == p.name or name.startswith(f"{p.name}.")]
        return max(fits, key=lambda p: len(p.name), default=Part(""))


def begin(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Before a step: groups whose time has come take gradients, the others do not."""
    for group in optimizer.param_groups:
        learns = group["taken"] >= group["begins"]
        group["taken"] += 1
        for p in group["params"]:
            p.requires_grad_(learns)
            if not learns:
                p.grad = None


def decay_rates(names: Sequence[str], rate: float, decay: float) -> tuple[Part, ...]:
    """Parts from the input to the last one below the head, with rate · decayˡ, l = 0 for the last; "" as the first."""
    if not names:
        return ()
    parts = [Part(name, rate * decay**l) for l, name in enumerate(reversed(names))]  # noqa: E741
    return (*parts, Part("", parts[-1].rate))


def thaw_parts(parts: Sequence[Part], every: int) -> tuple[Part, ...]:
    """The same parts, the last one beginning after `every` steps, the one before it after twice as many, and so on."""
    named = [p for p in parts if p.name]
    later = [Part(p.name, p.rate, every * (i + 1)) for i, p in enumerate(named)]
    return (*later, *(Part("", p.rate, every * len(named)) for p in parts if not p.name))


def learning_rates(optimizer: Optimizer, module: nn.Module) -> dict[str, float]:
    """The learning rate of every parameter that is trained, by name."""
    of: dict[Tensor, float] = {p: group["lr"] for group in optimizer.param_groups for p in group["params"]}
    return {name: of[p] for name, p in module.named_parameters() if p in of}
