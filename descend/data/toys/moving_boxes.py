"""Boxes that move through a frame, bounce off its sides and cross each other, and what a poor detector sees of them.

    centre(t) = fold(a + v t)             fold: a ball between two walls
    detection = box + noise               with probability 1 − missed; a share of them is weak
    false     k ~ Poisson(rate) boxes anywhere in a frame

The truth is exact, so tracking can be scored without a detector.

Systems: multi-object-tracking
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from descend.metrics.tracking.sequence import Trajectories
from descend.ops.boxes import to_centre, to_corners
from descend.ranges import Count, Fraction, NonNegative, Positive, Share, Side


@dataclass(frozen=True)
class MovingBoxes:
    """A video without pixels, and how poorly it is seen."""

    frames: Count = 150
    objects: Count = 6
    width: Side = 640
    height: Side = 480
    smallest: Positive = 40.0
    """Pixels of a side."""
    largest: Positive = 90.0
    speed: NonNegative = 6.0
    """Pixels in a frame, at most, along each axis."""
    noise: NonNegative = 0.03
    """Deviation of a detected side, as a share of the box's size."""
    missed: Fraction = 0.05
    weak: Share = 0.1
    """Detections whose score is below ½."""
    false: NonNegative = 0.3
    """False detections in a frame, on average."""


class Detections(NamedTuple):
    """What is seen of a video."""

    frames: Tensor
    """1, 2, .. (n)"""
    boxes: Tensor
    """x0, y0, x1, y1 (n, 4)"""
    scores: Tensor
    """(n)"""


def move_boxes(video: MovingBoxes, random: torch.Generator) -> Trajectories:
    """The truth: every object is in every frame, 1, 2, .., and wholly inside it."""
    n, t = video.objects, torch.arange(video.frames, dtype=torch.float64)
    draw = lambda *shape: torch.rand(*shape, generator=random, dtype=torch.float64)
    size = video.smallest + (video.largest - video.smallest) * draw(n, 2)
    room = (torch.tensor([video.width, video.height]) - size).clamp_min(1)
    low = fold(draw(n, 1, 2) * room[:, None] + video.speed * (2 * draw(n, 1, 2) - 1) * t[:, None], room[:, None])
    boxes = torch.cat([low, low + size[:, None]], dim=-1)  # (n, t, 4)
    ids = torch.arange(1, n + 1)[:, None].expand(n, len(t))
    return Trajectories((t.long() + 1).expand(n, -1).flatten(), ids.flatten(), boxes.flatten(0, 1))


def fold(x: Tensor, room: Tensor) -> Tensor:
    """A free path as one between walls at 0 and `room`."""
    x = x.remainder(2 * room)
    return torch.minimum(x, 2 * room - x)


def see_boxes(video: MovingBoxes, truth: Trajectories, random: torch.Generator) -> Detections:
    """Noise, misses, weak scores and false detections, in the order of the frames."""
    draw = lambda *shape: torch.rand(*shape, generator=random, dtype=torch.float64)
    n = len(truth.boxes)
    size = to_centre(truth.boxes)[:, 2:].prod(dim=1, keepdim=True).sqrt()
    shaken = truth.boxes + video.noise * size * torch.randn(n, 4, generator=random, dtype=torch.float64)
    scores = torch.where(draw(n) < video.weak, 0.15 + 0.35 * draw(n), 0.5 + 0.5 * draw(n))
    seen = draw(n) >= video.missed
    counts = torch.poisson(torch.full((video.frames,), video.false), generator=random).long()
    frames = torch.repeat_interleave(torch.arange(1, video.frames + 1), counts)
    k = len(frames)
    sides = video.smallest + (video.largest - video.smallest) * draw(k, 2)
    centre = draw(k, 2) * torch.tensor([video.width, video.height])
    invented = to_corners(torch.cat([centre, sides], dim=1))
    frames = torch.cat([truth.frames[seen], frames])
    order = torch.argsort(frames, stable=True)
    boxes, told = torch.cat([shaken[seen], invented]), torch.cat([scores[seen], 0.1 + 0.6 * draw(k)])
    return Detections(frames[order], boxes[order], told[order])
