"""What detectors on a pyramid share: a residual backbone without its classifier, anchors of all levels, and objects.

of regions        boxes = decode(t_{r, c}, region r), cut to the image        score = softmax(z_r)_c, c = 1 .. K
of every place    the best candidates of a class or a level
then              NMS of each class on its own
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models.resnet import ResNet, ResNetConfig
from descend.nn.convolution.frozen_norm import freeze_norms
from descend.nn.detection.roi import Refined, RegionHead
from descend.ops.boxes import clip_boxes
from descend.ops.detection.anchors import anchor_shapes, make_grid, place_anchors
from descend.ops.detection.coding import LIMIT, RCNN, decode_offsets
from descend.ops.images.selective_search import SearchRule, search_regions
from descend.ops.nms import keep_best
from descend.ranges import Count, Depth, Positive, PositiveShare, Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule

Norm = Literal["batch", "frozen"]
"""Whether the moments of batch norms are measured in training, or are those that they came with."""


class Backbone(ResNet):
    """The stages of a residual network, without the linear layer at its end."""

    def __init__(self, config: ResNetConfig, epsilon: float = 1e-5, norm: Norm = "batch"):
        super().__init__(config)
        self.head = nn.Identity()  # type: ignore[assignment]
        for layer in self.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eps = epsilon
        if norm == "frozen":
            freeze_norms(self)


def lay_anchors(
    maps: Sequence[Tensor], x: Tensor, sizes: Sequence[Sequence[float]], ratios: Sequence[float], corner: float
) -> tuple[Tensor, Tensor]:
    """Anchors of all levels (n, 4) and the level of each (n), of the input x: `sizes` (√area) of each level in every
    ratio h / w, around the point at `corner` of a cell's side. At 0 they have whole pixels, as torchvision's."""
    found, levels = [], []
    for i, (m, size) in enumerate(zip(maps, sizes, strict=True)):
        points = lay_points(m, x, corner)[0]
        shapes = anchor_shapes(1.0, ratios, size)
        found.append(place_anchors(points, shapes if corner else (shapes / 2).round() * 2))
        levels.append(torch.full((len(found[-1]),), i, device=x.device))
    return torch.cat(found), torch.cat(levels)


def lay_points(maps: Tensor, x: Tensor, corner: float) -> tuple[Tensor, int]:
    """The points of a level's cells (h w, 2) in pixels of the input x, and their stride."""
    height, width = maps.shape[2:]
    stride = x.shape[2] // height
    return make_grid(height, width, stride, x.device) + (corner - 0.5) * stride, stride


def prefix(rules: Sequence[Rule], ours: str, theirs: str) -> list[Rule]:
    """The rules of a part, below a name on each side."""
    return [Rule(f"{ours}.{rule.ours}", f"{theirs}.{rule.theirs}") for rule in rules]


@torch.no_grad()
def decode_regions(
    refined: Refined,
    boxes: Tensor,
    owner: Tensor,
    images: int,
    size: tuple[int, int],
    tau: float,
    least: float,
    most: int,
) -> Boxes:
    """Objects of b images from what the second stage says of the boxes (r, 4) of images owner (r)."""
    p = refined.logits.float().softmax(dim=-1)[:, 1:]
    moved = decode_offsets(refined.offsets.float()[:, 1:], boxes[:, None], RCNN, LIMIT)
    moved = clip_boxes(moved, size[1], size[0])
    r, c = (p > least).nonzero(as_tuple=True)
    return gather_objects(moved[r, c], p[r, c], c, owner[r], images, tau, least, most)


def gather_objects(
    boxes: Tensor, scores: Tensor, classes: Tensor, owner: Tensor, images: int, tau: float, least: float, most: int
) -> Boxes:
    """Objects (r, 4) of images owner (r) -> those that NMS keeps, padded."""
    count = torch.bincount(owner, minlength=images)
    order = owner.argsort(stable=True)
    place = torch.arange(len(owner), device=owner.device) - (count.cumsum(0) - count)[owner[order]]
    longest = max(1, int(count.max()))
    at = (owner[order], place)
    padded = Boxes(
        boxes.new_zeros(images, longest, 4),
        torch.full((images, longest), -1, device=boxes.device),
        boxes.new_zeros(images, longest),
    )
    padded.boxes[at], padded.classes[at], padded.scores[at] = boxes[order], classes[order], scores[order]
    return keep_best(padded.boxes, padded.scores, padded.classes, tau, least, most)


