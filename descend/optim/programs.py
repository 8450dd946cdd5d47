"""Update rules as programs: a small language in which Adam and Lion are a few lines.

    a program is a list of statements `target = operation(inputs, constant)` over
    w, g         the weights and their gradient, read only
    m, v         kept from step to step, 0 at first
    a, b, c, u   0 at the beginning of each step;  in the end  w ← w − η u

Every program is valid, so that a search may change them freely; a bad one scores badly. Systems that find Lion this way
are in `evolution.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from descend.optim.elementwise import Elementwise, Group, Row

READ, KEPT, FRESH = ("w", "g"), ("m", "v"), ("a", "b", "c", "u")


class Operation(NamedTuple):
    """How many inputs it takes, whether it uses the constant, and what it computes from inputs, constant and step."""

    inputs: int
    constant: bool
    compute: Callable[[list[Row], float, int], Row]


OPERATIONS = {
    "add": Operation(2, False, lambda x, k, t: torch._foreach_add(x[0], x[1])),
    "subtract": Operation(2, False, lambda x, k, t: torch._foreach_sub(x[0], x[1])),
    "multiply": Operation(2, False, lambda x, k, t: torch._foreach_mul(x[0], x[1])),
    "divide": Operation(2, False, lambda x, k, t: torch._foreach_div(x[0], x[1])),
    "sign": Operation(1, False, lambda x, k, t: torch._foreach_sign(x[0])),
    "square": Operation(1, False, lambda x, k, t: torch._foreach_mul(x[0], x[0])),
    "sqrt": Operation(1, False, lambda x, k, t: torch._foreach_sqrt(x[0])),
    "absolute": Operation(1, False, lambda x, k, t: torch._foreach_abs(x[0])),
    "scale": Operation(1, True, lambda x, k, t: torch._foreach_mul(x[0], k)),
    "shift": Operation(1, True, lambda x, k, t: torch._foreach_add(x[0], k)),
    "interpolate": Operation(2, True, lambda x, k, t: torch._foreach_lerp(x[0], x[1], k)),
    "unbias": Operation(1, True, lambda x, k, t: torch._foreach_div(x[0], (1 - k**t) or 1.0)),
}


class Statement(NamedTuple):
    """target = operation(inputs, constant)."""

    target: str
    operation: str
    inputs: tuple[str, ...]
    constant: float = 0.0

    def __str__(self) -> str:
        constant = (f"{self.constant:.3g}",) if OPERATIONS[self.operation].constant else ()
        return f"{self.target} = {self.operation}({', '.join((*self.inputs, *constant))})"


Program = tuple[Statement, ...]


def adamw(weight_decay: float = 0.01) -> Program:
    """AdamW with its usual constants, line by line."""
    return (
        Statement("m", "interpolate", ("m", "g"), 0.1),
        Statement("a", "square", ("g",)),
        Statement("v", "interpolate", ("v", "a"), 0.001),
        Statement("u", "unbias", ("m",), 0.9),
        Statement("b", "unbias", ("v",), 0.999),
        Statement("b", "sqrt", ("b",)),
        Statement("b", "shift", ("b",), 1e-8),
        Statement("u", "divide", ("u", "b")),
        Statement("c", "scale", ("w",), weight_decay),
        Statement("u", "add", ("u", "c")),
    )


def lion(weight_decay: float = 0.0) -> Program:
    """Lion with β = 0.9 and 0.99."""
    return (
        Statement("u", "interpolate", ("m", "g"), 0.1),
        Statement("u", "sign", ("u",)),
        Statement("c", "scale", ("w",), weight_decay),
        Statement("u", "add", ("u", "c")),
        Statement("m", "interpolate", ("m", "g"), 0.01),
    )


class Programmed(Elementwise):
    """The optimizer that runs a program."""

    slots = KEPT

    def __init__(self, params: Iterable[Any], program: Program, lr: float = 1e-3):
        super().__init__(params, lr=lr)
        self.program = program

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        kept = dict(zip(KEPT, s, strict=True))
        zero: Row = [torch.zeros_like(x) for x in p]
        values = {"w": p, "g": g, **kept, **dict.fromkeys(FRESH, zero)}
        for line in self.program:
            inputs = [values[name] for name in line.inputs]
            values[line.target] = OPERATIONS[line.operation].compute(inputs, line.constant, t)
        for name, slot in kept.items():
            if values[name] is not slot:
                torch._foreach_copy_(slot, values[name])
        torch._foreach_add_(p, values["u"], alpha=-group["lr"])
