"""The grid of YOLO: every cell of a map predicts B boxes, each as an offset from its cell and an anchor.

    prediction   p = [t_x, t_y, t_w, t_h, o, c_1 .. c_K]        B (5 + K) numbers of a cell
    centre       b_x = σ(t_x) + j,  b_y = σ(t_y) + i            in cells: the cell is column j, row i
    size         b_w = p_w e^{t_w},  b_h = p_h e^{t_h}          in pixels, as the anchor p is
    pixels       (b_x s, b_y s, b_w, b_h)                       only the centre is scaled by the cell's size s
    inverse      t_x = logit(x/s − j),  t_w = ln(b_w / p_w)
    score        P(object) · P(class k | object)

The centre cannot leave its cell, and a size cannot be negative. Erratum: MF 24.1.2 says that e^t bounds the gradients.
It does not: ∂b_w/∂t_w = b_w grows without bound; only ∂σ/∂t ≤ ¼. YOLOv4 stretches the sigmoid, b_x = a σ(t_x) −
(a − 1)/2 + j, so that a centre on the border of a cell is within reach (`stretch`).

An object belongs to the cell that holds its centre, and there to the anchor whose shape is most like its own: the IoU
of the two with one centre. Of two objects of one cell and anchor the first is learned.

Systems: yolo-box-parameterization, yolo-head-and-grid
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.boxes import to_corners

EDGE = 1e-4
"""How near to the border of its cell a centre may be coded: logit(0) is −∞."""
LARGEST = 8.0
"""t_w and t_h are cut here: e^8 ≈ 2981 anchors are wider than any image."""


class Grid(NamedTuple):
    """The n predictions of an image size, level by level, row by row, and the anchors of a cell side by side."""

    cells: Tensor
    """Column j and row i (n, 2)."""
    anchors: Tensor
    """p_w and p_h in pixels (n, 2)."""
    strides: Tensor
    """s (n)."""


class GridFound(NamedTuple):
    """What a detector with a grid found."""

    t: Tensor
    """t_x, t_y, t_w, t_h (b, n, 4)."""
    objectness: Tensor
    """Logits (b, n)."""
    logits: Tensor
    """Of the classes (b, n, K)."""
    boxes: Tensor
    """x0, y0, x1, y1 in pixels (b, n, 4)."""
    cells: Tensor
    anchors: Tensor
    strides: Tensor

    @property
    def grid(self) -> Grid:
        return Grid(self.cells, self.anchors, self.strides)


def make_cells(sides: Sequence[tuple[int, int]], strides: Sequence[int], anchors: Tensor) -> Grid:
    """Of maps with these heights and widths; anchors (levels, B, 2) in pixels."""
    cells, shapes, steps = [], [], []
    for (height, width), stride, level in zip(sides, strides, anchors, strict=True):
        y, x = torch.arange(height, device=anchors.device), torch.arange(width, device=anchors.device)
        each = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1).flatten(0, 1).to(anchors.dtype)
        cells.append(each.repeat_interleave(len(level), dim=0))
        shapes.append(level.repeat(len(each), 1))
        steps.append(anchors.new_full((len(each) * len(level),), stride))
    return Grid(torch.cat(cells), torch.cat(shapes), torch.cat(steps))


def decode_cells(t: Tensor, grid: Grid, stretch: float | Tensor = 1.0) -> Tensor:
    """t (.., n, 4) -> cx, cy, w, h (.., n, 4) in pixels; `stretch` is a number, or one for each prediction (n, 1)."""
    centre = stretch * t[..., :2].sigmoid() - (stretch - 1) / 2 + grid.cells
    return torch.cat([centre * grid.strides[..., None], grid.anchors * t[..., 2:].clamp_max(LARGEST).exp()], dim=-1)


def encode_cells(boxes: Tensor, grid: Grid) -> Tensor:
    """cx, cy, w, h (.., n, 4) in pixels -> t, for the cell and anchor of each."""
    inside = (boxes[..., :2] / grid.strides[..., None] - grid.cells).clamp(EDGE, 1 - EDGE)
    return torch.cat([inside.logit(), (boxes[..., 2:] / grid.anchors).log()], dim=-1)


def read_maps(
    maps: Sequence[Tensor], anchors: Tensor, strides: Sequence[int], stretch: Sequence[float] = ()
) -> GridFound:
    """Maps (b, B (5 + K), h, w) of each level, anchors (levels, B, 2) in pixels, and how far each level stretches its
    sigmoids -> what they say."""
    per_cell = anchors.shape[1]
    rows = [m.unflatten(1, (per_cell, -1)).permute(0, 3, 4, 1, 2).flatten(1, 3) for m in maps]
    p = torch.cat(rows, dim=1)
    grid = make_cells([(m.shape[2], m.shape[3]) for m in maps], strides, anchors)
    t = p[..., :4]
    wide = [anchors.new_full((r.shape[1], 1), a) for r, a in zip(rows, stretch or (1.0,) * len(rows), strict=True)]
    boxes = to_corners(decode_cells(t.to(grid.anchors.dtype), grid, torch.cat(wide)))
    return GridFound(t, p[..., 4], p[..., 5:], boxes, *grid)


def shape_iou(a: Tensor, b: Tensor) -> Tensor:
    """IoU of sizes w, h (.., 2), which broadcast, with one centre -> (..)"""
    both = torch.minimum(a, b).prod(dim=-1)
    return both / (a.prod(dim=-1) + b.prod(dim=-1) - both).clamp_min(1e-12)


def find_responsible(boxes: Tensor, classes: Tensor, grid: Grid, tau: float = 1.0) -> Tensor:
    """Which predictions learn which objects: the number of the object of each prediction, −1 for none (b, n).

    `boxes` (b, m, 4) are x0, y0, x1, y1, classes (b, m) are −1 for padding. Beside the best anchor of an object, those
    of its cells whose shape IoU with it is above `tau` learn it, too."""
    m = classes.shape[1]
    if not m:
        return classes.new_full((len(classes), len(grid.strides)), -1)
    centre, size = (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]
    home = (centre[:, None] / grid.strides[:, None, None]).floor() == grid.cells[:, None]
    alike = shape_iou(size[:, None], grid.anchors[:, None])
    alike = alike.masked_fill(~(home.all(dim=-1) & (classes >= 0)[:, None]), -1)
    best = torch.zeros_like(alike, dtype=torch.bool).scatter(1, alike.argmax(dim=1, keepdim=True), True)
    learned = ((best & (alike >= 0)) | (alike > tau)).int()
    return torch.where(learned.any(dim=2), learned.argmax(dim=2), -1)


def score_classes(objectness: Tensor, probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """P(object) (b, n) and P(class k | object) (b, n, K) -> the score of the best class, and that class (b, n)."""
    best, classes = probabilities.max(dim=-1)
    return objectness * best, classes
