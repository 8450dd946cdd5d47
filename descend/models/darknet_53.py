"""Darknet-53, the backbone of YOLOv3: 53 layers, residual units, and strides in place of pools.

    stem     a 3×3 unit of 32 maps
    stages   a 3×3 unit of stride 2 and 1, 2, 8, 8, 4 residual units x + 3×3(1×1(x)) of 64 .. 1024 maps
    head     the mean over the pixels, then a linear layer: the 53rd

MF does not describe it; the numbers are the paper's (Redmon and Farhadi 2018): 18.7 billion operations at 256.

Systems: yolo-v3
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.models._image_heads import MeanClassifier
from descend.models._yolo import name_fields
from descend.nn.detection.darknet import ResidualDarknet
from descend.ranges import Depth, Width
from descend.weights.labels import Labels


@dataclass(frozen=True)
class Darknet53Config:
    """The defaults are the paper's. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 32
    widths: tuple[Width, ...] = (64, 128, 256, 512, 1024)
    depths: tuple[Depth, ...] = (1, 2, 8, 8, 4)
    """Residual units of each stage."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.widths) != len(self.depths):
            raise ValueError(f"widths {self.widths}, depths {self.depths}: give one depth for each width")


class Darknet53(MeanClassifier):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = Darknet53Config

    def __init__(self, config: Darknet53Config):
        super().__init__()
        c = self.config = config
        self.backbone = ResidualDarknet(c.channels, c.stem, c.widths, c.depths)
        self.head = nn.Linear(c.widths[-1], len(c.labels))

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h / 32, w / 32)."""
        return self.backbone(x)[-1]


IMAGENET = Labels(tuple(f"LABEL_{k}" for k in range(1000)))
SIZES = {"darknet-53": Darknet53Config(labels=IMAGENET)}
PARAMETERS = {"darknet-53": 41_609_928}
TINY = Darknet53Config(stem=4, widths=(6, 8), depths=(1, 2), labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 16, 20, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(Darknet53Config)
