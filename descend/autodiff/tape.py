"""Reverse-mode automatic differentiation: a tape of what was executed, walked backwards from the output.

    forward     every operation makes a value with a `grad_fn`: the primitive, and the values it was computed from
    backward    v̄_root = 1;   v̄_j = Σ_{k child of j} (∂v_k/∂v_j)ᵀ v̄_k,  in reverse topological order

A value used by several others collects one contribution from each. Only values with `requires_grad`, and what is
computed from them, are recorded and have a gradient. As in torch, the gradients of leaves add up over several backward
passes until they are set to None; every value between keeps the adjoint of the last pass, to be looked at.

MF 10.2.2 calls y the root; L = y² is one node more, whose adjoint is the 1 that the walk starts from.

Systems: reverse-mode-autodiff
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.autodiff.primitives import Primitive, Traced, tensor
from descend.errors import Mistake


class GradFn(NamedTuple):
    """How a value was made; `str` names it as torch does: MulBackward."""

    primitive: Primitive
    inputs: tuple[Value, ...]

    def __str__(self) -> str:
        return self.primitive.name.title().replace("_", "") + "Backward"


class Value(Traced):
    """A tensor on the tape."""

    def __init__(self, data: Any, requires_grad: bool = False, grad_fn: GradFn | None = None):
        self.data = tensor(data)
        self.requires_grad = requires_grad
        self.grad_fn = grad_fn
        self.grad: Tensor | None = None

    def __repr__(self) -> str:
        made = f", grad_fn={self.grad_fn}" if self.grad_fn else ", requires_grad=True" if self.requires_grad else ""
        return f"Value({self.data.tolist()}{made})"

    def apply(self, primitive: Primitive, inputs: tuple[Any, ...]) -> Value:
        values = tuple(x if isinstance(x, Value) else Value(tensor(x, self.data)) for x in inputs)
        y = primitive.value(*(v.data for v in values))
        tracked = any(v.requires_grad for v in values)
        return Value(y, tracked, GradFn(primitive, values) if tracked else None)

    def backward(self, seed: Tensor | None = None) -> None:
        """Fill in `grad` of all that this value depends on; `seed` is its own adjoint, 1 for a scalar."""
        if not self.requires_grad:
            raise Mistake("backward: nothing here requires a gradient; make an input with requires_grad=True")
        if seed is None and self.data.numel() != 1:
            raise Mistake(f"backward: the value has shape {tuple(self.data.shape)}; reduce it, or give its adjoint")
        adjoints = {id(self): torch.ones_like(self.data) if seed is None else seed}
        for v in reversed(order(self)):
            v_bar = adjoints[id(v)]
            v.grad = v_bar if v.grad is None or v.grad_fn else v.grad + v_bar
            if v.grad_fn is None:
                continue
            primitive, inputs = v.grad_fn
            for x, x_bar in zip(inputs, primitive.vjp(v_bar, v.data, *(x.data for x in inputs)), strict=True):
                if x.requires_grad:
                    adjoints[id(x)] = adjoints[id(x)] + x_bar if id(x) in adjoints else x_bar


def order(root: Value) -> list[Value]:
    """Everything tracked that the root depends on, each after what it was computed from."""
    done: list[Value] = []
    seen: set[int] = set()
    stack: list[tuple[Value, bool]] = [(root, False)]
    while stack:
        v, finished = stack.pop()
        if finished:
            done.append(v)
        elif id(v) not in seen:
            seen.add(id(v))
            stack.append((v, True))
            stack += [(x, False) for x in (v.grad_fn.inputs if v.grad_fn else ()) if x.requires_grad]
    return done


def forward_graph(root: Value) -> str:
    """The recorded operations in the order of evaluation, one per line."""
    names = {id(v): f"v{i + 1}" for i, v in enumerate(order(root))}
    lines = []
    for v in order(root):
        inputs = [names.get(id(x), str(x.data.tolist())) for x in v.grad_fn.inputs] if v.grad_fn else []
        lines.append(
            f"{names[id(v)]} = {v.grad_fn.primitive.name}({', '.join(inputs)})"
            if v.grad_fn
            else f"{names[id(v)]}: leaf"
        )
    return "\n".join(lines)


def reverse_graph(root: Value) -> str:
    """The same backwards, from the root's 1 to the leaves: which grad_fn passes an adjoint on to whom."""
    names = {id(v): f"v{i + 1}" for i, v in enumerate(order(root))}
    lines = []
    for v in reversed(order(root)):
        if v.grad_fn:
            to = ", ".join(names[id(x)] for x in v.grad_fn.inputs if x.requires_grad)
            lines.append(f"{names[id(v)]}: {v.grad_fn} -> {to}")
        else:
            lines.append(f"{names[id(v)]}: AccumulateGrad")
    return "\n".join(lines)
