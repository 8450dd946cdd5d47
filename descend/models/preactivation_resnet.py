"""ResNet of full pre-activation blocks: y = S(x) + F(BN ReLU x), with the stream untouched from stem to head.

    stem      conv 7×7/2, max-pool 3×3/2                   no norm: the first block begins with one
    stage i   depths[i] blocks of widths[i] maps           conv ReLU BN conv ReLU BN(x) + S(x), or the bottleneck
    end       BN, ReLU                                     the sum has never been normalised
    head      logits = W f + b                             f: the mean of the last maps over their pixels

S is the identity, or a bare 1×1 convolution W x where shapes change, so that a gradient at the end of a stage reaches
its first block unchanged (He et al. 2016, "Identity mappings"; there the first norm of a stage's first block serves
both branches, here S sees x itself).

Systems: resnet
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models._image_heads import MeanClassifier
from descend.nn.convolution.residual import Preactivation, PreactivationBottleneck, channels_last, convolution, stages
from descend.ranges import Depth, Side, Width
from descend.weights.layout import Layout

BLOCKS = {"basic": Preactivation, "bottleneck": PreactivationBottleneck}


@dataclass(frozen=True)
class PreactivationResNetConfig:
    """The defaults are the 50-layer net; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 224, 224)
    """Channels, height, width."""
    classes: Width = 1000
    stem: Width = 64
    widths: tuple[Width, ...] = (256, 512, 1024, 2048)
    depths: tuple[Depth, ...] = (3, 4, 6, 3)
    block: str = "bottleneck"
    """basic or bottleneck"""

    def __post_init__(self) -> None:
        for name in ("image", "widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.block not in BLOCKS:
            raise ValueError(f"block {self.block!r} is unknown; known: {', '.join(BLOCKS)}")


class PreactivationResNet(MeanClassifier):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = PreactivationResNetConfig

    def __init__(self, config: PreactivationResNetConfig):
        super().__init__()
        c = self.config = config
        self.stem = convolution(c.image[0], c.stem, 7, 2)
        strides = (1, *(2,) * (len(c.depths) - 1))
        self.stages = stages(BLOCKS[c.block], (c.stem, *c.widths), c.depths, strides)
        self.norm = nn.BatchNorm2d(c.widths[-1])
        self.head = nn.Linear(c.widths[-1], c.classes)

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h', w'), after norm and ReLU."""
        x = F.max_pool2d(channels_last(self.stem(channels_last(x))), 3, 2, padding=1)
        for stage in self.stages:
            x = stage(x)
        return F.relu(self.norm(x))


BASIC = (64, 128, 256, 512)
SIZES = {
    "preactivation-resnet-18": PreactivationResNetConfig(widths=BASIC, depths=(2, 2, 2, 2), block="basic"),
    "preactivation-resnet-34": PreactivationResNetConfig(widths=BASIC, block="basic"),
    "preactivation-resnet-50": PreactivationResNetConfig(),
    "preactivation-resnet-101": PreactivationResNetConfig(depths=(3, 4, 23, 3)),
    "preactivation-resnet-152": PreactivationResNetConfig(depths=(3, 8, 36, 3)),
}
PARAMETERS = {
    "preactivation-resnet-18": 11_687_720,
    "preactivation-resnet-34": 21_795_880,
    "preactivation-resnet-50": 25_549_352,
    "preactivation-resnet-101": 44_541_480,
    "preactivation-resnet-152": 60_185_128,
}
TINY = PreactivationResNetConfig(image=(3, 17, 22), classes=3, stem=6, widths=(8, 12), depths=(2, 1))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("PreactivationResNet")
