"""Relative position bias of a grid of patches behind a class token (BEiT).

    S_ij = q_iᵀ k_j / √d_k + B_ij
    B_ij = β[y_i − y_j, x_i − x_j]                     two patches: (2R − 1)² numbers per head for R × R patches
    B_0j = β_from,  B_i0 = β_to,  B_00 = β_self        the class token has no place: three numbers more

It is the bias of Swin's windows (`descend.nn.attention.shifted_window`) with the whole image as the window.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.attention.shifted_window import offset_index


@lru_cache(maxsize=8)
def grid_index(rows: int, device: torch.device) -> Tensor:
    """Where the table has each pair's number: (1 + R², 1 + R²); the last three are of the class token."""
    n = (2 * rows - 1) ** 2
    index = F.pad(offset_index(rows, rows, device), (1, 0, 1, 0))
    index[0], index[:, 0], index[0, 0] = n, n + 1, n + 2
    return index


class GridBias(nn.Module):
    """B (1, h, 1 + R², 1 + R²), from a table that starts at 0."""

    def __init__(self, heads: int, rows: int):
        super().__init__()
        self.rows = rows
        self.table = nn.Parameter(torch.zeros((2 * rows - 1) ** 2 + 3, heads))

    def forward(self) -> Tensor:
        found = F.embedding(grid_index(self.rows, self.table.device), self.table)
        return found.permute(2, 0, 1)[None]
