"""Stand-ins for the public sets of images with objects: the same shapes, classes and files, nothing to download.

    VOC     375 × 500, 20 classes, 2 to 4 objects; a class for every pixel, 21 with the background, 255 at the edges
    COCO    480 × 640, 80 classes with numbers 1 to 90, about 5 objects, small ones among them, outlines

The class of an object is its shape, its colour and, in COCO's, whether it is large. Scenes are drawn as squares
at half the size, enlarged, and the middle of them is taken: boxes are the extent of what is left.

Systems: vision-datasets
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import interpolate, max_pool2d

from descend.data.detection.facts import describe_objects
from descend.data.detection.objects import DetectionSplits, Objects, StackedPixels
from descend.data.detection.source import DetectionSource
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, Scenes, draw_scenes
from descend.ranges import Count

VOC_SIZE, VOC_CLASSES = (375, 500), 20
COCO_SIZE, COCO_CLASSES = (480, 640), 80
COCO_GAPS = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)  # numbers up to 90 that name no class
LARGE = 0.11  # radius as a share of the side
EDGE = 255  # no class


class Drawn(NamedTuple):
    """Images with objects, the class of each pixel (n, h, w), and the names of the classes."""

    objects: Objects
    semantic: Tensor
    labels: tuple[str, ...]


@dataclass(frozen=True)
class VocLike(DetectionSource):
    """Scenes in VOC's shape; with a path, a folder of objects."""

    count: Count = 60
    """Generated images."""

    def load_embedded(self) -> DetectionSplits:
        return self.cut_drawn(draw_voc(self.count))

    def cut_drawn(self, drawn: Drawn, numbers: tuple[int, ...] = ()) -> DetectionSplits:
        parts = self.cut(torch.arange(len(drawn.objects)), {})
        facts = describe_objects(drawn.objects, drawn.labels, self.framing)
        return self.gather(drawn.objects, parts, drawn.labels, facts, numbers)


@dataclass(frozen=True)
class CocoLike(VocLike):
    """Scenes in COCO's shape; with a path, a folder of objects."""

    def load_embedded(self) -> DetectionSplits:
        return self.cut_drawn(draw_coco(self.count), number_coco())


def draw_voc(n: int, seed: int = 0) -> Drawn:
    """n images of 375 × 500."""
    random = generator(seed, VOC_CLASSES)
    label = torch.randint(VOC_CLASSES, (n, 4), generator=random)
    present = torch.arange(4) < torch.randint(2, 5, (n, 1), generator=random)
    shape, tone = label // 4, label % 4  # five shapes in four pairs of colours
    colour = 2 * tone + torch.randint(2, tone.shape, generator=random)
    found = draw_scenes(shape, colour, present, VOC_SIZE[1] // 2, random)
    names = [f"{COLOURS[2 * k]} or {COLOURS[2 * k + 1]}" for k in range(4)]
    labels = tuple(f"{name} {shape}" for shape in SHAPES[:5] for name in names)
    return crop_scenes(found, label, VOC_SIZE, labels)


def draw_coco(n: int, seed: int = 0) -> Drawn:
    """n images of 480 × 640."""
    random = generator(seed, COCO_CLASSES)
    label = torch.randint(COCO_CLASSES, (n, 9), generator=random)
    present = torch.arange(9) < torch.randint(2, 10, (n, 1), generator=random)
    large, kind = label % 2 == 1, label // 2
    shape, colour = kind // len(COLOURS), kind % len(COLOURS)
    small = draw_scenes(shape, colour, present & ~large, COCO_SIZE[1] // 2, random, (0.02, 0.07))
    big = draw_scenes(shape, colour, present & large, COCO_SIZE[1] // 2, random, (LARGE, 0.18))
    front = torch.where(small.instance > 0, small.instance, big.instance)
    over = (small.instance > 0)[:, None]
    found = Scenes(
        torch.where(over, small.x, big.x), big.mask, shape, colour, big.box, present, front
    )  # small objects lie before large ones
    names = [f"{size} {colour} {shape}" for shape in SHAPES[:5] for colour in COLOURS for size in ("small", "large")]
    return crop_scenes(found, label, COCO_SIZE, tuple(names))


def crop_scenes(found: Scenes, label: Tensor, size: tuple[int, int], labels: tuple[str, ...]) -> Drawn:
    """The middle rows of square scenes, twice as large, with the objects that are visible there."""
    (height, width), n = size, len(found)
    top = (width - height) // 2
    large = interpolate(found.x, scale_factor=2, mode="bilinear")[:, :, top : top + height]
    x = (255 * large).round().to(torch.uint8).movedim(1, 3).contiguous()
    front = found.instance.repeat_interleave(2, 1).repeat_interleave(2, 2)[:, top : top + height]
    seen = front[:, None] == torch.arange(1, label.shape[1] + 1)[:, None, None]  # (n, o, h, w)
    across, down = seen.any(dim=2), seen.any(dim=3)
    first = [line.int().argmax(dim=2) for line in (across, down)]
    last = [line.shape[2] - line.flip(2).int().argmax(dim=2) for line in (across, down)]
    box = torch.stack([*first, *last], dim=2).double()
    owner, which = across.any(dim=2).nonzero(as_tuple=True)
    objects = Objects(
        StackedPixels(x),
        torch.tensor([size]).repeat(n, 1),
        box[owner, which],
        owner,
        label[owner, which],
        torch.zeros(len(owner), dtype=torch.bool),
        seen.sum(dim=(2, 3))[owner, which].double(),
        torch.arange(n),
        tuple(f"{i:06d}.jpg" for i in range(n)),
        (),
        StackedPixels(front.to(torch.uint8)),
        which + 1,
    )
    classes = torch.cat([torch.zeros(n, 1, dtype=torch.long), label + 1], dim=1)
    semantic = classes.gather(1, front.flatten(1)).view_as(front)
    return Drawn(objects, mark_edges(semantic, front), labels)


def mark_edges(semantic: Tensor, front: Tensor) -> Tensor:
    """The class of each pixel, `EDGE` where two objects, or an object and the ground, meet: (n, h, w)"""
    values = front[:, None].float()
    high, low = max_pool2d(values, 3, 1, 1), -max_pool2d(-values, 3, 1, 1)
    return semantic.masked_fill((high != low)[:, 0], EDGE)


def number_coco() -> tuple[int, ...]:
    """The numbers of the 80 classes: 1 to 90 without ten of them."""
    return tuple(k for k in range(1, 91) if k not in COCO_GAPS)
