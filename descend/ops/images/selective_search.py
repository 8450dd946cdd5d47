"""Selective Search: boxes that may hold an object, from segments that are joined until the image is one.

    start     segments of the image (`segments.py`)
    repeat    join the two neighbours that are most alike; note the box of the new segment
    alike     s = s_colour + s_texture + s_size + s_fill, each in 0..1
              s_colour = Σ_k min(c_k^a, c_k^b)        histograms of each channel, 25 bins, normalised together
              s_texture = Σ_k min(t_k^a, t_k^b)       of derivatives in 8 directions, 10 bins a channel
              s_size = 1 − (|a| + |b|) / |image|      small segments first
              s_fill = 1 − (|box(a, b)| − |a| − |b|) / |image|        those that fit into each other
    the histograms of a union are the means of its parts' by size: nothing is read from the pixels again

The book only names it (about 2000 boxes an image). The fill-in is the paper's (Uijlings et al. 2013): several searches,
by colour space and by k, together, the largest segments first, without boxes that were there before. A search of n
segments joins n − 1 times; each join looks at all neighbours at once.

Systems: selective-search
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from descend.ops.images.segments import segment_image
from descend.ranges import Count, NonNegative, Positive

COLOUR_BINS, TEXTURE_BINS, DIRECTIONS = 25, 10, 8


@dataclass(frozen=True)
class SearchRule:
    """How many searches, and from which segments they start."""

    scales: tuple[Positive, ...] = (50.0, 100.0, 150.0, 300.0)
    """k of the segmentation; each is a search in every colour space."""
    sigma: NonNegative = 0.8
    """Of the smoothing."""
    least: Count = 20
    """Pixels of a segment."""
    side: Count = 4
    """Pixels of a box's shorter side, at least."""
    most: Count = 2000
    """Boxes of an image."""


@torch.no_grad()
def search_regions(x: Tensor, rule: SearchRule | None = None) -> Tensor:
    """Boxes x0, y0, x1, y1 in pixels (r, 4), the largest segments first, of an image (c, h, w) with values in 0..1."""
    rule = rule or SearchRule()
    found = []
    for space in (x, to_grey_and_opponents(x)) if len(x) == 3 else (x,):
        for scale in rule.scales:
            segments = segment_image(space, scale, rule.sigma, rule.least)
            found.append(Grouping(space, segments).run().flip(0))
    rank = torch.cat([torch.arange(len(boxes)) for boxes in found])
    boxes = torch.cat(found)[rank.argsort(stable=True)]
    boxes = boxes[(boxes[:, 2:] - boxes[:, :2]).amin(dim=1) >= rule.side]
    return drop_repeats(boxes)[: rule.most].float()


def drop_repeats(boxes: Tensor) -> Tensor:
    """Each box (r, 4) where it is first."""
    kinds, number = boxes.unique(dim=0, return_inverse=True)
    first = torch.full((len(kinds),), len(boxes)).scatter_reduce(0, number, torch.arange(len(boxes)), "amin")
    return boxes[first.sort().values]


def to_grey_and_opponents(x: Tensor) -> Tensor:
    """Brightness, red against green, and blue against yellow, in 0..1: shadows change the first one alone."""
    r, g, b = x
    return torch.stack([(r + g + b) / 3, (r - g) / 2 + 0.5, (r + g - 2 * b) / 4 + 0.5])


