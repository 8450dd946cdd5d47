"""YOLOv3: three grids, on Darknet-53 and a pyramid that brings coarse maps down to fine ones.

    backbone   Darknet-53: maps of strides 8, 16 and 32
    level      five units, 1×1 of w/2 and 3×3 of w in turn; then a 3×3 unit and the 1×1 head to B (5 + K) maps
    path       the five units' output, narrowed by a 1×1 unit, doubled in size, laid beside the next finer maps
    boxes      3 anchors a cell: (13² + 26² + 52²) · 3 = 10,647 of an image of 416
    classes    σ(c_k), each on its own: an object may have several

MF gives strides, grids and the kind of path; widths, depths and anchors are the paper's. Boxes are coded as in
`ops/detection/yolo_grid.py`; the loss is `losses/detection/yolo_v3.py`.

Systems: yolo-v3
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.models._yolo import COCO, GridDetector, check_anchors, name_fields
from descend.nn.detection.csp import leaky_unit
from descend.nn.detection.darknet import ResidualDarknet
from descend.nn.detection.heads import GridHead
from descend.nn.detection.pan import double
from descend.ranges import Depth, Positive, Share, Width
from descend.weights.labels import Labels


def alternate(inputs: int, width: int, count: int = 5) -> nn.Sequential:
    """1×1 units of w/2 and 3×3 units of w in turn."""
    outputs = [width // 2 if i % 2 == 0 else width for i in range(count)]
    pairs = enumerate(zip([inputs, *outputs], outputs, strict=False))
    return nn.Sequential(*(leaky_unit(a, b, 1 if i % 2 == 0 else 3) for i, (a, b) in pairs))


@dataclass(frozen=True)
class YoloV3Config:
    """The defaults are the paper's, for COCO. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 32
    widths: tuple[Width, Width, Width, Width, Width] = (64, 128, 256, 512, 1024)
    depths: tuple[Depth, Depth, Depth, Depth, Depth] = (1, 2, 8, 8, 4)
    """Residual units after each halving."""
    anchors: tuple[Positive, ...] = (10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326)
    """w, h, w, h, .. in pixels, from the finest level to the coarsest."""
    tau: Share = 0.5
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "anchors"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_anchors(self.anchors, 3)
        if len(self.widths) != 5 or len(self.depths) != 5 or any(width % 4 for width in self.widths[2:]):
            raise ValueError(f"widths {self.widths}, depths {self.depths}: five each; the last widths multiples of 4")


class YoloV3(GridDetector):
    """images (b, channels, h, w), sides multiples of 32 -> `GridFound` of three levels"""

    Config = YoloV3Config
    stride, strides = 32, (8, 16, 32)

    def __init__(self, config: YoloV3Config):
        super().__init__()
        c = self.config = config
        fine, middle, coarse = c.widths[2:]
        self.backbone = ResidualDarknet(c.channels, c.stem, c.widths, c.depths)
        inputs = (fine + middle // 4, middle + coarse // 4, coarse)
        self.levels = nn.ModuleList(alternate(n, w) for n, w in zip(inputs, c.widths[2:], strict=True))
        self.expand = nn.ModuleList(leaky_unit(w // 2, w, 3) for w in c.widths[2:])
        self.heads = nn.ModuleList(GridHead(w, len(c.anchors) // 6, len(c.labels)) for w in c.widths[2:])
        self.narrow = nn.ModuleList(leaky_unit(w // 2, w // 4) for w in c.widths[3:])
        self.keep_anchors(c.anchors)

    def score_maps(self, x: Tensor) -> list[Tensor]:
        maps = self.backbone(x)[2:]
        found = [self.levels[2](maps[2])]
        for level in (1, 0):
            above = double(self.narrow[level](found[0]))
            found.insert(0, self.levels[level](torch.cat([above, maps[level]], dim=1)))
        return [head(expand(y)) for y, expand, head in zip(found, self.expand, self.heads, strict=True)]


SIZES = {"yolo-v3": YoloV3Config(labels=COCO)}
PARAMETERS = {"yolo-v3": 61_949_149}
TINY = YoloV3Config(
    stem=4,
    widths=(4, 6, 8, 8, 12),
    depths=(1, 1, 1, 1, 1),
    anchors=(12.0, 12.0, 24.0, 24.0, 40.0, 40.0),
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(YoloV3Config)
