"""Deformable attention's sum: values read at a few points between the pixels of several maps.

    y_q = Σ_l Σ_p A_qlp · V_l(x_qlp)            A ≥ 0, Σ_lp A_qlp = 1, for each head

V_l(x) is read between the four pixels around x, each weighed by its nearness (bilinear); beyond the map there are
zeros. A place 0..1 is a share of the map's side: the centre of pixel j of W is at (j + ½) / W. `sample_nearest` reads
the one pixel with the index ⌊x W + ½⌋, as RT-DETR v2's discrete form does, which has no gradient for the places.

Systems: rt-detr
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Grids = Sequence[tuple[int, int]]
"""Rows and columns of each map."""


def sample_bilinear(values: Tensor, grids: Grids, places: Tensor, weights: Tensor) -> Tensor:
    """Values (b, L, h, k) of maps end to end, places (b, n, h, levels, p, 2) as x, y, weights (b, n, h, levels, p)
    -> (b, n, h·k)"""
    b, _, h, k = values.shape
    maps = values.permute(0, 2, 3, 1).split([rows * columns for rows, columns in grids], dim=-1)
    at = (2 * places - 1).permute(0, 2, 3, 1, 4, 5).flatten(0, 1)  # (b·h, levels, n, p, 2)
    a = weights.permute(0, 2, 3, 1, 4).flatten(0, 1)[:, :, None]  # (b·h, levels, 1, n, p)
    parts = [
        F.grid_sample(one.reshape(b * h, k, *grid), at[:, level], padding_mode="zeros", align_corners=False)
        for level, (one, grid) in enumerate(zip(maps, grids, strict=True))
    ]
    found = torch.cat(parts, dim=-1) * torch.cat(a.unbind(1), dim=-1)  # (b·h, k, n, levels·p)
    return found.sum(-1).unflatten(0, (b, h)).flatten(1, 2).mT


def sample_nearest(values: Tensor, grids: Grids, places: Tensor, weights: Tensor) -> Tensor:
    """The same with the value of one pixel for each point; a place beyond the map is moved to its edge."""
    b, length, h, k = values.shape
    sizes = torch.tensor([(columns, rows) for rows, columns in grids], device=values.device)
    starts = torch.cat([sizes.new_zeros(1), sizes.prod(1).cumsum(0)[:-1]])
    at = (places * sizes[:, None] + 0.5).long().clamp_min(0).minimum(sizes[:, None] - 1)  # (b, n, h, levels, p, 2)
    row = at[..., 1] * sizes[:, :1] + at[..., 0] + starts[:, None]
    index = (row + length * torch.arange(b, device=row.device).view(-1, 1, 1, 1, 1)) * h
    index = index + torch.arange(h, device=row.device)[:, None, None]
    found = values.reshape(-1, k)[index] * weights[..., None]
    return found.sum((3, 4)).flatten(2)