class Grouping:
    """Segments (n, then one more for each join) with their sizes, boxes and histograms."""

    def __init__(self, x: Tensor, segments: Tensor):
        self.count = n = int(segments.max()) + 1
        self.pixels = segments.numel()
        owner = segments.flatten()
        self.size = torch.cat([torch.bincount(owner, minlength=n), torch.zeros(n - 1)]).double()
        self.box = torch.cat([bound(segments, n), torch.zeros(n - 1, 4, dtype=torch.long)])
        colour = histograms(x.flatten(1), owner, n, COLOUR_BINS, 0.0, 1.0)
        texture = histograms(derivatives(x).flatten(1), owner, n, TEXTURE_BINS, -0.5, 0.5)
        look = torch.cat([colour, texture], dim=1)
        self.look = torch.cat([look, torch.zeros(n - 1, look.shape[1])])
        self.alike = torch.full((2 * n - 1, 2 * n - 1), -math.inf, dtype=torch.float64)
        pairs = neighbours(segments, n).nonzero(as_tuple=True)
        self.alike[pairs] = self.compare(*pairs)
        self.best = self.alike.amax(dim=1)  # of each row, so that a join looks at the rows that it changes

    def compare(self, i: Tensor | int, js: Tensor) -> Tensor:
        """How much segment i is like the segments js; or segments i (m), one by one."""
        look = torch.minimum(self.look[i], self.look[js]).sum(dim=1).double()
        size = self.size[i] + self.size[js]
        low, high = torch.minimum(self.box[i, :2], self.box[js, :2]), torch.maximum(self.box[i, 2:], self.box[js, 2:])
        hull = (high - low).prod(dim=1)
        return look + (1 - size / self.pixels) + (1 - (hull - size) / self.pixels)

    def run(self) -> Tensor:
        """Join until there is one; the boxes of all segments in the order they came (2n − 1, 4)."""
        for new in range(self.count, 2 * self.count - 1):
            i = int(self.best.argmax())
            self.join(i, int(self.alike[i].argmax()), new)
        return self.box

    def join(self, i: int, j: int, new: int) -> None:
        """Segments i and j become the segment `new`."""
        near = torch.isfinite(self.alike[i]) | torch.isfinite(self.alike[j])
        near[[i, j]] = False
        a, b = self.size[i], self.size[j]
        self.size[new] = a + b
        self.box[new, :2] = torch.minimum(self.box[i, :2], self.box[j, :2])
        self.box[new, 2:] = torch.maximum(self.box[i, 2:], self.box[j, 2:])
        self.look[new] = (a * self.look[i] + b * self.look[j]) / (a + b)
        for gone in (i, j):
            self.alike[gone], self.alike[:, gone], self.best[gone] = -math.inf, -math.inf, -math.inf
        js = near.nonzero()[:, 0]
        self.alike[new, js] = self.alike[js, new] = self.compare(new, js)
        self.best[js], self.best[new] = self.alike[js].amax(dim=1), self.alike[new].max()


def bound(segments: Tensor, n: int) -> Tensor:
    """The box of each segment (n, 4), its last pixel included."""
    h, w = segments.shape
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    owner = segments.flatten()
    low = [torch.full((n,), h + w).scatter_reduce(0, owner, v.flatten(), "amin") for v in (x, y)]
    high = [torch.zeros(n, dtype=torch.long).scatter_reduce(0, owner, v.flatten() + 1, "amax") for v in (x, y)]
    return torch.stack([*low, *high], dim=1)


def histograms(values: Tensor, owner: Tensor, n: int, bins: int, low: float, high: float) -> Tensor:
    """Of each channel (c, pixels) in every segment, with a sum of 1 over all channels: (n, c · bins)"""
    place = ((values - low) / (high - low) * bins).long().clamp(0, bins - 1)
    flat = owner * len(values) * bins + torch.arange(len(values))[:, None] * bins + place
    counts = torch.bincount(flat.flatten(), minlength=n * len(values) * bins).view(n, -1).float()
    return counts / counts.sum(dim=1, keepdim=True)


def derivatives(x: Tensor) -> Tensor:
    """The slope of each channel in 8 directions (8 c, h, w), half a turn of them: the others are their negatives."""
    dy, dx = torch.gradient(x, dim=(1, 2))
    angles = [math.pi * k / DIRECTIONS for k in range(DIRECTIONS)]
    return torch.cat([math.cos(a) * dx + math.sin(a) * dy for a in angles])


def neighbours(segments: Tensor, n: int) -> Tensor:
    """Which segments touch, side by side or at a corner (n, n)."""
    found = torch.zeros(n, n, dtype=torch.bool)
    for a, b in (
        (segments[:, 1:], segments[:, :-1]),
        (segments[1:], segments[:-1]),
        (segments[1:, 1:], segments[:-1, :-1]),
        (segments[:-1, 1:], segments[1:, :-1]),
    ):
        found[a.flatten(), b.flatten()] = True
    found |= found.t().clone()
    return found.fill_diagonal_(False)
