"""Darknet-19, the backbone of YOLOv2: 19 convolutions, five 2×2 maxima, batch norm on every one but the last.

    stages   1, 1, 3, 3, 5, 5 units of 32 .. 1024 maps: 3×3 that widen, 1×1 that narrow (`nn/detection/darknet.py`)
    head     a 1×1 convolution to the classes, then the mean over the pixels: stride 32, 416 → 13

MF only names it; the numbers are the paper's (Redmon and Farhadi 2016): 5.58 billion operations for an image of 224.

Systems: yolo-v2
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.models._yolo import name_fields
from descend.nn.detection.darknet import PlainDarknet
from descend.ranges import Depth, Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class Darknet19Config:
    """The defaults are the paper's. A recipe takes channels and labels from its data."""

    channels: Width = 3
    widths: tuple[Width, ...] = (32, 64, 128, 256, 512, 1024)
    repeats: tuple[Depth, ...] = (1, 1, 3, 3, 5, 5)
    """Convolutions of each stage: odd numbers, so that a stage ends with its full width."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "repeats"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.widths) != len(self.repeats) or any(n % 2 == 0 for n in self.repeats):
            raise ValueError(f"widths {self.widths}, repeats {self.repeats}: one odd number of layers for each width")


class Darknet19(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = Darknet19Config

    def __init__(self, config: Darknet19Config):
        super().__init__()
        c = self.config = config
        self.backbone = PlainDarknet(c.channels, c.widths, c.repeats)
        self.head = nn.Conv2d(c.widths[-1], len(c.labels), 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x)[-1]).mean(dim=(2, 3))

    def features(self, x: Tensor) -> Tensor:
        """The mean of the last maps over their pixels (b, d)."""
        return self.maps(x).mean(dim=(2, 3))

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h / 32, w / 32)."""
        return self.backbone(x)[-1]


IMAGENET = Labels(tuple(f"LABEL_{k}" for k in range(1000)))
SIZES = {"darknet-19": Darknet19Config(labels=IMAGENET)}
PARAMETERS = {"darknet-19": 20_842_376}
TINY = Darknet19Config(widths=(4, 6, 8), repeats=(1, 1, 3), labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 16, 20, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(Darknet19Config)