@torch.no_grad()
def best_of_classes(boxes: Tensor, scores: Tensor, candidates: int, tau: float, least: float, most: int) -> Boxes:
    """Objects from boxes (b, n, 4) with scores of every class (b, n, K): the best candidates of each class, then NMS of
    each class on its own."""
    _b, n, k = scores.shape
    best, place = scores.topk(min(candidates, n), dim=1)
    classes = torch.arange(k, device=scores.device).expand_as(place)
    chosen = boxes.gather(1, place.flatten(1)[..., None].expand(-1, -1, 4))
    return keep_best(chosen, best.flatten(1), classes.flatten(1), tau, least, most)


@torch.no_grad()
def best_of_levels(
    boxes: Tensor, scores: Tensor, counts: Sequence[int], candidates: int, tau: float, least: float, most: int
) -> Boxes:
    """The same with the best candidates of each level: `counts` of the n boxes belong to one after the other."""
    k, parts, first = scores.shape[2], [], 0
    for part in scores.split(list(counts), dim=1):
        flat = part.flatten(1)
        best = flat.topk(min(candidates, flat.shape[1]), dim=1)
        parts.append((best.values, best.indices + first * k))
        first += part.shape[1]
    best_scores, place = (torch.cat(x, dim=1) for x in zip(*parts, strict=True))
    chosen = boxes.gather(1, (place // k)[..., None].expand(-1, -1, 4))
    return keep_best(chosen, best_scores, place % k, tau, least, most)


@dataclass(frozen=True)
class RegionConfig:
    """Of R-CNN and Fast R-CNN: a residual network whose last maps are looked at, and how regions are searched."""

    channels: Width = 3
    stem: Width = 64
    widths: tuple[Width, ...] = (64, 128, 256)
    """Maps of the backbone's stages; the first has stride 4, each other one twice the one before."""
    depths: tuple[Depth, ...] = (2, 2, 2)
    block: str = "basic"
    """basic or bottleneck"""
    hidden: Width = 1024
    """Units of the head."""
    grid: Width = 7
    """Side of a region's grid."""
    scales: tuple[Positive, ...] = (50.0, 100.0)
    """k of the segmentations that Selective Search starts from."""
    least: Count = 20
    """Pixels of a segment."""
    proposals: Count = 2000
    """Of an image, at most."""
    tau: PositiveShare = 0.5
    """IoU above which the better of two objects of a class suppresses the other."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "scales"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def backbone(self) -> ResNetConfig:
        """The residual network."""
        return ResNetConfig(self.channels, self.stem, self.widths, self.depths, self.block)


class GivenRegions(NamedTuple):
    """Regions that came from elsewhere, and what says more of them."""

    proposals: Tensor
    """(b, p, 4); padded with boxes without area."""
    real: Tensor
    """(b, p) whether there is a region."""
    size: Tensor
    """Height and width of the input."""
    refine: Callable[[Tensor, Tensor], Refined]
    """Boxes (r, 4) of images owner (r) -> logits and offsets."""


class SearchedDetector(Pretrained):
    """Regions by Selective Search, one backbone, and a head that names and moves a region's grid."""

    def __init__(self, config: RegionConfig):
        super().__init__()
        c = self.config = config
        self.backbone = Backbone(c.backbone())
        self.reduction = 2 ** (len(c.widths) + 1)  # pixels of a cell of the last maps
        self.head = RegionHead(c.widths[-1], c.grid, c.hidden, len(c.labels))
        self.stride = self.reduction

    def find(self, x: Tensor, regions: Tensor | None, refine: Callable[[Tensor, Tensor], Refined]) -> GivenRegions:
        """With the regions that are given, or those that are searched."""
        regions = self.search(x) if regions is None else regions
        real = (regions[..., 2:] > regions[..., :2]).all(dim=-1)
        return GivenRegions(regions, real, torch.tensor(x.shape[2:]), refine)

    def search(self, x: Tensor) -> Tensor:
        """The regions of each image (b, p, 4), padded; its values are stretched to 0..1 for that."""
        c = self.config
        rule = SearchRule(scales=c.scales, least=c.least, most=c.proposals)
        low, high = x.amin(dim=(1, 2, 3), keepdim=True), x.amax(dim=(1, 2, 3), keepdim=True)
        images = ((x - low) / (high - low).clamp_min(1e-6)).detach().float().cpu()
        found = [search_regions(image, rule) for image in images]
        return nn.utils.rnn.pad_sequence(found, batch_first=True).to(x)

    def decode(self, found: GivenRegions, least: float = 0.001, most: int = 100) -> Boxes:
        """Objects, best first, after NMS of each class."""
        owner, place = found.real.nonzero(as_tuple=True)
        boxes, size = found.proposals[owner, place], (int(found.size[0]), int(found.size[1]))
        refined = found.refine(boxes, owner)
        return decode_regions(refined, boxes, owner, len(found.real), size, self.config.tau, least, most)
