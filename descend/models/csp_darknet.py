"""CSPDarknet: Darknet-53 whose stages send only half of their channels through the residual units.

    stem     a 3×3 unit of 32 maps
    stages   a 3×3 unit of stride 2, then y = T [F(B x), A x], F: 1, 2, 8, 8, 4 residual units and a 1×1 unit
    head     the mean over the pixels, then a linear layer

    the book (MF 24.6.1)   416 → 208 × 208 × 32, 104 × 104 × 64, 52 × 52 × 128, 26 × 26 × 256, 13 × 13 × 512
    CSPDarknet-53          64, 128, 256, 512, 1024 maps (Wang et al. 2019; YOLOv4 with Mish)

The book does not give the units of a stage; `SIZES` has its widths with one each.

Systems: csp-block-and-darknet
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from descend.models._image_heads import MeanClassifier
from descend.models._yolo import name_fields
from descend.nn.detection.darknet import CspStages
from descend.ranges import Depth, Width
from descend.weights.labels import Labels


@dataclass(frozen=True)
class CspDarknetConfig:
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


class CspDarknet(MeanClassifier):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = CspDarknetConfig

    def __init__(self, config: CspDarknetConfig):
        super().__init__()
        c = self.config = config
        self.backbone = CspStages(c.channels, c.stem, c.widths, c.depths)
        self.head = nn.Linear(c.widths[-1], len(c.labels))

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h / 32, w / 32)."""
        return self.backbone(x)[-1]


IMAGENET = Labels(tuple(f"LABEL_{k}" for k in range(1000)))
SIZES = {
    "csp-darknet-53": CspDarknetConfig(labels=IMAGENET),
    "csp-darknet-book": CspDarknetConfig(stem=16, widths=(32, 64, 128, 256, 512), depths=(1,) * 5, labels=IMAGENET),
}
PARAMETERS = {"csp-darknet-53": 27_642_184, "csp-darknet-book": 3_757_848}
TINY = CspDarknetConfig(stem=4, widths=(6, 8), depths=(1, 2), labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 16, 20, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(CspDarknetConfig)
