"""True and found trajectories of a video, frame by frame: what every score of tracking begins with.

    trajectory   the boxes of one identity over the frames
    S_t          IoU of the true and the found boxes of frame t

Systems: multi-object-tracking
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.boxes import pairwise_iou


class Trajectories(NamedTuple):
    """Boxes of a video, in any order, with the frame and the identity of each."""

    frames: Tensor
    """(n)"""
    ids: Tensor
    """(n)"""
    boxes: Tensor
    """x0, y0, x1, y1 (n, 4)"""


class ComparedFrame(NamedTuple):
    """The objects of a frame, by their places among all identities, and how well they agree."""

    truth: Tensor
    """(n)"""
    found: Tensor
    """(m)"""
    iou: Tensor
    """(n, m)"""


class ComparedVideo(NamedTuple):
    """Frames with at least one box, in order; how many boxes each identity has."""

    frames: list[ComparedFrame]
    truth: Tensor
    """Boxes of each true identity."""
    found: Tensor
    """Boxes of each found identity."""


def compare_trajectories(truth: Trajectories, found: Trajectories) -> ComparedVideo:
    """The two sides of a video, brought together by frame. Coordinates are compared in float64."""
    sides = [number_identities(side, name) for side, name in ((truth, "true"), (found, "found"))]
    times = torch.unique(torch.cat([truth.frames, found.frames]))
    cuts = [torch.searchsorted(side.frames, times, right=True).tolist() for side in sides]
    frames, starts = [], [0, 0]
    for ends in zip(*cuts, strict=True):
        (a, b), (c, d) = ((low, high) for low, high in zip(starts, ends, strict=True))
        iou = pairwise_iou(sides[0].boxes[a:b], sides[1].boxes[c:d])
        frames.append(ComparedFrame(sides[0].ids[a:b], sides[1].ids[c:d], iou))
        starts = list(ends)
    return ComparedVideo(frames, torch.bincount(sides[0].ids), torch.bincount(sides[1].ids))


def number_identities(side: Trajectories, name: str) -> Trajectories:
    """Sorted by frame, identities as 0, 1, ..; an identity is in a frame at most once."""
    _, ids = torch.unique(side.ids, return_inverse=True)
    order = torch.argsort(side.frames, stable=True)
    frames, ids = side.frames[order].contiguous(), ids[order]
    pairs, counts = torch.unique(torch.stack([frames, side.ids[order]], dim=1), dim=0, return_counts=True)
    if (counts > 1).any():
        frame, identity = pairs[counts > 1][0].tolist()
        raise Mistake(f"frame {frame}: the {name} identity {identity} is there more than once; keep one box of it")
    return Trajectories(frames, ids, side.boxes[order].double())
