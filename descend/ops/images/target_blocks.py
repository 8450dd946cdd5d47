"""The places of I-JEPA: blocks of patches to be predicted, and the patches that they are predicted from.

    targets    M blocks of h × w patches, anywhere on the grid, also over each other          (b, M, h w)
    context    K of the patches that are in no target, drawn at random                        (b, K)

Every image has equally many of both, however its blocks lie, so that batches can be stacked and cut: K is at most
N − M h w, what is left when no two blocks overlap. The paper draws the shape of the blocks for each batch and cuts the
context to the smallest of the batch.

Systems: jepa
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake


def place_blocks(u: Tensor, grid: tuple[int, int], block: tuple[int, int]) -> Tensor:
    """Random numbers u (b, M, 2) in 0..1 -> the patches of M blocks (b, M, h w), numbered row by row."""
    free = [edge - part + 1 for edge, part in zip(grid, block, strict=True)]
    if min(free) < 1 or min(block) < 1:
        raise Mistake(f"blocks of {block[0]}×{block[1]} patches do not fit into {grid[0]}×{grid[1]}")
    size = torch.tensor(free)
    corner = (u * size).long().minimum(size - 1)
    rows, columns = torch.arange(block[0]), torch.arange(block[1])
    inside = (rows[:, None] * grid[1] + columns).flatten()
    return (corner[..., 0] * grid[1] + corner[..., 1])[..., None] + inside


def choose_context(u: Tensor, targets: Tensor, count: int) -> Tensor:
    """Random numbers u (b, N) and targets (b, M, n) -> `count` other patches (b, count), in rising order."""
    taken = torch.zeros_like(u, dtype=torch.bool).scatter_(1, targets.flatten(1), True)
    if count < 1 or int((~taken).sum(1).min()) < count:
        raise Mistake(f"a context of {count} patches: only {int((~taken).sum(1).min())} are outside the targets")
    return u.masked_fill(taken, torch.inf).argsort(dim=1)[:, :count].sort(dim=1).values
