"""YOLOv2: anchors on a grid of 13 × 13 cells, on Darknet-19 without fully connected layers.

    backbone      the 18 convolutions of Darknet-19: stride 32, 416 → 13
    passthrough   the finer maps (26 × 26 × 512), narrowed to 64, laid beside the coarse ones: each 2 × 2 pixels become
                  four times the channels
    head          B (5 + K) maps: 13 × 13 × 5 (5 + 80) = 13 × 13 × 425 for COCO; 845 boxes
    classes       softmax: they exclude each other

Batch norm follows every convolution but the last. The network takes images whose sides are any multiple of 32, so it
may be trained at several sizes: the grid is a thirty-second of them. Boxes are coded as in
`ops/detection/yolo_grid.py`, anchors are in pixels. MF names Darknet-19 and the grid; layers, passthrough and anchors
are the paper's.

Systems: yolo-v2
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models._yolo import COCO, GridDetector, check_anchors, name_fields
from descend.nn.detection.csp import leaky_unit
from descend.nn.detection.darknet import PlainDarknet
from descend.nn.detection.heads import GridHead
from descend.ranges import Depth, Positive, Share, Width
from descend.weights.labels import Labels


@dataclass(frozen=True)
class YoloV2Config:
    """The defaults are the paper's, for COCO. A recipe takes channels and labels from its data."""

    channels: Width = 3
    widths: tuple[Width, ...] = (32, 64, 128, 256, 512, 1024)
    repeats: tuple[Depth, ...] = (1, 1, 3, 3, 5, 5)
    narrow: Width = 64
    """Maps that the passthrough takes of the stage before the last."""
    anchors: tuple[Positive, ...] = (18.33, 21.68, 59.98, 66.0, 106.83, 175.18, 252.25, 112.89, 312.66, 293.38)
    """w, h, w, h, .. in pixels."""
    tau: Share = 0.5
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "repeats", "anchors"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_anchors(self.anchors, 1)
        if len(self.widths) != len(self.repeats) or any(n % 2 == 0 for n in self.repeats):
            raise ValueError(f"widths {self.widths}, repeats {self.repeats}: one odd number of layers for each width")


class YoloV2(GridDetector):
    """images (b, channels, h, w), sides multiples of `stride` -> `GridFound` of one level"""

    Config = YoloV2Config

    def __init__(self, config: YoloV2Config):
        super().__init__()
        c = self.config = config
        self.stride = 2 ** (len(c.widths) - 1)
        self.strides = (self.stride,)
        wide, anchors = c.widths[-1], len(c.anchors) // 2
        self.backbone = PlainDarknet(c.channels, c.widths, c.repeats)
        self.deepen = nn.Sequential(leaky_unit(wide, wide, 3), leaky_unit(wide, wide, 3))
        self.narrow = leaky_unit(c.widths[-2], c.narrow)
        self.join = leaky_unit(4 * c.narrow + wide, wide, 3)
        self.head = GridHead(wide, anchors, len(c.labels))
        self.keep_anchors(c.anchors)

    def score_maps(self, x: Tensor) -> list[Tensor]:
        *_, fine, coarse = self.backbone(x)
        passed = F.pixel_unshuffle(self.narrow(fine), 2)
        return [self.head(self.join(torch.cat([passed, self.deepen(coarse)], dim=1)))]

    def probabilities(self, logits: Tensor) -> Tensor:
        """P(class | object): they add up to 1."""
        return logits.softmax(dim=-1)


SIZES = {"yolo-v2": YoloV2Config(labels=COCO)}
PARAMETERS = {"yolo-v2": 50_962_889}
TINY = YoloV2Config(
    widths=(4, 6, 8, 8),
    repeats=(1, 1, 1, 3),
    narrow=2,
    anchors=(12.0, 12.0, 20.0, 30.0),
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 32, 48, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(YoloV2Config)
