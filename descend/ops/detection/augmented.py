"""Test-time augmentation: a detector looks at flipped and scaled copies of an image, and its answers are merged.

    flip      x0' = width − x1,  x1' = width − x0                          twice is once
    scale     boxes of an image f times as large are divided by f

    merge     suppression over all copies (`ops/nms.py`), or weighted box fusion: boxes that overlap a fused box by
              IoU > τ join it, the best first;  box = Σ s_i b_i / Σ s_i,  score = mean(s_i) · min(n, copies) / copies

The book names test-time augmentation and no more. Fusion is that of its paper; a box that only some of the copies see
loses score.

Systems: test-time-augmentation
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.ops.boxes import box_iou
from descend.ops.nms import keep_best, pad_best
from descend.ranges import Positive


@dataclass(frozen=True)
class View:
    """One copy of an image: how much larger it is, and whether it is mirrored."""

    scale: Positive = 1.0
    across: bool = False
    """Left and right exchanged."""
    down: bool = False
    """Top and bottom exchanged."""


PLAIN_AND_MIRRORED = (View(), View(across=True))
Merge = Callable[[Boxes, int], Boxes]


def look_again(
    detect: Callable[[Tensor], Boxes], x: Tensor, views: Sequence[View], merge: Merge, stride: int = 1
) -> Boxes:
    """What a detector finds in all copies of images x (b, c, h, w), merged; their sides are multiples of `stride`."""
    if not views:
        raise Mistake("test-time augmentation needs at least one view")
    found = [map_back(detect(show(x, view, stride)), view, x.shape[-2:], stride) for view in views]
    return merge(Boxes(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True))), len(views))


def size_of_view(view: View, size: Sequence[int], stride: int) -> tuple[int, int]:
    """Height and width of a copy: the nearest multiples of the stride."""
    high, wide = (max(1, round(side * view.scale / stride)) * stride if view.scale != 1 else side for side in size)
    return high, wide


def show(x: Tensor, view: View, stride: int = 1) -> Tensor:
    """The copy of images x (b, c, h, w) that a view shows."""
    size = size_of_view(view, x.shape[-2:], stride)
    if size != tuple(x.shape[-2:]):
        x = interpolate(x, size, mode="bilinear", align_corners=False, antialias=True)
    mirrored = [axis for axis, flip in ((-1, view.across), (-2, view.down)) if flip]
    return x.flip(mirrored) if mirrored else x


def map_back(found: Boxes, view: View, size: Sequence[int], stride: int = 1) -> Boxes:
    """Boxes of a copy as boxes of the image of this size (h, w)."""
    high, wide = size_of_view(view, size, stride)
    boxes = found.boxes
    if view.across:
        boxes = flip_across(boxes, wide)
    if view.down:
        boxes = flip_down(boxes, high)
    if (high, wide) != tuple(size):
        boxes = boxes * boxes.new_tensor([size[1] / wide, size[0] / high] * 2)
    return found._replace(boxes=torch.where(found.classes[..., None] >= 0, boxes, found.boxes))


def flip_across(boxes: Tensor, width: float) -> Tensor:
    """Boxes (.., 4) of the image whose left and right are exchanged."""
    x0, y0, x1, y1 = boxes.unbind(-1)
    return torch.stack([width - x1, y0, width - x0, y1], dim=-1)


def flip_down(boxes: Tensor, height: float) -> Tensor:
    """Boxes (.., 4) of the image whose top and bottom are exchanged."""
    x0, y0, x1, y1 = boxes.unbind(-1)
    return torch.stack([x0, height - y1, x1, height - y0], dim=-1)


@dataclass(frozen=True)
class MergeBySuppression:
    """All copies' boxes, of those that overlap by IoU > τ in a class the best."""

    tau: float = 0.6
    most: int = 100

    def __call__(self, found: Boxes, views: int) -> Boxes:
        return keep_best(found.boxes, found.scores, found.classes, self.tau, 0.0, self.most)


@dataclass(frozen=True)
class MergeByFusion:
    """Weighted box fusion."""

    tau: float = 0.55
    most: int = 100

    def __call__(self, found: Boxes, views: int) -> Boxes:
        return fuse_boxes(found, views, self.tau, self.most)


def fuse_boxes(found: Boxes, views: int, tau: float = 0.55, most: int = 100) -> Boxes:
    """Weighted box fusion of boxes (b, n) from so many copies: image by image and class by class, the best first."""
    image, place = ((found.classes >= 0) & (found.scores > 0)).nonzero(as_tuple=True)
    boxes, kinds, scores = (x[image, place] for x in found)
    lane = image * (int(kinds.max()) + 1 if len(kinds) else 1) + kinds
    order = scores.argsort(descending=True, stable=True)
    order = order[lane[order].argsort(stable=True)]
    _, row, counts = lane[order].unique(return_inverse=True, return_counts=True)
    column = torch.arange(len(order), device=row.device) - (counts.cumsum(0) - counts)[row]
    table = boxes.new_zeros(len(counts), int(counts.max()) if len(counts) else 0, 5)
    table[row, column] = torch.cat([boxes, scores[:, None]], dim=-1)[order]
    sums, members = fuse_lanes(table, counts, tau)
    row, column = (members > 0).nonzero(as_tuple=True)
    total, many = sums[row, column], members[row, column]
    score = total[:, 4] / many * many.clamp_max(views) / views
    first = order[counts.cumsum(0) - counts][row]
    best = score.argsort(descending=True, stable=True)
    fused = Boxes((total[:, :4] / total[:, 4:])[best], kinds[first][best], score[best])
    return pad_best(fused, image[first][best], len(found.boxes), most)


def fuse_lanes(table: Tensor, counts: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """The clusters of every lane (l, n): Σ s b and Σ s (l, n, 5), and how many boxes each has (l, n). The first box of
    all lanes, then the second, ..: a box joins the cluster that it overlaps most, or begins one."""
    lanes, n, _ = table.shape
    sums, members, used = torch.zeros_like(table), table.new_zeros(lanes, n), counts.new_zeros(lanes)
    every, places = torch.arange(lanes, device=table.device), torch.arange(n, device=table.device)
    for rank in range(n):
        box, score = table[:, rank, :4], table[:, rank, 4:]
        centre = sums[..., :4] / sums[..., 4:].clamp_min(torch.finfo(sums.dtype).tiny)
        iou = torch.where(places < used[:, None], box_iou(centre, box[:, None]), -1.0)
        best, cluster = iou.max(dim=1)
        here, joins = rank < counts, best > tau
        cluster = torch.where(joins, cluster, used.clamp_max(n - 1))
        add = torch.cat([box * score, score], dim=-1) * here[:, None]
        sums[every, cluster] += add
        members[every, cluster] += here
        used = used + (here & ~joins)
    return sums, members
