"""YOLOv1: detection as one regression. Each cell of a 7 × 7 grid predicts two boxes and one class.

    output      Y ∈ R^{S × S × (5B + C)}: 7 × 7 × 30 for B = 2 and the 20 classes of Pascal VOC
    box         x, y within the cell, w, h as shares of the image, and a confidence; no anchors
    layers      24 convolutions with leaky ReLU, then a fully connected layer of 4096 and the output
    score       P(class | object) · confidence

A cell has one set of class probabilities, so two objects of different classes in a cell are beyond it, and so are more
than B of one class: small objects in groups are missed. What the last layer gives for a size is √w, √h as in the paper
(coding "roots": the size is its square), or w, h themselves ("sizes": MF's direct coding, which can be negative; its
root in the loss is r = w / √|w|). The book does not describe the layers; they are the paper's (Redmon et al. 2015).

Systems: yolo-v1
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._yolo import VOC, name_fields
from descend.nn.convolution.residual import channels_last
from descend.nn.convolution.unit import ConvUnit
from descend.ops.boxes import to_corners
from descend.ops.nms import keep_best
from descend.ranges import Count, Depth, Fraction, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained

FAINT = 1e-6
WIDTHS = (64, 192, 128, 256, 256, 512, *(256, 512) * 4, 512, 1024, *(512, 1024) * 2, 1024, 1024, 1024, 1024)
KERNELS = (7, 3, *(1, 3) * 2, *(1, 3) * 4, 1, 3, *(1, 3) * 2, 3, 3, 3, 3)
STRIDES = (2, *(1,) * 20, 2, 1, 1)
POOLS = (2, 2, 1, 1, 1, 2, *(1,) * 9, 2, *(1,) * 8)


@dataclass(frozen=True)
class YoloV1Config:
    """The defaults are the paper's. A recipe takes image and labels from its data."""

    image: tuple[Count, Side, Side] = (3, 448, 448)
    """Channels, height, width."""
    widths: tuple[Width, ...] = WIDTHS
    kernels: tuple[Side, ...] = KERNELS
    strides: tuple[Depth, ...] = STRIDES
    pools: tuple[Depth, ...] = POOLS
    """After each convolution, the side and stride of a maximum; 1: none."""
    hidden: Width = 4096
    boxes: Count = 2
    """B"""
    dropout: Fraction = 0.5
    norm: Literal["none", "batch"] = "none"
    coding: Literal["roots", "sizes"] = "roots"
    tau: Share = 0.5
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        layers = ("widths", "kernels", "strides", "pools")
        for name in ("image", *layers):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len({len(getattr(self, name)) for name in layers}) > 1:
            raise ValueError(f"{', '.join(layers)}: give one number each for every convolution")
        if self.image[1] % self.stride or self.image[2] % self.stride:
            raise ValueError(
                f"an image of {self.image[1]}×{self.image[2]}: the sides must be multiples of {self.stride}"
            )

    @property
    def stride(self) -> int:
        return math.prod(self.strides) * math.prod(self.pools)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.image[1] // self.stride, self.image[2] // self.stride

    @property
    def numbers(self) -> int:
        """Of a cell: 5B + C."""
        return 5 * self.boxes + len(self.labels)


class FoundCells(NamedTuple):
    """What each cell says: B boxes and one class."""

    centres: Tensor
    """x, y within the cell (b, S, S, B, 2)."""
    roots: Tensor
    """√w, √h of the image's sides (b, S, S, B, 2)."""
    confidence: Tensor
    """(b, S, S, B)"""
    classes: Tensor
    """Probabilities (b, S, S, C)."""
    boxes: Tensor
    """x0, y0, x1, y1 in pixels (b, S, S, B, 4)."""
    size: Tensor
    """Width and height of the image in pixels (2)."""


class YoloV1(Pretrained):
    """images (b, channels, h, w) of one size -> `FoundCells`"""

    Config = YoloV1Config

    def __init__(self, config: YoloV1Config):
        super().__init__()
        c = self.config = config
        self.stride = c.stride
        inputs = (c.image[0], *c.widths[:-1])
        layers = zip(inputs, c.widths, c.kernels, c.strides, c.pools, strict=True)
        self.convolutions = nn.Sequential(*(convolve(c.norm, *layer) for layer in layers))
        rows, columns = c.grid
        self.flatten = nn.Flatten()
        self.dense = nn.Sequential(
            nn.Linear(c.widths[-1] * rows * columns, c.hidden), nn.LeakyReLU(0.1), nn.Dropout(c.dropout)
        )
        self.output = nn.Linear(c.hidden, rows * columns * c.numbers)

    def forward(self, x: Tensor) -> FoundCells:
        c = self.config
        y = self.output(self.dense(self.flatten(self.convolutions(channels_last(x)).contiguous())))
        y = y.view(len(x), *c.grid, c.numbers)
        boxes, classes = y[..., : 5 * c.boxes].unflatten(-1, (c.boxes, 5)), y[..., 5 * c.boxes :]
        centres, raw, confidence = boxes[..., :2], boxes[..., 2:4], boxes[..., 4]
        roots = raw if c.coding == "roots" else signed_root(raw)
        size = y.new_tensor([x.shape[3], x.shape[2]])
        pixels = place_cells(centres, raw.square() if c.coding == "roots" else raw, size)
        return FoundCells(centres, roots, confidence, classes, pixels, size)

    def decode(self, found: FoundCells, least: float = 0.001, most: int = 100) -> Boxes:
        """The best class of each cell for all its boxes, without duplicates."""
        best, classes = found.classes.max(dim=-1)
        scores = (found.confidence * best[..., None]).clamp(0, 1).flatten(1)
        classes = classes[..., None].expand_as(found.confidence).flatten(1)
        return keep_best(found.boxes.flatten(1, 3), scores, classes, self.config.tau, least, most)


def convolve(norm: str, inputs: int, width: int, kernel: int, stride: int, pool: int) -> nn.Module:
    """A convolution with leaky ReLU, and a maximum behind it where `pool` is above 1."""
    act = nn.LeakyReLU(0.1)
    if norm == "batch":
        unit: nn.Module = ConvUnit(nn.Conv2d(inputs, width, kernel, stride, kernel // 2, bias=False), act)
    else:
        unit = nn.Sequential(nn.Conv2d(inputs, width, kernel, stride, kernel // 2), act)
    return unit if pool == 1 else nn.Sequential(unit, nn.MaxPool2d(pool))


def signed_root(w: Tensor) -> Tensor:
    """w / √|w|: the root of a size, and a negative number where the size is negative."""
    return w / (w.abs() + FAINT).sqrt()


def place_cells(centres: Tensor, sizes: Tensor, size: Tensor) -> Tensor:
    """x, y within cells and w, h of the image (b, S, S, B, 2) -> x0, y0, x1, y1 in pixels (b, S, S, B, 4)"""
    rows, columns = centres.shape[1:3]
    y, x = torch.arange(rows, device=size.device), torch.arange(columns, device=size.device)
    corner = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)[:, :, None]
    middle = (centres + corner) / centres.new_tensor([columns, rows])
    return to_corners(torch.cat([middle * size, sizes * size], dim=-1))


SIZES = {"yolo-v1": YoloV1Config(labels=VOC)}
PARAMETERS = {"yolo-v1": 271_703_550}
TINY = YoloV1Config(
    image=(3, 32, 48),
    widths=(4, 6, 8),
    kernels=(3, 1, 3),
    strides=(2, 1, 1),
    pools=(2, 1, 2),
    hidden=12,
    dropout=0.0,
    norm="batch",
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(YoloV1Config)
