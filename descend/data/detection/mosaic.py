"""Mosaic: four images make one, so that a batch shows four times as many scenes, and objects cut by edges.

    plane (2h × 2w)     | 0  1 |     four images of h × w side by side; boxes move with theirs by (0, 0), (w, 0), (0, h)
                        | 2  3 |     and (w, h)
    image (h × w)       the window of the plane in which the corner where all four meet lies at `centre`; boxes are
                        clipped to it

The book names it ("four images combined into one training image"); the layout is the original's: a random centre, and
about it the lower right part of image 0, the lower left of 1, the upper right of 2, the upper left of 3.

Systems: mosaic-augmentation
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.boxes import area, clip_boxes

NEAR = 0.25  # the centre stays this share of the side away from the edges


def mosaic(x: Tensor, boxes: Tensor, which: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
    """Images (b, 4, c, h, w), the boxes (k, 4) of the images `which` (k; 4 i + quadrant), and whole centres x, y (b, 2)
    -> the mosaics (b, c, h, w), and the boxes in them, clipped; one that is not seen has no area."""
    b, _, _, h, w = x.shape
    plane = join_four(x)
    left, top = w - centre[:, 0], h - centre[:, 1]
    rows, columns = top[:, None] + torch.arange(h), left[:, None] + torch.arange(w)
    images = plane[torch.arange(b)[:, None, None], :, rows[:, :, None], columns[:, None, :]].movedim(3, 1)
    moved = move_to_plane(boxes, which % 4, h, w) - torch.stack([left, top], 1).repeat(1, 2)[which // 4]
    return images, clip_boxes(moved, w, h)


def join_four(x: Tensor) -> Tensor:
    """Four images each (b, 4, c, h, w) -> one plane (b, c, 2h, 2w)."""
    b, _, c, h, w = x.shape
    return x.view(b, 2, 2, c, h, w).permute(0, 3, 1, 4, 2, 5).reshape(b, c, 2 * h, 2 * w)


def move_to_plane(boxes: Tensor, quadrant: Tensor, height: int, width: int) -> Tensor:
    """Boxes (k, 4) of the images in these quadrants 0..3 (k), in pixels of the plane."""
    corner = torch.stack([quadrant % 2 * width, quadrant // 2 * height], dim=1)
    return boxes + corner.repeat(1, 2)


def find_visible(before: Tensor, after: Tensor, share: float, side: float) -> Tensor:
    """Which boxes (k, 4) still show at least this share of themselves after they were clipped, and have these sides."""
    seen = area(after) >= share * area(before).clamp_min(1e-12)
    return seen & ((after[:, 2:] - after[:, :2]) >= side).all(dim=1)
