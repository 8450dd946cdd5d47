"""Transformer layers for set prediction: queries that look at an image and at each other.

    attention       Q = (x + p) W_q,   K = (s + p_s) W_k,   V = s W_v        a place p goes into queries and keys only
    encoder layer   x ← norm(x + attention(x, x))         x ← norm(x + mlp(x))
    decoder layer   y ← norm(y + attention(y, y))         y ← norm(y + attention(y, image))       y ← norm(y + mlp(y))

Places of a map with R rows and C columns, in the original and in the text (MF 25.2.2, 28.2.3):

    sine      p_ij = [sinusoid(2π i/R); sinusoid(2π j/C)]   i, j from 1: half the numbers for rows, half for columns
    learned   p_ij = [column_j; row_i]                      50 of each at most
    index     p = sinusoid(index in the flattened map)      added once, to the tokens themselves

The queries of the original are places, of contents that start at 0; those of the text are the contents. The text
divides scores by √256, the whole width: that is one head; with 8 heads the divisor is √32. Permuting queries permutes
outputs; permuting tokens with their places changes nothing.

Systems: detr
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.attention.multi_head import attend
from descend.nn.mlp import MLP
from descend.ops.attention.positions import sinusoidal

LONGEST = 50
"""Rows and columns that learned places have."""


class Places(Protocol):
    """Where tokens and queries are told their places."""

    def place_tokens(self, tokens: Tensor, grid: tuple[int, int], real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Tokens (b, h·w, d) of a grid, `real` (b, h, w) where not padding -> tokens, and places (.., h·w, d)."""
        ...

    def place_queries(self, queries: Tensor, batch: int) -> tuple[Tensor, Tensor | None]:
        """Queries (n, d) -> contents (b, n, d), and places (.., n, d)."""
        ...


