"""Contrastive denoising: noisy true objects as queries, to be repaired or refused (Zhang et al. 2022, DINO).

    positive   corners moved by up to ½ of the sides              -> the object itself
    negative   corners moved by ½ to 1 of the sides               -> nothing
    class      another one with probability ¼                     both kinds

In each of G groups every object has one query of each kind. A query sees its own group and the ordinary queries; these
see no denoising query, so nothing leaks. No matching is needed: who belongs to whom is known. The published form makes
as many groups as fit into 100 queries for the fullest image of a batch; here their number is fixed, so that a loss does
not depend on the other images of a step. All random numbers come with the batch: an object has the same ones wherever
it stands, and more than a batch brings are reused.

Systems: rt-detr
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.losses.detection.set_matching import Pairs, Targets
from descend.ops.boxes import to_centre, to_corners

EACH = 10
"""Random numbers of a query: four signs, four sizes, whether its class changes, and to which."""


class Noisy(NamedTuple):
    """Queries (b, q), q = groups · 2 · m: group by group, positive ones first."""

    classes: Tensor
    """K for padding."""
    boxes: Tensor
    """cx, cy, w, h in shares (b, q, 4)."""
    seen: Tensor
    """Who may look at whom (b, q, q)."""
    positive: Tensor
    """(b, q)"""


def add_noise(y: Targets, u: Tensor, groups: int, classes: int, flip: float = 0.25, move: float = 1.0) -> Noisy:
    """Noisy copies of true objects (b, m); u (b, anything) in 0..1; a class changes with probability `flip`, `move`
    scales the corners' noise."""
    m = y.classes.shape[1]
    u = draw_numbers(u, groups, m)  # (b, groups, 2, m, 10)
    negative = torch.tensor([0.0, 1.0], device=u.device)[:, None, None]
    sign = (u[..., :4] < 0.5).to(u.dtype) * 2 - 1
    amount = (u[..., 4:8] + negative) * sign * move
    half = (y.boxes[..., 2:] / 2).repeat(1, 1, 2)[:, None, None]
    corners = to_corners(y.boxes)[:, None, None] + amount * half
    real = (y.classes >= 0)[:, None, None].expand(-1, groups, 2, -1)
    other = (u[..., 9] * classes).long().clamp_max(classes - 1)
    named = torch.where(u[..., 8] < flip, other, y.classes[:, None, None]).where(real, classes)
    group = torch.arange(groups, device=u.device).repeat_interleave(2 * m)
    seen = (group[:, None] == group) & real.flatten(1)[:, None, :]
    return Noisy(
        named.flatten(1),
        to_centre(corners.clamp(0, 1)).flatten(1, 3),
        seen,
        (real & (negative[..., 0] == 0)).flatten(1),
    )


def draw_numbers(u: Tensor, groups: int, m: int) -> Tensor:
    """(b, groups, 2, m, 10) of u (b, any): those of an object do not depend on how many others there are."""
    objects = torch.arange(m, device=u.device)[:, None] * (groups * 2 * EACH)
    copies = torch.arange(groups * 2, device=u.device).view(groups, 2, 1, 1) * EACH
    index = (objects + copies + torch.arange(EACH, device=u.device)) % u.shape[1]
    return u[:, index]


def pair_noisy(noisy: Noisy, m: int, layers: int) -> Pairs:
    """The positive queries of all layers with their objects."""
    image, query = noisy.positive.nonzero(as_tuple=True)
    layer = torch.arange(layers, device=image.device).repeat_interleave(len(image))
    return Pairs(layer, image.repeat(layers), query.repeat(layers), (query % m).repeat(layers))
