"""Learned positions of an image's patches, brought to another grid.

    E_pos ∈ ℝ^((s + R·C) × d)          s rows for tokens that have no place (class token), then the grid row by row
    E'_pos = [E_special; resize(E_grid, R' × C')]

An image of more pixels has more patches of the same size, so a trained model needs positions in between: each of the d
numbers is an image of R × C that is resized (bicubic, half-pixel centres, as the released models do; the books name no
kind). Rows of special tokens are untouched, and the same grid is the identity.

`similarity` shows what was learned: the cosine of each patch's position with every other, a map of the image for each
patch. Near patches become alike, and rows and columns show, though nothing told the model that the sequence is a grid.

Systems: class-token, vit-pretrain-finetune
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def resize_positions(positions: Tensor, old: tuple[int, int], new: tuple[int, int]) -> Tensor:
    """Positions (1, s + R·C, d) of the grid `old` (R, C) for the grid `new` (R', C'): (1, s + R'·C', d)."""
    special = positions.shape[1] - old[0] * old[1]
    if special < 0:
        raise ValueError(f"{positions.shape[1]} positions are not enough for a grid of {old[0]} x {old[1]}")
    if old == new:
        return positions
    grid = positions[:, special:].unflatten(1, old).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, size=new, mode="bicubic", align_corners=False)
    return torch.cat([positions[:, :special], grid.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)


def similarity(positions: Tensor, grid: tuple[int, int]) -> Tensor:
    """cos(E_i, E_j) of the patches' positions (1, s + R·C, d): (R·C, R, C), a map for each patch i."""
    patches = F.normalize(positions[0, positions.shape[1] - grid[0] * grid[1] :], dim=-1)
    return (patches @ patches.T).unflatten(1, grid)
