"""Bad input of a loss, refused in one line that names the record: its index in the batch.

Torch broadcasts (b) against (b, 1) to (b, b) in silence, takes labels 0 and 1 where −1 and 1 are meant, and makes NaN
of a negative probability. Shapes are always compared. Values are looked at on the CPU only, and neither under
torch.compile nor under torch.func: there a look would wait for the accelerator or break the trace.
"""

from __future__ import annotations

import math
from typing import NoReturn

import torch
from torch import Tensor

from descend.errors import Mistake

UNKNOWN = (-math.inf, math.inf)


def same_shape(x: Tensor, y: Tensor, names: str = "predictions and targets") -> None:
    """Refuse tensors of different shapes."""
    if x.shape != y.shape:
        raise Mistake(f"{names} differ in shape: {tuple(x.shape)} and {tuple(y.shape)}; reshape one of them")


def label_shape(x: Tensor, y: Tensor, what: str = "logits") -> None:
    """Refuse labels that are not one whole number for each row of x."""
    if x.shape[:-1] != y.shape:
        raise Mistake(f"{what} {tuple(x.shape)} need labels {tuple(x.shape[:-1])}, not {tuple(y.shape)}")
    if y.is_floating_point():
        raise Mistake(f"labels are {y.dtype}: give whole numbers, or distributions to soft_cross_entropy")


def label_range(y: Tensor, classes: int) -> None:
    """Refuse labels outside 0 .. classes − 1."""
    low, high = extremes(y)
    if (low < 0 or high >= classes) and low is not UNKNOWN[0]:
        refuse((y < 0) | (y >= classes), y, f"label {{}} is not one of the classes 0 to {classes - 1}")


def signs(y: Tensor) -> None:
    """Refuse labels other than −1 and 1."""
    if extremes(y.abs()) not in ((1, 1), UNKNOWN):
        refuse(y.abs() != 1, y, "label {} is neither -1 nor 1")


def shares(p: Tensor, what: str = "probability") -> bool:
    """Refuse values outside 0..1, and NaN. Whether none of them is exactly 0 or 1."""
    low, high = extremes(p)
    if not (low >= 0 and high <= 1) and low is not UNKNOWN[0]:
        refuse(~((p >= 0) & (p <= 1)), p, f"{what} {{}} is not between 0 and 1")
    return low > 0 and high < 1


def not_negative(p: Tensor, what: str = "probability") -> bool:
    """Refuse values below 0, and NaN. Whether none of them is exactly 0."""
    low, _ = extremes(p)
    if not low >= 0 and low is not UNKNOWN[0]:
        refuse(~(p >= 0), p, f"{what} {{}} is negative")
    return low > 0


def extremes(x: Tensor) -> tuple[float, float]:
    """The smallest and the largest value; UNKNOWN where looking would cost or break something, or nothing is there."""
    if not x.is_cpu or torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return UNKNOWN
    if not x.numel():
        return UNKNOWN
    low, high = (x.detach() if x.requires_grad else x).aminmax()
    return low.item(), high.item()


def refuse(bad: Tensor, values: Tensor, message: str) -> NoReturn:
    """Name the first bad record and its value, which takes the place of {} in the message."""
    where = [int(i) for i in bad.nonzero()[0]]
    record = ", ".join(map(str, where)) or "0"
    raise Mistake(f"record {record}: {message.format(f'{values[tuple(where)].item():.4g}')}")
