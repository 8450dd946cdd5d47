"""Which patches are hidden when an image model learns to fill them in: blocks, not single patches (BEiT).

    while fewer than share · N patches are hidden:
        s ~ U(smallest, what is left),   r ~ log-uniform in 0.3 .. 1/0.3
        hide a block of √(s r) rows and √(s / r) columns, anywhere

A single hidden patch could be guessed from its neighbours. The random numbers are given, so that the mask of an image
is a function of them. Blocks overlap, and their sides are rounded, so the share is met to within about a block's edge.
MF names the masking only; share 0.4 and the ratios are the paper's, smallest 16 is its number for 14 × 14 patches.

Systems: beit
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

FLATTEST = 0.3


def block_mask(u: Tensor, grid: tuple[int, int], share: float = 0.4, smallest: int = 16) -> Tensor:
    """hide (b, N), true where a patch of the grid is hidden; u (b, k, 4) in 0..1, for at most k blocks."""
    rows, columns = grid
    if not 0 < share < 1 or share * rows * columns < 1:
        raise ValueError(
            f"a share of {share} of {rows} x {columns} patches: it is between 0 and 1, and at least a patch"
        )
    hide = torch.zeros(len(u), rows, columns, dtype=torch.bool, device=u.device)
    row, column = torch.arange(rows, device=u.device)[:, None], torch.arange(columns, device=u.device)
    for size, ratio, down, right in u.permute(1, 2, 0):
        rest = share * rows * columns - hide.sum(dim=(1, 2))
        s = smallest + size * (rest - smallest).clamp(min=0)
        r = torch.exp((1 - 2 * ratio) * math.log(FLATTEST))
        height = (s * r).sqrt().round().clamp(1, rows)
        width = (s / r).sqrt().round().clamp(1, columns)
        top, left = (down * (rows - height + 1)).floor(), (right * (columns - width + 1)).floor()
        top, left, height, width = (x[:, None, None] for x in (top, left, height, width))
        block = (row >= top) & (row < top + height) & (column >= left) & (column < left + width)
        hide |= block & (rest >= 1)[:, None, None]
    return hide.flatten(1)