class SinePlaces(nn.Module):
    """[sinusoid of the row; sinusoid of the column], both from 0 to 2π over the part of the map that is real.

    A pixel's place is its far end, as in DETR, or `back` pixels before it: ½ is its middle, as in Deformable DETR.
    """

    def __init__(self, width: int, back: float = 0.0):
        super().__init__()
        if width % 4:
            raise ValueError(f"width {width}: rows and columns get half of it each, in pairs; give a multiple of 4")
        self.width, self.back = width, back

    def place_tokens(self, tokens: Tensor, grid: tuple[int, int], real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        height, width = grid
        if real is None:
            rows = torch.arange(1, height + 1, device=tokens.device)[None, :, None]
            columns = torch.arange(1, width + 1, device=tokens.device)[None, None, :]
        else:
            rows, columns = real.cumsum(1), real.cumsum(2)
        shares = (rows - self.back) / (rows[:, -1:] + 1e-6), (columns - self.back) / (columns[:, :, -1:] + 1e-6)
        parts = [self.encode(share) for share in shares]
        size = (*torch.broadcast_shapes(rows.shape, columns.shape), self.width // 2)
        places = torch.cat([part.expand(size) for part in parts], dim=-1)
        return tokens, places.flatten(1, 2).to(tokens.dtype)

    def encode(self, share: Tensor) -> Tensor:
        """Of shares 0..1 (..) -> (.., d/2)"""
        return sinusoidal(2 * math.pi * share, self.width // 2)

    def place_queries(self, queries: Tensor, batch: int) -> tuple[Tensor, Tensor | None]:
        return queries.new_zeros(batch, *queries.shape), queries


class LearnedPlaces(nn.Module):
    """[vector of the column; vector of the row]"""

    def __init__(self, width: int):
        super().__init__()
        self.rows = nn.Embedding(LONGEST, width // 2)
        self.columns = nn.Embedding(LONGEST, width // 2)
        nn.init.uniform_(self.rows.weight)
        nn.init.uniform_(self.columns.weight)

    def place_tokens(self, tokens: Tensor, grid: tuple[int, int], real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        height, width = grid
        if max(grid) > LONGEST:
            raise Mistake(f"a map of {height}×{width} has more than the {LONGEST} learned places; give smaller images")
        size = (height, width, -1)
        parts = self.columns.weight[None, :width].expand(size), self.rows.weight[:height, None].expand(size)
        return tokens, torch.cat(parts, dim=-1).flatten(0, 1)[None]

    def place_queries(self, queries: Tensor, batch: int) -> tuple[Tensor, Tensor | None]:
        return queries.new_zeros(batch, *queries.shape), queries


class IndexPlaces(nn.Module):
    """The text's: tokens + sinusoid(index), and queries as they are."""

    def place_tokens(self, tokens: Tensor, grid: tuple[int, int], real: Tensor | None) -> tuple[Tensor, Tensor | None]:
        index = torch.arange(tokens.shape[1], device=tokens.device)
        return tokens + sinusoidal(index, tokens.shape[2]).to(tokens.dtype), None

    def place_queries(self, queries: Tensor, batch: int) -> tuple[Tensor, Tensor | None]:
        return queries.expand(batch, *queries.shape), None


def add_place(x: Tensor, place: Tensor | None) -> Tensor:
    return x if place is None else x + place


class PlacedAttention(nn.Module):
    """Attention whose queries and keys know their places and whose values do not."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        self.heads, self.dropout = heads, dropout
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (b, n, d) and keys (b, s, d) with their places, values (b, s, d) without; `mask` as in `attend`."""
        q, k, v = self.q(x), self.k(keys), self.v(values)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in (q, k, v))
        return self.out(attend(q, k, v, mask=mask, dropout=self.dropout if self.training else 0.0).flatten(-2))


class SetEncoderLayer(nn.Module):
    """Post-norm: tokens (b, s, d) with places -> (b, s, d)"""

    def __init__(self, attn: PlacedAttention, mlp: MLP, width: int, dropout: float = 0.0, eps: float = 1e-5):
        super().__init__()
        self.attn, self.norm_1 = attn, nn.LayerNorm(width, eps)
        self.mlp, self.norm_2 = mlp, nn.LayerNorm(width, eps)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, place: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        placed = add_place(x, place)
        x = self.norm_1(x + self.drop(self.attn(placed, placed, x, mask)))
        return self.norm_2(x + self.drop(self.mlp(x)))


class SetDecoderLayer(nn.Module):
    """Post-norm: queries (b, n, d) with places look at each other, then at the image (b, s, d)."""

    def __init__(self, attn: PlacedAttention, cross: PlacedAttention, mlp: MLP, width: int, dropout: float = 0.0):
        super().__init__()
        self.attn, self.norm_1 = attn, nn.LayerNorm(width)
        self.cross, self.norm_2 = cross, nn.LayerNorm(width)
        self.mlp, self.norm_3 = mlp, nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)

    def forward(
        self, y: Tensor, place: Tensor | None, keys: Tensor, values: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """`keys` are the image's tokens with their places, `values` without; `mask` hides padding of the image."""
        placed = add_place(y, place)
        y = self.norm_1(y + self.drop(self.attn(placed, placed, y)))
        y = self.norm_2(y + self.drop(self.cross(add_place(y, place), keys, values, mask)))
        return self.norm_3(y + self.drop(self.mlp(y)))


class ReluLayers(nn.Module):
    """W_L ReLU(.. ReLU(W_1 x + b_1) ..) + b_L: the head of the boxes."""

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            x = F.relu(layer(x))
        y: Tensor = last(x)
        return y


def shrink_mask(real: Tensor | None, grid: tuple[int, int]) -> Tensor | None:
    """Which places of a map are real, from the pixels (b, h, w) that are: the nearest pixel decides."""
    if real is None:
        return None
    return F.interpolate(real[:, None].float(), size=grid)[:, 0].bool()


def start_transformer(module: nn.Module) -> None:
    """Xavier's uniform weights for every matrix, as the original starts its transformer."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
