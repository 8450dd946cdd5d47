"""Optimizers that treat every number alone: the shared step, block by block.

A rule is written once, on lists of tensors (p parameters, g gradients, s state). The step cuts the parameters into
blocks that fit into the processor's cache and gives each block to the rule, so that its several passes read main
memory once. On an accelerator a block is the whole group. A sharded tensor is updated where it lies: the rule needs
no neighbour.

State is torch's: one dict a parameter with `step` and tensors of the parameter's shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from descend.errors import Mistake
from descend.optim.shards import local

Closure = Callable[[], Any]
Group = dict[str, Any]
Row = tuple[Tensor, ...] | list[Tensor]
BLOCK = 1 << 17  # numbers for each thread: with 4 tensors of float32 about 2 MB


class Elementwise(Optimizer):
    """A rule `update` with named state tensors (`slots`), all 0 at first."""

    slots: tuple[str, ...] = ()

    def __init__(self, params: Iterable[Any], **defaults: Any):
        super().__init__(params, defaults)
        for group in self.param_groups:
            check(group)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        """Step t (from 1) of the parameters p with gradients g and one list for each slot, all in place."""
        raise NotImplementedError

    @torch.no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """One step; returns the closure's loss."""
        loss = evaluate(closure) if closure else None
        for group in self.param_groups:
            for t, rows in self.rows(group).items():
                for block in blocks(rows):
                    self.update(group, t, *block)
        return loss

    def rows(self, group: Group) -> dict[int, list[Row]]:
        """[parameter, gradient, state...] of everything that has a gradient, by the number of its step."""
        found: dict[int, list[Row]] = defaultdict(list)
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.grad.is_sparse:
                raise Mistake(f"{type(self).__name__} needs dense gradients; build the embedding with sparse=False")
            state = self.state[p]
            if not state:
                state["step"] = 0
                state.update({slot: torch.zeros_like(p) for slot in self.slots})
            state["step"] += 1
            found[state["step"]].append([local(x) for x in (p, p.grad, *(state[slot] for slot in self.slots))])
        return found


def evaluate(closure: Closure | None) -> Any:
    """The loss of a closure, with gradients enabled."""
    if closure is None:
        raise Mistake("this optimizer evaluates the loss itself: call step(closure)")
    with torch.enable_grad():
        return closure()


def number(loss: Any) -> float:
    """A closure's loss as a float."""
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


def blocks(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows turned into columns (p, g, state...) and cut: large tensors into pieces, small ones together."""
    most = BLOCK * torch.get_num_threads()
    waiting: list[Row] = []
    size = 0
    for row in rows:
        n = row[0].numel()
        if n > most and all(x.device.type == "cpu" and x.is_contiguous() for x in row):
            for pieces in zip(*(x.view(-1).split(most) for x in row), strict=True):
                yield [[piece] for piece in pieces]
            continue
        if size + n > most and waiting and row[0].device.type == "cpu":
            yield columns(waiting)
            waiting, size = [], 0
        waiting.append(row)
        size += n
    if waiting:
        yield columns(waiting)


def columns(rows: list[Row]) -> list[Row]:
    return [list(column) for column in zip(*rows, strict=True)]


def with_l2(group: Group, p: Row, g: Row) -> Row:
    """g + λ θ, the gradient of the loss with an L2 penalty."""
    decay = group["weight_decay"]
    return torch._foreach_add(g, p, alpha=decay) if decay else g


def check(group: Group) -> None:
    """Refuse settings that no rule can use."""
    for name in ("lr", "weight_decay", "eps", "damping"):
        if not group.get(name, 0.0) >= 0:
            raise Mistake(f"{name} = {group[name]} must not be negative")
    decays = [group[name] for name in ("momentum", "gamma") if name in group]
    for decay in (*decays, *group.get("betas", ())):
        if not 0 <= decay < 1:
            raise Mistake(f"a decay rate of {decay} diverges; give one from 0 to below 1")
