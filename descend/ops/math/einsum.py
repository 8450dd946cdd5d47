"""Einstein summation: indices that are not in the output are summed, the others stay free.

    matrix product      C_ij = A_ik B_kj              "ik,kj->ij"
    matrix · vector     y_i = W_ij x_j                "ij,j->i"
    batched product     C_bmn = A_bmk B_bkn           "bmk,bkn->bmn"     b is repeated but free: the output has it
    1-D convolution     y_t = Σ_s w_s x_{t+s}         "s,(t+s)->t"       no flip (cross-correlation); T − S + 1 outputs
    with stride 2       y_t = Σ_s w_s x_{2t+s}        "s,(2t+s)->t"

How it is computed: every index gets an axis of one grid, every operand is looked up at its index expressions on that
grid, the values are multiplied, and the axes that are not in the output are summed. This is the loop over all indices,
done at once; it costs the memory of the whole grid, which torch.einsum avoids. Sums of indices are not in torch.einsum.
Without "->" the output has the indices that occur once, in alphabetical order.

Systems: einstein-summation
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

Axis = dict[str, int]  # index -> factor: {"t": 2, "s": 1} is the axis looked up at 2t + s
AXIS = re.compile(r"([a-zA-Z])|\(([^()]*)\)")
TERM = re.compile(r"(\d*)([a-zA-Z])")


@dataclass(frozen=True)
class Spec:
    """A parsed expression: the axes of each operand, and the indices of the output."""

    operands: tuple[tuple[Axis, ...], ...]
    output: str


def parse(text: str) -> Spec:
    """ "ik,kj->ij" as axes and output."""
    left, arrow, output = text.replace(" ", "").partition("->")
    operands = tuple(_axes(part, text) for part in left.split(","))
    seen = Counter(index for axes in operands for axis in axes for index in axis)
    if not arrow:
        output = "".join(sorted(index for index, times in seen.items() if times == 1))
    for index in output:
        if index not in seen or output.count(index) > 1:
            raise ValueError(f"{text!r}: output index {index!r} must occur once, and in some operand")
    return Spec(operands, output)


def _axes(part: str, text: str) -> tuple[Axis, ...]:
    """The axes of one operand: letters, or sums in parentheses."""
    found = list(AXIS.finditer(part))
    if "".join(match.group() for match in found) != part:
        raise ValueError(f"{text!r}: cannot read {part!r}; write letters, or sums as (t+s) and (2t+s)")
    return tuple({match[1]: 1} if match[1] else _sum(match[2], text) for match in found)


def _sum(expression: str, text: str) -> Axis:
    axis: Axis = {}
    for term in expression.split("+"):
        match = TERM.fullmatch(term)
        if not match or match[1] == "0":
            raise ValueError(f"{text!r}: cannot read the index {term!r}; write t or 2t")
        axis[match[2]] = axis.get(match[2], 0) + int(match[1] or 1)
    return axis


def sizes(spec: Spec, shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """How far each index runs: as long as its axis, or as far as a sum of indices fits into its axis."""
    if [len(axes) for axes in spec.operands] != [len(shape) for shape in shapes]:
        wanted, given = [len(axes) for axes in spec.operands], [len(shape) for shape in shapes]
        raise ValueError(f"the expression has operands of order {wanted}, the tensors have {given}")
    pairs = [pair for axes, shape in zip(spec.operands, shapes, strict=True) for pair in zip(axes, shape, strict=True)]
    known: dict[str, int] = {}
    for axis, length in pairs:
        for index in axis if list(axis.values()) == [1] else ():
            if known.setdefault(index, length) != length:
                raise ValueError(f"index {index!r} has sizes {known[index]} and {length}; they must be equal")
    for axis, length in pairs:
        unknown = [index for index in axis if index not in known]
        if len(unknown) > 1:
            raise ValueError(f"the sizes of {' and '.join(unknown)} are open; one must be the axis of an operand")
        room = length - 1 - sum(factor * (known[index] - 1) for index, factor in axis.items() if index in known)
        if room < 0:
            raise ValueError(f"the index {'+'.join(axis)} runs past its axis of size {length}")
        known |= {index: room // axis[index] + 1 for index in unknown}
    return known


def einsum(text: str, *operands: Tensor) -> Tensor:
    """The expression evaluated on the operands."""
    spec = parse(text)
    length = sizes(spec, [tuple(x.shape) for x in operands])
    indices = spec.output + "".join(index for index in length if index not in spec.output)
    grid = {
        index: torch.arange(length[index]).view(-1, *[1] * (len(indices) - 1 - k)) for k, index in enumerate(indices)
    }
    total = torch.ones((), dtype=operands[0].dtype)
    for x, axes in zip(operands, spec.operands, strict=True):
        at = tuple(sum((factor * grid[index] for index, factor in axis.items()), torch.tensor(0)) for axis in axes)
        total = total * x[at]
    summed = tuple(range(len(spec.output), len(indices)))
    total = total.expand(*(length[index] for index in indices))
    return total.sum(summed) if summed else total
