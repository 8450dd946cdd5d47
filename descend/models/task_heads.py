"""Three tasks of seeing, one backbone: what is it, where is it, and which pixels are it?

    φ = convolutions(x)                                       each halves the image but for the first
    classification    softmax(W mean(φ) + b)                  C numbers
    localisation      the same, and σ(V flatten(φ) + c)       C + 4 numbers: x0, y0, x1, y1 as shares of the image
    segmentation      conv1×1(φ), enlarged to the image       N numbers for each pixel: N · H · W

Each task has its own loss, and their sum trains the backbone (`losses/detection/single_object.py`). One box is one
answer: with several objects in the image it lies between them. The single-object detector of the recipes, class and box
alone, is `models/localiser.py`.

Systems: single-object-detector
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models.localiser import ConvLayer
from descend.ranges import Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class TaskHeadsConfig:
    """A recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 32, 32)
    """Channels, height, width."""
    classes: Width = 6
    pixel_classes: Width = 7
    """N: the ground is one of them."""
    widths: tuple[Width, ...] = (16, 32, 64)
    """Maps of each convolution."""

    def __post_init__(self) -> None:
        for name in ("image", "widths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.widths:
            raise ValueError("widths: give at least one convolution")

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the last maps."""
        halvings = 2 ** (len(self.widths) - 1)
        return -(-self.image[1] // halvings), -(-self.image[2] // halvings)


class SeenObject(NamedTuple):
    """What the three heads say."""

    logits: Tensor
    """(b, classes)"""
    box: Tensor
    """(b, 4) as shares of the image."""
    pixels: Tensor
    """Logits (b, pixel_classes, height, width)."""


class TaskHeads(Pretrained):
    """images (b, channels, h, w) -> class, box and mask of the one object"""

    Config = TaskHeadsConfig

    def __init__(self, config: TaskHeadsConfig):
        super().__init__()
        c = self.config = config
        sizes = pairwise((c.image[0], *c.widths))
        self.layers = nn.ModuleList(ConvLayer(n, out, 1 if i == 0 else 2) for i, (n, out) in enumerate(sizes))
        self.head = nn.Linear(c.widths[-1], c.classes)
        self.box = nn.Linear(c.widths[-1] * c.sides[0] * c.sides[1], 4)
        self.pixels = nn.Conv2d(c.widths[-1], c.pixel_classes, 1)

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h', w')."""
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, x: Tensor) -> SeenObject:
        maps = self.maps(x)
        pixels = F.interpolate(self.pixels(maps), size=x.shape[2:], mode="bilinear", align_corners=False)
        return SeenObject(self.head(maps.mean(dim=(2, 3))), self.box(maps.flatten(1)).sigmoid(), pixels)


TINY = TaskHeadsConfig(image=(3, 9, 10), classes=3, pixel_classes=4, widths=(4, 6))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("TaskHeads")
