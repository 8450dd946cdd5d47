"""Attention on a map with relative positions of rows and of columns, each with a table of its own.

    A = softmax(Q Kᵀ / √k + E),   E_(i,j),(i',j') = q_ij · R^row_{i − i'} + q_ij · R^col_{j − j'}

2h − 1 and 2w − 1 vectors in place of (2h − 1)(2w − 1): the two directions add up (MViTv2, ViTDet). A table for another
size of map is interpolated.

E has as many numbers as the attention itself, and need not be written down: with the rows and columns of the keys as
unit vectors 1_i' and 1_j', E is a part of one larger dot product,

    [q / √k, q Rᵀ_row, q Rᵀ_col] · [k, 1_i', 1_j']            of k + h + w numbers

so that attention without the n² matrix (flash attention) does it, too.

Systems: vit-det
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.attention.shifted_window import cut_windows, join_windows


class MapAttention(nn.Module):
    """softmax(Q Kᵀ / √k) V of all positions of a map: x (b, h, w, d) -> (b, h, w, d)"""

    def __init__(self, width: int, heads: int, bias: bool = True):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1:3]
        q, k, v = self.qkv(x).flatten(1, 2).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = self.mix(q, k, v, height, width)
        return self.out(y.transpose(1, 2).flatten(2).unflatten(1, (height, width)))

    def mix(self, q: Tensor, k: Tensor, v: Tensor, height: int, width: int) -> Tensor:
        """(b, heads, n, k) each -> (b, heads, n, k)"""
        return F.scaled_dot_product_attention(q, k, v)


class DecomposedAttention(MapAttention):
    """The same with relative positions; the tables are made for maps of rows × columns."""

    def __init__(self, width: int, heads: int, rows: int, columns: int, bias: bool = True):
        super().__init__(width, heads, bias)
        self.rows = nn.Parameter(torch.empty(2 * rows - 1, width // heads))
        self.columns = nn.Parameter(torch.empty(2 * columns - 1, width // heads))
        for table in (self.rows, self.columns):
            nn.init.trunc_normal_(table, std=0.02)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, height: int, width: int) -> Tensor:
        by_row, by_column = self.compare(q, height, width)
        row, column = (torch.eye(n, dtype=k.dtype, device=k.device) for n in (height, width))
        place = torch.cat([row.repeat_interleave(width, dim=0), column.repeat(height, 1)], dim=1)
        longer = torch.cat([k, place.expand(*k.shape[:2], -1, -1)], dim=-1)
        asked = torch.cat([q * q.shape[-1] ** -0.5, by_row, by_column], dim=-1)
        return F.scaled_dot_product_attention(asked, longer, v, scale=1.0)

    def compare(self, q: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
        """q · R of every row (b, heads, n, h) and of every column (b, heads, n, w)."""
        grid = q.unflatten(2, (height, width))
        by_row = torch.einsum("bmhwk,hik->bmhwi", grid, spread(self.rows, height))
        by_column = torch.einsum("bmhwk,wjk->bmhwj", grid, spread(self.columns, width))
        return by_row.flatten(2, 3), by_column.flatten(2, 3)


def spread(table: Tensor, n: int) -> Tensor:
    """R_{i − i'} for n positions: (n, n, k)"""
    if len(table) != 2 * n - 1:
        table = F.interpolate(table.T[None], size=2 * n - 1, mode="linear")[0].T
    line = torch.arange(n, device=table.device)
    return table[line[:, None] - line + n - 1]


def attend_in_windows(attn: nn.Module, x: Tensor, size: int) -> Tensor:
    """Attention inside windows of size × size, side by side: x (b, h, w, d) -> (b, h, w, d). A map that windows do not
    tile is filled up with zeros, which take part as keys, as in the released models."""
    height, width = x.shape[1:3]
    below, right = -height % size, -width % size
    x = F.pad(x, (0, 0, 0, right, 0, below))
    y = attn(cut_windows(x, size).unflatten(1, (size, size))).flatten(1, 2)
    return join_windows(y, size, height + below, width + right)[:, :height, :width]
