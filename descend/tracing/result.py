"""A finished trace: the program, both modes, their cost, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.utils import _pytree as pytree

from descend.errors import Mistake
from descend.tracing.cost import ModeCost, measure_costs
from descend.tracing.modes import Derivatives, differentiate, measure_disagreement
from descend.tracing.program import Program
from descend.tracing.record import record


@dataclass
class Trace:
    """What a function computed, node by node. Values are found by name: `t.value("z1")`, `t.adjoint("W1")`."""

    program: Program
    derivatives: Derivatives
    costs: list[ModeCost]
    gap: float
    """Largest relative difference between the gradients found here and those of autograd."""

    @property
    def names(self) -> list[str]:
        return [node.name for node in self.program.nodes]

    @property
    def result(self) -> float:
        return float(self.program.nodes[self.program.output].value)

    def value(self, name: str) -> Tensor:
        return self.program.find_value(name).value

    def adjoint(self, name: str) -> Tensor | None:
        """∂ result / ∂ value"""
        return self.derivatives.adjoints[self.program.find_value(name).index]

    def tangent(self, name: str) -> Tensor | None:
        """∂ value / ∂ (the direction of forward mode)"""
        return self.derivatives.tangents[self.program.find_value(name).index]

    def jacobian(self, name: str, parent: str) -> Tensor | None:
        """The local Jacobian of a node in one of its parents, where it is small enough to be written out."""
        node, source = self.program.find_value(name), self.program.find_value(parent)
        edges = self.derivatives.edges[node.index]
        return next((edge.jacobian for edge in edges if edge.parent == source.index), None)

    @property
    def check(self) -> str:
        """How the gradients compare with autograd's, in a sentence."""
        if self.program.refused:
            return f"autograd itself refuses this function ({self.program.refused}); the derivatives here are unchecked"
        if self.gap < 1e-4:
            return f"gradients equal autograd's (largest relative difference {self.gap:.1g})"
        return f"gradients DIFFER from autograd's by {self.gap:.1g}: the function does something a trace cannot see"

    def __str__(self) -> str:
        from descend.tracing.table import format_trace

        return format_trace(self)


def make_trace(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    output: str = "",
    along: str = "",
    segments: int = 0,
    title: str = "",
    module: nn.Module | None = None,
) -> Trace:
    """Record fn on the inputs, differentiate it both ways, measure the cost of each."""
    program = record(fn, inputs, lambda result: choose_output(result, output), title, module)
    if not program.operations:
        raise Mistake("trace: nothing is computed; the result is one of the inputs")
    if segments < 0 or segments > len(program.operations):
        raise Mistake(f"--segments {segments}: between 1 and {len(program.operations)}, the number of operations")
    derivatives = differentiate(program, along)
    return Trace(program, derivatives, measure_costs(program, segments), measure_disagreement(program, derivatives))


def choose_output(result: Any, output: str) -> Tensor:
    """A single number of a result: `0,1` is an element, `sum` and `mean` reduce, `1:` is the second tensor."""
    tensors = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
    if not tensors:
        raise Mistake(f"trace: the function returned {type(result).__name__}, which holds no tensor")
    which, colon, rest = output.partition(":")
    if not colon:
        which, rest = "0", output
    try:
        y = tensors[int(which)]
    except (ValueError, IndexError):
        raise Mistake(
            f"--output {output}: the result has {len(tensors)} tensors; write 0: to {len(tensors) - 1}:"
        ) from None
    shape = tuple(y.shape)
    if not y.is_floating_point():
        raise Mistake(f"--output {output or '0:'}: a tensor of {y.dtype} cannot be differentiated")
    if rest in ("sum", "mean"):
        return y.sum() if rest == "sum" else y.mean()
    if not rest:
        if y.numel() == 1:
            return y if y.dim() == 0 else y.sum()
        zeros = ",".join("0" * y.dim())
        raise Mistake(f"the result has shape {shape}: choose one element with --output {zeros}, or sum, or mean")
    try:
        index = tuple(int(i) for i in rest.split(","))
        if len(index) != y.dim():
            raise IndexError
        return y[index]
    except (ValueError, IndexError):
        raise Mistake(f"--output {output}: the result has shape {shape}; give one index per dimension") from None
