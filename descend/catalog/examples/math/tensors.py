"""Worked examples of the family math: shapes, broadcasting, Einstein summation."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.math.einsum import einsum
from descend.ops.math.shapes import (
    broadcast_shape,
    destinations,
    flatten,
    permute,
    reshape,
    reshape_column_major,
    sources,
)


def count_up(shape: list[int]) -> Tensor:
    """0, 1, 2, … in row-major order."""
    return torch.arange(math.prod(shape)).view(*shape)


def index_equation(i: Inputs) -> Inputs:
    x, equation = count_up(i["X_shape"]), "kilj->ijkl"
    y = permute(x, equation)
    other = x.permute(2, 0, 3, 1)
    return {
        "Y_shape": list(y.shape),
        "permute_1302_equal": torch.equal(y, x.permute(1, 3, 0, 2)) and sources(equation) == (1, 3, 0, 2),
        "permute_2031_equal": torch.equal(y, other),
        "permute_2031_shape": list(other.shape),
        "movedim_0123_to_2031_equal": torch.equal(y, x.movedim((0, 1, 2, 3), destinations(equation))),
    }


def two_orders(i: Inputs) -> Inputs:
    x = count_up(i["X_shape"])
    b, c, h, w = x.shape
    rows = reshape(x, (b * c, h * w))
    memory = torch.arange(x.numel())
    return {
        "reshaped": list(rows.shape),
        "flattened": list(flatten(x).shape),
        "per_sample_flatten": list(flatten(x, 1).shape),
        "row_major_equal": torch.equal(rows.flatten(), memory),
        "fortran_order_equal": torch.equal(reshape_column_major(x, (b * c, h * w)).flatten(), memory),
    }


def two_broadcasts(i: Inputs) -> Inputs:
    b, m, n = i["B"], i["M"], i["N"]
    return {"ex1": broadcast_shape((m, n), (n,)), "ex2": broadcast_shape((b, m, n), (n,))}


def convolution(i: Inputs) -> Inputs:
    x, w = real(i["x"]), real(i["w"])
    y = einsum(f"s,({i['stride']}t+s)->t", w, x)
    return {"y": y, "torch_conv1d": F.conv1d(x.view(1, 1, -1), w.view(1, 1, -1)).flatten(), "length": len(y)}


def batched_product(i: Inputs) -> Inputs:
    a, b = real(i["A"]), real(i["B"])
    return {"C": einsum("bmk,bkn->bmn", a, b), "matmul": a @ b}


EXAMPLES: dict[str, Compute] = {
    "MF-12.3.2-permute": index_equation,
    "MF-12.3.1-reshape": two_orders,
    "MF-12.2.1-broadcast": two_broadcasts,
    "MF-12.1.2-conv1d": convolution,
    "MF-12.1.2-bmm": batched_product,
}

SET_ASIDE: dict[str, str] = {}
