"""Task-aligned assignment: an object learns at the points that already tell both its class and its box well.

    t = s^α u^β            s the score of the object's class at a point, u the IoU of the point's box with the object
    candidates             the points inside the object; the nearest one where none is inside
    chosen                 the k candidates with the largest t; a point chosen by several goes to the one of largest u
    t̂ = t / max t · max u  the maxima over the object's chosen points: the best one is asked for its IoU as a score

(Feng et al. 2021, "TOOD", with α = 1, β = 6, k = 13; YOLOv8 takes α = ½, β = 6, k = 10.) Nothing carries a gradient.

Systems: yolo-v8
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.ops.boxes import pairwise_iou

FAINT = 1e-9


class Assigned(NamedTuple):
    """For each of n points of b images."""

    owner: Tensor
    """The number of its object among the image's, −1 for background (b, n)."""
    target: Tensor
    """t̂, 0 for background (b, n)."""

    @property
    def positive(self) -> Tensor:
        """(b, n)"""
        return self.owner >= 0


@torch.no_grad()
def align_tasks(
    found: tuple[Tensor, Tensor, Tensor], truth: tuple[Tensor, Tensor], k: int, alpha: float, beta: float
) -> Assigned:
    """Which object each point learns. `found`: scores (b, n, K) in 0..1, boxes (b, n, 4) and points (n, 2) in pixels;
    `truth`: boxes (b, m, 4) and classes (b, m), −1 for padding."""
    (scores, boxes, points), (true, classes) = found, truth
    if not classes.shape[1]:
        return Assigned(points.new_full(scores.shape[:2], -1).long(), scores.new_zeros(scores.shape[:2]))
    allowed = find_inside(points, true) & (classes >= 0)[:, None]
    u = pairwise_iou(boxes, true)
    s = scores.gather(2, classes.clamp_min(0)[:, None].expand(-1, scores.shape[1], -1))
    t = (s.clamp_min(FAINT) ** alpha * u.clamp_min(FAINT) ** beta).masked_fill(~allowed, -1)
    best = t.topk(min(k, t.shape[1]), dim=1).indices
    chosen = torch.zeros_like(allowed).scatter(1, best, True) & allowed
    owner = u.masked_fill(~chosen, -1).argmax(dim=2)
    chosen &= torch.arange(u.shape[2], device=u.device) == owner[..., None]
    t, u = (x.masked_fill(~chosen, 0) for x in (t, u))
    target = t / t.amax(dim=1, keepdim=True).clamp_min(torch.finfo(t.dtype).tiny) * u.amax(dim=1, keepdim=True)
    return Assigned(torch.where(chosen.any(dim=2), owner, -1), target.amax(dim=2))


def find_inside(points: Tensor, boxes: Tensor) -> Tensor:
    """Which points (n, 2) lie strictly inside which boxes (b, m, 4) -> (b, n, m); of a box without any, the point that
    is nearest to its centre."""
    away = points[:, None] - boxes[:, None, :, :2], boxes[:, None, :, 2:] - points[:, None]
    inside = torch.cat(away, dim=-1).amin(dim=-1) > 0
    centres = (boxes[..., :2] + boxes[..., 2:]) / 2
    nearest = (points[:, None] - centres[:, None]).square().sum(dim=-1).argmin(dim=1, keepdim=True)
    lone = torch.zeros_like(inside).scatter(1, nearest, True) & ~inside.any(dim=1, keepdim=True)
    return inside | lone
