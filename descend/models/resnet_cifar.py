"""Residual nets for small images: 6n + 2 layers, three stages of n blocks each, and their twins.

    stem      conv 3×3, BN, ReLU                           w maps, the image's own size
    stage i   n blocks of two convolutions, i = 1, 2, 3    w, 2w, 4w maps; stages 2 and 3 start with stride 2
    head      logits = W f + b                             f: the mean (or maximum) of the last maps over their pixels

He et al. (2015) trained n = 3, 5, 7, 9, 18, 200 on CIFAR-10 with w = 16: 20 to 1202 layers. Where shapes change the
shortcut drops pixels and pads with zeros ("option A"), so residual and plain nets have equally many weights. The
block names what stands where (`nn.convolution.residual`): residual, plain, preactivation and the other placements.
Blocks that end in a bare sum are followed by BN and ReLU before the head; the stem of the two that begin with an
activation is a bare convolution.

Systems: resnet
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from descend.models._image_heads import MeanClassifier
from descend.nn.convolution.residual import (
    BasicBlock,
    ConvNorm,
    NormAfterSum,
    PlainBlock,
    Preactivation,
    ReluBeforeSum,
    ReluOnlyPreactivation,
    channels_last,
    convolution,
    stages,
    zero_pad,
)
from descend.ranges import Range, Side, Width
from descend.weights.layout import Layout

BLOCKS: dict[str, Callable[[int, int, int], nn.Module]] = {
    "residual": lambda inputs, outputs, stride: BasicBlock(inputs, outputs, stride, zero_pad),
    "plain": PlainBlock,
    "preactivation": lambda inputs, outputs, stride: Preactivation(inputs, outputs, stride, zero_pad),
    "relu-only-preactivation": lambda inputs, outputs, stride: ReluOnlyPreactivation(inputs, outputs, stride, zero_pad),
    "relu-before-sum": lambda inputs, outputs, stride: ReluBeforeSum(inputs, outputs, stride, zero_pad),
    "norm-after-sum": lambda inputs, outputs, stride: NormAfterSum(inputs, outputs, stride, zero_pad),
}
POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda maps: maps.mean(dim=(2, 3)),
    "max": lambda maps: maps.amax(dim=(2, 3)),
}
BARE_STEM = ("preactivation", "relu-only-preactivation")
BARE_SUM = (*BARE_STEM, "relu-before-sum")


@dataclass(frozen=True)
class ResNetCifarConfig:
    """The defaults are ResNet-20; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 32, 32)
    """Channels, height, width."""
    classes: Width = 10
    layers: Annotated[int, Range(int, least=8, most=6002)] = 20
    """6n + 2: 8, 14, 20, 26, 32, 44, 56, 110, 1202"""
    width: Width = 16
    """Maps of the first stage; the others have twice and four times as many."""
    block: str = "residual"
    """residual, plain, preactivation, relu-only-preactivation, relu-before-sum or norm-after-sum"""
    stride: Annotated[int, Range(int, least=1, most=8)] = 1
    """Of the stem; 2 makes a step four times as cheap."""
    pool: Literal["mean", "max"] = "mean"
    """What f takes of each of the last maps: its mean, or its greatest value, for objects that fill a small part."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", tuple(self.image))  # a list when read from config.json
        if self.layers < 8 or self.layers % 6 != 2:
            raise ValueError(f"{self.layers} layers are not 6n + 2; the nearest is {6 * self.blocks + 2}")
        if self.block not in BLOCKS:
            raise ValueError(f"block {self.block!r} is unknown; known: {', '.join(BLOCKS)}")

    @property
    def blocks(self) -> int:
        """n, the blocks of a stage."""
        return max(1, round((self.layers - 2) / 6))


class ResNetCifar(MeanClassifier):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = ResNetCifarConfig

    def __init__(self, config: ResNetCifarConfig):
        super().__init__()
        c = self.config = config
        w, n = c.width, c.blocks
        bare = c.block in BARE_STEM
        self.stem = (
            convolution(c.image[0], w, 3, c.stride)
            if bare
            else nn.Sequential(ConvNorm(c.image[0], w, 3, c.stride), nn.ReLU())
        )
        self.stages = stages(BLOCKS[c.block], (w, w, 2 * w, 4 * w), (n, n, n), (1, 2, 2))
        self.last = nn.Sequential(nn.BatchNorm2d(4 * w), nn.ReLU()) if c.block in BARE_SUM else nn.Identity()
        self.head = nn.Linear(4 * w, c.classes)

    def features(self, x: Tensor) -> Tensor:
        """f (b, 4w)"""
        return POOLS[self.config.pool](self.maps(x))

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, 4w, h/4, w/4), for a stem of stride 1."""
        x = channels_last(self.stem(channels_last(x)))
        for stage in self.stages:
            x = stage(x)
        return self.last(x)


DEPTHS = (20, 32, 44, 56, 110)
SIZES = {f"resnet-{n}": ResNetCifarConfig(layers=n) for n in DEPTHS} | {
    f"plain-{n}": ResNetCifarConfig(layers=n, block="plain") for n in (20, 56)
}
PARAMETERS = {
    "resnet-20": 269_722,
    "resnet-32": 464_154,
    "resnet-44": 658_586,
    "resnet-56": 853_018,
    "resnet-110": 1_727_962,
    "plain-20": 269_722,
    "plain-56": 853_018,
}
TINY = ResNetCifarConfig(image=(1, 9, 11), classes=3, layers=8, width=4, block="preactivation")


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("ResNetCifar")
