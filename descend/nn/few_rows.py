"""A linear map for decoding, where x has one row per sequence and the whole matrix is read for it.

    y = x Wᵀ + b        x (r, in) with few rows r,   W (out, in)

With many rows such a product is bound by arithmetic, with few by reading W once. On a CPU `torch.nn.functional.linear`
reaches neither limit: for one row it keeps one core busy, which leaves half of the memory's bandwidth unused, and for a
few rows it spends its time bringing W into another order, at every call. The same sums, to rounding, come faster as

    1 row         a batched product over slices, W = [W_1; W_2; …], one for each thread: W stays where it is
    2 to 32       a batched product over panels of 16 outputs each, (in, 16), small enough to stay in the nearest cache:
                  a copy of W, made by `pack`
    more          functional.linear
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

PANEL, MOST_ROWS = 16, 32
LONG = 640  # from about so many inputs on, x Wᵀ reads the memory faster than W xᵀ; below, the other way round


class FewRows:
    """y = x Wᵀ + b. W and b are those of the model, not copies; what `pack` makes is a copy."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        self.w, self.b = weight.detach(), None if bias is None else bias.detach()
        self.outputs, self.inputs = weight.shape
        self.native = weight.device.type != "cpu" or weight.dtype != torch.float32  # other kernels need no help
        self.panels: Tensor | None = None
        self.slice(torch.get_num_threads())

    def slice(self, threads: int) -> None:
        """W_1, W_2, … and b_1, b_2, …; the rows that do not divide evenly are the rest."""
        n = self.outputs // threads
        even, b = n * threads, self.w.new_zeros(self.outputs) if self.b is None else self.b
        self.slices, self.biases = self.w[:even].view(threads, n, self.inputs), b[:even].view(threads, n, 1)
        self.rest = (self.w[even:], b[even:]) if even < self.outputs else None
        # x as one column (or row) per slice. The strides matter: with (0, 1, 1) the column is read ten times slower.
        self.columns = (threads, self.inputs, 1), (0, 1, self.inputs)
        self.rows = (threads, 1, self.inputs), (0, self.inputs, 1)
        self.across = self.slices.transpose(1, 2), self.biases.transpose(1, 2)

    def pack(self) -> None:
        """(panels, in, 16): what the product for several rows reads; as much memory again as W."""
        if self.panels is None and not self.native:
            missing = -self.outputs % PANEL
            w = F.pad(self.w, (0, 0, 0, missing)).view(-1, PANEL, self.inputs)
            self.panels = w.transpose(1, 2).contiguous()
            b = self.w.new_zeros(self.outputs) if self.b is None else self.b
            self.panel_biases = F.pad(b, (0, missing)).view(-1, 1, PANEL)

    def __call__(self, x: Tensor) -> Tensor:
        """x (r, in), contiguous -> (r, out)"""
        r = x.shape[0]
        if r == 1 and not self.native:
            return self.one_row(x)
        if self.panels is not None and r <= MOST_ROWS:
            y = torch.baddbmm(self.panel_biases, x.expand(len(self.panels), r, self.inputs), self.panels)
            return y.transpose(0, 1).reshape(r, -1)[:, : self.outputs]
        return F.linear(x, self.w, self.b)

    def one_row(self, x: Tensor) -> Tensor:
        if self.inputs < LONG:
            y = torch.baddbmm(self.biases, self.slices, x.as_strided(*self.columns))
        else:
            y = torch.baddbmm(self.across[1], x.as_strided(*self.rows), self.across[0])
        y = y.view(1, -1)
        return y if self.rest is None else torch.cat([y, F.linear(x, *self.rest)], dim=1)
