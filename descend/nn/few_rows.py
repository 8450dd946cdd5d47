"""Linear maps for decoding, where x has one row per sequence and the matrix has to be read for it.

    y = x Wᵀ + b        x (r, in) with few rows r,   W (out, in)

A matrix product with many rows is bound by arithmetic; with few rows it is bound by reading W from memory once. On a CPU
`torch.nn.functional.linear` does neither well: for one row it runs on one core only, so that the memory is half idle,
and for a few rows it copies W into another order at every call. The same numbers, to rounding, come faster by

    1 row           a batched product over slices of W, W = [W_1; W_2; …], one for each thread: no copy of W
    2 to 64 rows    W brought once into the order that the kernel wants (oneDNN), in a copy
    more            functional.linear

`decoding_copy` gives a model whose linear maps are replaced this way and whose parameters are the same tensors. The copies
for several rows are made when they are first needed and hold W as it was then: after training on, make a new one.
"""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MOST_ROWS = 64
LONG = 640
"""From about this many inputs on, row dot products (x Wᵀ) read memory faster than products with a column (W xᵀ)."""

Model = TypeVar("Model", bound=nn.Module)


class FewRows(nn.Module):
    """y = x Wᵀ + b, for float32 on a CPU."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        self.w, self.b = weight.detach(), None if bias is None else bias.detach()
        self.inputs = weight.shape[1]
        self.packed: Tensor | None = None
        self.slice_for(torch.get_num_threads())

    def slice_for(self, threads: int) -> None:
        """W and b as one slice for each thread; what does not divide evenly is left over."""
        n = len(self.w) // threads
        even = n * threads
        self.threads = threads
        self.slices = self.w[:even].view(threads, n, self.inputs)
        bias = self.w.new_zeros(len(self.w)) if self.b is None else self.b
        self.slice_bias = bias[:even].view(threads, n, 1)
        self.rest = None if even == len(self.w) else (self.w[even:], bias[even:])

    def forward(self, x: Tensor) -> Tensor:
        rows = x.numel() // self.inputs
        if rows == 1:
            return self.one_row(x)
        if rows <= MOST_ROWS:
            return self.some_rows(x)
        return F.linear(x, self.w, self.b)

    def one_row(self, x: Tensor) -> Tensor:
        """[x W_1ᵀ + b_1, x W_2ᵀ + b_2, …]: the threads take a slice each."""
        copies = x.reshape(1, 1, self.inputs).expand(self.threads, 1, self.inputs)
        if self.inputs > LONG:
            y = torch.baddbmm(self.slice_bias.transpose(1, 2), copies, self.slices.transpose(1, 2))
        else:
            y = torch.baddbmm(self.slice_bias, self.slices, copies.transpose(1, 2))
        y = y.view(*x.shape[:-1], -1)
        return y if self.rest is None else torch.cat([y, F.linear(x, *self.rest)], dim=-1)

    def some_rows(self, x: Tensor) -> Tensor:
        """The packed product."""
        if self.packed is None:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.w, MOST_ROWS)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.b, "none", [], "")


def fits(weight: Tensor) -> bool:
    """Whether this file's forms exist for such a matrix."""
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()


def decoding_copy(model: Model) -> Model:
    """The same model in evaluation mode with `FewRows` for its linear maps; the model itself is left as it is."""
    shared = {id(p): p for p in [*model.parameters(), *model.buffers()]}
    twin = copy.deepcopy(model, shared).eval()
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and fits(child.weight):
                setattr(parent, name, FewRows(child.weight, child.bias))
    return twin
