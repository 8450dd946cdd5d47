"""The region proposal network: a small network slides over the shared maps and says where objects may be.

    h = ReLU(conv3×3(M))        objectness o = conv1×1(h), k numbers a cell        offsets t = conv1×1(h), 4 k numbers
    proposals: the boxes that t makes of the anchors, cut to the image; the `candidates` best of each level by o, then
    NMS within the level, and of all levels the `most` best

k anchors a cell: 3 scales × 3 ratios on one map in the original, 3 ratios on each level of a pyramid. Proposals are
places, not predictions: no gradient passes through them.

Systems: region-proposal-network
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.detection.fpn import lay_out
from descend.ops.boxes import clip_boxes
from descend.ops.detection.coding import LIMIT, decode_offsets
from descend.ops.nms import batched_nms
from descend.ranges import Count, NonNegative, PositiveShare


class RegionProposalNetwork(nn.Module):
    """Maps of the levels (b, d, h_i, w_i) -> objectness (b, n), offsets (b, n, 4), n = Σ h_i w_i k"""

    def __init__(self, width: int, anchors: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.objectness = nn.Conv2d(width, anchors, 1)
        self.offsets = nn.Conv2d(width, 4 * anchors, 1)
        for layer in (self.conv, self.objectness, self.offsets):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        hidden = [F.relu(self.conv(x)) for x in maps]
        objectness = torch.cat([lay_out(self.objectness(h), 1) for h in hidden], dim=1)
        return objectness[..., 0], torch.cat([lay_out(self.offsets(h), 4) for h in hidden], dim=1)


class Proposals(NamedTuple):
    """Regions of b images, best first, padded to the same number."""

    boxes: Tensor
    """(b, p, 4) in pixels of the input; zeros where nothing is."""
    scores: Tensor
    """(b, p) probability of an object; 0 where nothing is."""
    real: Tensor
    """(b, p) whether there is a region."""


@dataclass(frozen=True)
class ProposalRule:
    """How proposals are chosen."""

    candidates: Count = 1000
    """Of each level, before NMS."""
    most: Count = 1000
    """Of an image, after it."""
    tau: PositiveShare = 0.7
    """IoU above which the better proposal suppresses the other."""
    least: NonNegative = 0.001
    """Pixels that each side must have."""


@torch.no_grad()
def propose(
    objectness: Tensor, offsets: Tensor, anchors: Tensor, level: Tensor, size: tuple[int, int], rule: ProposalRule
) -> Proposals:
    """Proposals of objectness (b, n) and offsets (b, n, 4) at anchors (n, 4) of the levels `level` (n), in images of
    height and width `size`."""
    counts = torch.bincount(level)
    parts = objectness.split(counts.tolist(), dim=1)
    first = counts.cumsum(0) - counts
    place = torch.cat([best_of(part, rule.candidates) + f for part, f in zip(parts, first, strict=True)], dim=1)
    scores = objectness.gather(1, place).float()
    t = offsets.gather(1, place[..., None].expand(-1, -1, 4)).float()
    boxes = clip_boxes(decode_offsets(t, anchors[place], limit=LIMIT), size[1], size[0])
    large = (boxes[..., 2:] - boxes[..., :2]).amin(dim=-1) >= rule.least
    image = torch.arange(len(scores), device=scores.device)[:, None].expand_as(place)
    group = image * len(counts) + level[place]  # NMS of all images and levels at once: boxes of two groups never meet
    alive = large.flatten().nonzero()[:, 0]
    best = alive[batched_nms(boxes.flatten(0, 1)[alive], scores.flatten()[alive], group.flatten()[alive], rule.tau)]
    scores = scores.sigmoid().flatten()[best]
    return pad_regions(boxes.flatten(0, 1)[best], scores, image.flatten()[best], len(objectness), rule.most)


def best_of(scores: Tensor, count: int) -> Tensor:
    """The places of the largest `count` of (b, n), or of all."""
    return scores.topk(min(count, scores.shape[1]), dim=1).indices


def pad_regions(boxes: Tensor, scores: Tensor, owner: Tensor, images: int, most: int) -> Proposals:
    """Regions (r, 4) that are sorted by score, of images owner (r) -> at most `most` of each image, padded."""
    order, counts = owner.argsort(stable=True), owner.bincount(minlength=images)
    place = torch.arange(len(owner), device=owner.device)
    rank = torch.empty_like(owner).scatter(0, order, place - (counts.cumsum(0) - counts)[owner[order]])
    chosen = rank < most
    longest = max(1, min(most, int(counts.max())))
    at = (owner[chosen], rank[chosen])
    found = Proposals(
        boxes.new_zeros(images, longest, 4),
        boxes.new_zeros(images, longest),
        torch.zeros(images, longest, dtype=torch.bool, device=boxes.device),
    )
    found.boxes[at], found.scores[at], found.real[at] = boxes[chosen], scores[chosen], True
    return found
