"""Plain-34: ResNet-34 without its shortcuts, the control of the degradation experiment.

    stem      conv 7×7/2, BN, ReLU, max-pool 3×3/2
    stage i   depths[i] pairs of 3×3 convolutions with BN and ReLU, VGG's style: where the image halves, the maps double
    head      logits = W f + b                f: the mean of the last maps over their pixels

It has the weights of the residual net but for the projections: 21,623,848 of 21,797,672.

Systems: resnet
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models._image_heads import MeanClassifier
from descend.nn.convolution.residual import ConvNorm, PlainBlock, channels_last, stages
from descend.ranges import Depth, Side, Width
from descend.weights.layout import Layout


@dataclass(frozen=True)
class PlainNetConfig:
    """The defaults are plain-34; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 224, 224)
    """Channels, height, width."""
    classes: Width = 1000
    stem: Width = 64
    widths: tuple[Width, ...] = (64, 128, 256, 512)
    depths: tuple[Depth, ...] = (3, 4, 6, 3)
    """Pairs of convolutions in each stage."""

    def __post_init__(self) -> None:
        for name in ("image", "widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))


class PlainNet(MeanClassifier):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = PlainNetConfig

    def __init__(self, config: PlainNetConfig):
        super().__init__()
        c = self.config = config
        self.stem = ConvNorm(c.image[0], c.stem, 7, 2)
        strides = (1, *(2,) * (len(c.depths) - 1))
        self.stages = stages(PlainBlock, (c.stem, *c.widths), c.depths, strides)
        self.head = nn.Linear(c.widths[-1], c.classes)

    def maps(self, x: Tensor) -> Tensor:
        """The last stage's maps (b, d, h', w')."""
        x = F.max_pool2d(channels_last(F.relu(self.stem(channels_last(x)))), 3, 2, padding=1)
        for stage in self.stages:
            x = stage(x)
        return x


SIZES = {"plain-18": PlainNetConfig(depths=(2, 2, 2, 2)), "plain-34": PlainNetConfig()}
PARAMETERS = {"plain-18": 11_515_688, "plain-34": 21_623_848}
TINY = PlainNetConfig(image=(3, 17, 22), classes=3, stem=6, widths=(6, 8), depths=(2, 1))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("PlainNet")
