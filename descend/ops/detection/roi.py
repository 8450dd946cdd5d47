"""Regions of interest: each box of an image becomes a grid of fixed size, cut from the shared feature maps.

    RoI pooling   the box, rounded to whole cells, is divided into k × k bins; the maximum of each        (Fast R-CNN)
                  rows of bin i: ⌊i n/k⌋ .. ⌈(i+1) n/k⌉ of the n rows of the box, columns likewise: bins may overlap
    RoIAlign      nothing is rounded: a bin is the mean of s × s points in it, read bilinearly            (Mask R-CNN)
                  x_p = x0 + (p + ½) (x1 − x0) / (k s) − shift,   p = 0 .. k s − 1;   shift ½: cell j is at j, its
                  middle at (j + ½) stride. The first public version had shift 0 and boxes of at least one cell.

DLN names RoI pooling and does not print it: the maximum over a fixed grid is the fill-in, and equals an adaptive
max-pool of the crop. Boxes are in pixels of the input, `scale` = 1 / stride takes them to cells. The original counted
the last cell as inside: its boxes are one cell larger.
The maximum's gradient goes to the cell that has it, a point's to the four cells around it. No loop over regions.

Systems: fast-r-cnn
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake

CELLS = 2**24
"""Numbers that are looked at in one go."""


def roi_pool(maps: Tensor, boxes: Tensor, owner: Tensor, size: int, scale: float) -> Tensor:
    """The largest value in each of size × size bins: maps (b, c, h, w), boxes (r, 4) of images owner (r) ->
    (r, c, size, size). The part of a box outside the map counts as the nearest cell inside."""
    check_regions(maps, boxes, owner)
    b, c, h, w = maps.shape
    flat = maps.permute(0, 2, 3, 1).reshape(b * h * w, c)
    with torch.no_grad():
        rows, columns = find_bins(boxes[:, 1::2] * scale, size, h), find_bins(boxes[:, 0::2] * scale, size, w)
        rows = rows + (owner * h).view(-1, 1, 1)
        at_once = max(1, CELLS // max(1, c * rows[0].numel() * columns[0].numel())) if len(boxes) else 1
        best = [find_largest(flat, i, j, w) for i, j in zip(rows.split(at_once), columns.split(at_once), strict=True)]
        place = torch.cat(best) if best else flat.new_zeros(0, c, dtype=torch.long)
    return flat.gather(0, place).view(len(boxes), size, size, c).permute(0, 3, 1, 2)


def find_bins(ends: Tensor, size: int, cells: int) -> Tensor:
    """The cells of each bin of the regions from ends[:, 0] to ends[:, 1] along one side (r, size, longest); a bin that
    is shorter than the longest repeats its last cell."""
    low, high = ends.round().long().clamp(0, cells).unbind(1)
    low = low.clamp_max(cells - 1)
    n = (high - low).clamp_min(1)[:, None]
    i = torch.arange(size, device=ends.device)
    first, last = i * n // size, -(-(i + 1) * n // size) - 1
    step = torch.arange(int((last - first).max()) + 1 if len(ends) else 1, device=ends.device)
    return low[:, None, None] + torch.minimum(first[..., None] + step, last[..., None])


def find_largest(flat: Tensor, rows: Tensor, columns: Tensor, width: int) -> Tensor:
    """Which row of flat (b h w, c) has the largest value of each bin and channel: rows (r, k, m), columns (r, k, n) ->
    (r k k, c)"""
    cells = rows[:, :, None, :, None] * width + columns[:, None, :, None, :]
    cells = cells.flatten(3).flatten(0, 2)
    return cells.gather(1, flat[cells].argmax(dim=1))


def roi_align(
    maps: Tensor,
    boxes: Tensor,
    owner: Tensor,
    size: int,
    scale: float,
    samples: int = 2,
    shift: float = 0.5,
    least: float = 0.0,
) -> Tensor:
    """The mean of samples × samples points in each of size × size bins: maps (b, c, h, w), boxes (r, 4) of images
    owner (r) -> (r, c, size, size). A point more than a cell outside the map counts as 0. Boxes have at least `least`
    cells a side."""
    level = torch.zeros_like(owner)
    return roi_align_levels([maps], boxes, owner, level, size, [scale], samples, shift, least)


def roi_align_levels(
    maps: Sequence[Tensor],
    boxes: Tensor,
    owner: Tensor,
    level: Tensor,
    size: int,
    scales: Sequence[float],
    samples: int = 2,
    shift: float = 0.5,
    least: float = 0.0,
) -> Tensor:
    """The same with several maps (b, c, h_i, w_i) of scales[i], each region read from the one of its level (r): all
    cells are the rows of one table, and a bin is a weighted sum of 4 samples² of them."""
    check_regions(maps[0], boxes, owner)
    b, c = maps[0].shape[:2]
    sides = torch.tensor([x.shape[2:] for x in maps], device=boxes.device)
    cells = sides.prod(dim=1)
    h, w = sides[level].unbind(1)
    first = (b * (cells.cumsum(0) - cells))[level] + owner * cells[level]
    ends = boxes * boxes.new_tensor(scales)[level, None] - shift
    y, by_y = place_points(ends[:, 1::2], size * samples, h, least)
    x, by_x = place_points(ends[:, 0::2], size * samples, w, least)
    rows = (first[:, None] + y * w[:, None]).view(-1, size, 1, 2 * samples, 1)
    place = rows + x.view(-1, 1, size, 1, 2 * samples)
    weight = by_y.view(-1, size, 1, 2 * samples, 1) * by_x.view(-1, 1, size, 1, 2 * samples) / samples**2
    table = torch.cat([x.permute(0, 2, 3, 1).reshape(-1, c) for x in maps]).to(weight)
    bins = F.embedding_bag(
        place.flatten(3).flatten(0, 2), table, per_sample_weights=weight.flatten(3).flatten(0, 2), mode="sum"
    )
    return bins.view(len(boxes), size, size, c).permute(0, 3, 1, 2).to(maps[0])


def place_points(ends: Tensor, count: int, cells: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Points along one side of regions (r, 2), in cells, of maps with cells (r): the two cells around each point, and
    how much of each it reads (r, 2 count). It reads nothing more than a cell outside."""
    low, length = ends[:, :1], (ends[:, 1:] - ends[:, :1]).clamp_min(least)
    at = low + (torch.arange(count, device=ends.device, dtype=ends.dtype) + 0.5) * length / count
    last = (cells - 1)[:, None]
    inside = (at >= -1) & (at <= cells[:, None])
    at = at.clamp_min(0).minimum(last.to(at))
    before = at.detach().floor()
    share = at - before
    place = torch.stack([before.long(), (before.long() + 1).minimum(last)], dim=-1)
    weight = torch.stack([1 - share, share], dim=-1) * inside[..., None]
    return place.flatten(1), weight.flatten(1)


def check_regions(maps: Tensor, boxes: Tensor, owner: Tensor) -> None:
    """Boxes (r, 4), each of an image that is there."""
    if boxes.ndim != 2 or boxes.shape[1] != 4 or owner.shape != boxes.shape[:1]:
        raise ValueError(f"regions {tuple(boxes.shape)} of images {tuple(owner.shape)}: give boxes (r, 4), owners (r)")
    if len(owner) and not 0 <= int(owner.min()) <= int(owner.max()) < len(maps):
        raise Mistake(f"a region is of image {int(owner.max())}, but there are {len(maps)} images, counted from 0")
