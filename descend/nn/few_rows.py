"""A linear map for decoding, where x has one row per sequence and the whole matrix is read for it.

    y = x Wᵀ + b        x (r, in) with few rows r,   W (out, in)

With many rows such a product is bound by arithmetic, with few by reading W once. On a CPU `torch.nn.functional.linear`
reaches neither limit: for one row it keeps one core busy, which leaves half of the memory's bandwidth unused, and for a
few rows it first brings W into another order, at every call. The same sums, to rounding, come faster as

    1 row       a batched product over slices W = [W_1; W_2; …], one for each thread
    2 to 48     yᵀ = W xᵀ with the roles exchanged: W is the input, read as it lies, and x the small matrix to reorder
    more        functional.linear

None of them copies W: a decoder always computes with the weights that its model has now.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

MOST_ROWS = 48
LONG = 640  # from about so many inputs on, x Wᵀ reads the memory faster than W xᵀ; below, the other way round


class FewRows:
    """x (r, in) -> y (r, out), whose columns may be the contiguous ones (y is then a transposed view)."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        self.w, self.b = weight.detach(), None if bias is None else bias.detach()
        self.outputs, self.inputs = weight.shape
        on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
        self.most_rows = MOST_ROWS if on_cpu and torch.backends.mkldnn.is_available() else 0
        self.slice(torch.get_num_threads())

    def slice(self, threads: int) -> None:
        """W_1, W_2, … and b_1, b_2, …; the rows that do not divide evenly are the rest."""
        n = self.outputs // threads
        even, b = n * threads, self.w.new_zeros(self.outputs) if self.b is None else self.b
        w_i, b_i = self.w[:even].view(threads, n, self.inputs), b[:even].view(threads, n, 1)
        self.rest = (self.w[even:], b[even:]) if even < self.outputs else None
        # x once for every slice, without a copy. With strides (0, 1, 1) for the column it would be ten times slower.
        if self.inputs < LONG:
            self.slices, self.copies = (b_i, w_i), ((threads, self.inputs, 1), (0, 1, self.inputs))
        else:
            self.slices, self.copies = (b_i.mT, w_i.mT), ((threads, 1, self.inputs), (0, self.inputs, 1))

    def __call__(self, x: Tensor) -> Tensor:
        rows = x.shape[0]
        if rows > self.most_rows:
            return F.linear(x, self.w, self.b)
        if rows == 1:
            return self.one_row(x)
        y = torch.ops.mkldnn._linear_pointwise(self.w, x, None, "none", [], "")  # (out, r)
        return y.t() if self.b is None else y.add_(self.b[:, None]).t()

    def one_row(self, x: Tensor) -> Tensor:
        b_i, w_i = self.slices
        x_i = x.as_strided(*self.copies)
        y = torch.baddbmm(b_i, w_i, x_i) if self.inputs < LONG else torch.baddbmm(b_i, x_i, w_i)
        y = y.view(1, -1)
        return y if self.rest is None else torch.cat([y, F.linear(x, *self.rest)], dim=1)
