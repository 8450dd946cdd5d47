"""SimOTA: objects and points are matched by cost, and an object takes as many points as it has good boxes.

    candidates     points inside the object, or within `radius` strides of its centre; the nearest one where none is
    cost           L_class + λ L_IoU, + 10⁵ unless a point is both inside the object and near its centre
                   L_class = BCE of √(σ(o) σ(c)) against the one-hot class,  L_IoU = −ln IoU,  λ = 3
    dynamic k      the sum of the object's ten largest IoUs, rounded down, at least 1
    match          the k cheapest candidates of each object; a point chosen by several goes to the cheapest for it

(Ge et al. 2021, "YOLOX"; MF only names it.) A point learns one object at most. So that every object learns at least at
one point, an object that lost all its points to others takes its cheapest candidate that no other needs; only where
objects outnumber their candidates may one be left without. Nothing carries a gradient.

Systems: yolox-v7-v9
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.ops.boxes import pairwise_iou

FAR = 1e5
FAINT = 1e-8


class Cost(NamedTuple):
    """Of n points for m objects in b images."""

    cost: Tensor
    """(b, n, m); infinite where a point is no candidate."""
    iou: Tensor
    """(b, n, m), 0 where a point is no candidate."""


class Points(NamedTuple):
    """What a detector says at its n points: scores in 0..1 (b, n, K), boxes in pixels (b, n, 4), where they are (n, 2),
    and the stride of each (n)."""

    scores: Tensor
    boxes: Tensor
    points: Tensor
    strides: Tensor


@torch.no_grad()
def assign_sim_ota(
    found: Points, truth: tuple[Tensor, Tensor], radius: float = 2.5, weight: float = 3.0, most: int = 10
) -> tuple[Tensor, Tensor]:
    """The object of each point, −1 for background, and the IoU of its box with it (b, n). `truth`: boxes (b, m, 4) and
    classes (b, m), −1 for padding."""
    b, n = found.scores.shape[:2]
    if not truth[1].shape[1]:
        return truth[1].new_full((b, n), -1), found.boxes.new_zeros(b, n)
    cost, iou = find_costs(found, truth, radius, weight)
    best = iou.topk(min(most, n), dim=1).values.sum(dim=1)
    k = best.floor().clamp_min(1)
    rank = cost.argsort(dim=1).argsort(dim=1)
    chosen = (rank < k[:, None]) & cost.isfinite()
    owner = settle(cost, chosen)
    owner = rescue_lost(cost, owner, truth[1] >= 0)
    own = iou.gather(2, owner.clamp_min(0)[..., None]).squeeze(-1)
    return owner, own * (owner >= 0)


def find_costs(found: Points, truth: tuple[Tensor, Tensor], radius: float, weight: float) -> Cost:
    """What it would cost each point to learn each object."""
    (boxes, classes), points = truth, found.points[:, None]
    inside = torch.cat([points - boxes[:, None, :, :2], boxes[:, None, :, 2:] - points], dim=-1).amin(dim=-1) > 0
    away = (points - (boxes[:, None, :, :2] + boxes[:, None, :, 2:]) / 2).abs().amax(dim=-1)
    near = away < radius * found.strides[:, None]
    nearest = torch.zeros_like(inside).scatter(1, away.argmin(dim=1, keepdim=True), True)
    candidate = inside | near
    candidate = (candidate | (nearest & ~candidate.any(dim=1, keepdim=True))) & (classes >= 0)[:, None]
    iou = pairwise_iou(found.boxes, boxes).masked_fill(~candidate, 0)
    root = found.scores.clamp(FAINT, 1 - FAINT).sqrt()
    no = -(1 - root).clamp_min(FAINT).log()  # the loss of each class where it should be absent
    one_hot = F.one_hot(classes.clamp_min(0), root.shape[-1]).to(root.dtype)
    by_class = no.sum(dim=-1, keepdim=True) + (-root.log() - no) @ one_hot.transpose(1, 2)
    cost = by_class - weight * iou.clamp_min(FAINT).log() + FAR * ~(inside & near)
    return Cost(cost.masked_fill(~candidate, torch.inf), iou)


def settle(cost: Tensor, chosen: Tensor) -> Tensor:
    """The object of each point, the cheapest of those that chose it; −1 for none: (b, n, m) -> (b, n)"""
    price, owner = cost.masked_fill(~chosen, torch.inf).min(dim=2)
    return torch.where(price.isfinite(), owner, -1)


def rescue_lost(cost: Tensor, owner: Tensor, real: Tensor) -> Tensor:
    """Objects without a point take their cheapest candidate that is not some other object's only one (b, n)."""
    m = real.shape[1]
    for _ in range(m):  # one object of each image at a time, and as a rule none
        count = F.one_hot(owner + 1, m + 1)[..., 1:].sum(dim=1)
        lost = real & (count == 0)
        if not lost.any():
            break
        spare = (owner < 0) | (count.gather(1, owner.clamp_min(0)) > 1)
        price = cost.masked_fill(~(spare[..., None] & lost[:, None]), torch.inf).flatten(1)
        least, where = price.min(dim=1)
        image = least.isfinite().nonzero().squeeze(1)
        if not len(image):
            break
        owner = owner.index_put((image, where[image] // m), where[image] % m)
    return owner
