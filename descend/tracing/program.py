"""A recorded computation: values in the order in which they were computed, each a pure function of earlier ones.

A program is what `record` makes of a run. In-place writes are already resolved in it: a write makes a new value, and a
view that is read after its storage was written to is a new value too. So a program can be evaluated again with other
inputs, cut into segments and differentiated, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from descend.errors import Mistake, nearest

KINDS = ("input", "parameter", "constant", "operation")


@dataclass
class TraceNode:
    """A value. `run` computes it from the values of its parents (a parent used twice is listed twice)."""

    index: int
    kind: str
    name: str
    op: str
    value: Tensor
    parents: tuple[int, ...] = ()
    run: Callable[..., Tensor] | None = None
    form: str = ""
    """The call, with {} for each parent: pow({}, 2)."""
    where: str = ""
    """The module in which it was computed."""
    frozen: bool = False
    """Computed under no_grad: nothing flows through it."""

    @property
    def leaf(self) -> bool:
        return self.kind != "operation"

    @property
    def differentiable(self) -> bool:
        return self.value.is_floating_point() and self.kind != "constant" and not self.frozen


@dataclass
class Program:
    """Nodes, and which of them is the result, a single number. `torch_gradients` are autograd's own, by leaf."""

    nodes: list[TraceNode]
    output: int
    skipped: int = 0
    """Operations that ran but do not reach the output."""
    torch_gradients: dict[int, Tensor] = field(default_factory=dict)
    title: str = ""
    refused: str = ""
    """Why autograd itself could not differentiate the run."""

    @property
    def leaves(self) -> list[TraceNode]:
        return [node for node in self.nodes if node.leaf]

    @property
    def operations(self) -> list[TraceNode]:
        return [node for node in self.nodes if not node.leaf]

    @property
    def sources(self) -> list[TraceNode]:
        """The inputs and parameters that can be differentiated."""
        return [node for node in self.leaves if node.differentiable]

    def find_value(self, name: str) -> TraceNode:
        """The last value of that name."""
        found = [node for node in self.nodes if node.name == name]
        if not found:
            names = list(dict.fromkeys(node.name for node in self.nodes))
            raise Mistake(f"the trace has no value {name!r}.{nearest(name, names)} It has {', '.join(names[:12])}")
        return found[-1]

    def evaluate(self, leaves: Sequence[Tensor]) -> Tensor:
        """The output for other values of the leaves; every value is dropped after its last use."""
        last = {parent: node.index for node in self.nodes for parent in node.parents}
        values = {node.index: x for node, x in zip(self.leaves, leaves, strict=True)}
        for node in self.operations:
            values[node.index] = compute(node, [values[p] for p in node.parents])
            for parent in set(node.parents):
                if last[parent] == node.index and parent != self.output:
                    del values[parent]
        return values[self.output]


def compute(node: TraceNode, inputs: Sequence[Tensor]) -> Tensor:
    """The value of an operation."""
    assert node.run is not None
    y = node.run(*inputs)
    return y.detach() if node.frozen else y


def make_pure(
    func: Callable[..., Any], args: Any, kwargs: Any, written: set[int], slot: int, state: Tensor | None
) -> Any:
    """A call as a function of its tensors, which returns one tensor and changes none.

    `written` are the tensors that the call writes to: they are copied first. The result is tensor `slot` of what the
    call returns, or the copy of argument −1 − slot. `state` is the random state from which it drew.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    fixed = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]

    def run(*values: Tensor) -> Tensor:
        filled = list(fixed)
        copies = [x.clone() if i in written else x for i, x in enumerate(values)]
        for place, x in zip(places, copies, strict=True):
            filled[place] = x
        again, named = pytree.tree_unflatten(filled, spec)
        with torch.random.fork_rng(devices=[], enabled=state is not None):
            if state is not None:
                torch.set_rng_state(state)
            result = func(*again, **named)
        if slot < 0:
            return copies[-1 - slot]
        return [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)][slot]

    return run


def number_positions(x: Tensor) -> Tensor:
    """Where in its storage each element of x lies."""
    size = x.untyped_storage().nbytes() // x.element_size()
    return torch.arange(size).as_strided(x.shape, x.stride(), x.storage_offset())


def make_overwrite(own: Tensor, others: Sequence[Tensor], size: int) -> Callable[..., Tensor]:
    """A view after writes to its storage: its old value, with what the others wrote, in that order.

    `own` and `others` are positions in the storage, which has this many elements.
    """

    def run(old: Tensor, *written: Tensor) -> Tensor:
        flat = old.new_zeros(size).index_put((own,), old)
        for place, x in zip(others, written, strict=True):
            flat = flat.index_put((place,), x)
        return flat[own]

    return run
