"""Which true box an anchor learns: the one it overlaps best, if it overlaps it enough.

    o_i = argmax_j IoU(a_i, b_j)        its IoU ≥ high:  object o_i      < low:  background      between:  left out

A true box that no anchor overlaps enough would be learned by none. Two forms of a rescue:
    rescue    (region proposals)  an anchor that is the best of some box, ties included, keeps its own o_i
    claim     (SSD)               the best anchor of each box learns that very box

IoU is (.., n anchors, m boxes). Boxes that only pad a batch have no area and so IoU 0 with all: they are never learned
nor rescued.

Systems: anchor-boxes
"""

from __future__ import annotations

import torch
from torch import Tensor

BACKGROUND, LEFT_OUT = -1, -2


def match_by_threshold(iou: Tensor, high: float, low: float) -> Tensor:
    """The number of each anchor's box, BACKGROUND or LEFT_OUT: (.., n, m) -> (.., n)"""
    if iou.shape[-1] == 0:
        return torch.full(iou.shape[:-1], BACKGROUND, device=iou.device)
    best, box = iou.max(dim=-1)
    box = torch.where(best >= high, box, LEFT_OUT)
    return torch.where(best < low, BACKGROUND, box)


def match_and_rescue(iou: Tensor, high: float, low: float) -> Tensor:
    """The same; an anchor that is the best of some box learns its own best box: (.., n, m) -> (.., n)"""
    found = match_by_threshold(iou, high, low)
    if 0 in iou.shape[-2:]:
        return found
    most = iou.amax(dim=-2, keepdim=True)
    is_best = ((iou == most) & (most > 0)).any(dim=-1)
    return torch.where(is_best, iou.argmax(dim=-1), found)


def match_and_claim(iou: Tensor, high: float, low: float) -> Tensor:
    """The same; the best anchor of each box learns that box: (.., n, m) -> (.., n)

    Of two boxes with the same best anchor, the one that overlaps it more has it."""
    found = match_by_threshold(iou, high, low)
    if 0 in iou.shape[-2:]:
        return found
    most, anchor = iou.max(dim=-2, keepdim=True)
    claims = torch.zeros_like(iou).scatter(-2, anchor, most)
    strength, box = claims.max(dim=-1)
    return torch.where(strength > 0, box, found)
