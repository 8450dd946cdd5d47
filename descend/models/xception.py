"""Xception: separable convolutions only, in residual blocks.

    separable     z = V (W_c * x_c)            3×3 on each channel, then 1×1 over channels, nothing between, batch norm
    entry         two plain convolutions (32 at stride 2, 64), then blocks of 128, 256, 728 channels
    middle        8 times    x + sep(ReLU(sep(ReLU(sep(ReLU(x))))))        728 channels
    exit          a block to 1024 channels, then separable convolutions to 1536 and 2048, ReLU after each
    logits = W x̄ + b                           x̄ the mean over places
    blocks of entry and exit                   max-pool(sep(ReLU(sep(ReLU(x))))) + BN(1×1 convolution of stride 2)

The first block has no ReLU at its start: the layer before it has one. 36 convolutions in the paper's count, 34 of them
separable, 22,855,952 parameters for 1000 classes. The paper's sizes are those of 299×299 pixels. Pools of stride 2 are
padded by 1 on both sides; TensorFlow's file, which pads only behind an even side, would be shifted by a pixel there.

Systems: mobilenet-and-xception
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from descend.nn.convolution.unit import ConvUnit
from descend.ranges import Depth, Fraction, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class XceptionConfig:
    """The defaults are the published network; a recipe takes channels and classes from its data."""

    channels: Width = 3
    classes: Width = 1000
    stem: tuple[Width, Width] = (32, 64)
    """Of the two plain convolutions."""
    entry: tuple[Width, ...] = (128, 256, 728)
    middle: Depth = 8
    """Blocks of the middle."""
    exit: tuple[Width, Width, Width] = (1024, 1536, 2048)
    dropout: Fraction = 0.5

    def __post_init__(self) -> None:
        for name in ("stem", "entry", "exit"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))


class Separable(nn.Module):
    """norm(point(depth(x)))"""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.depth = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.point = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.point(self.depth(x)))


class Middle(nn.Module):
    """x plus three separable convolutions, a ReLU before each"""

    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.ModuleList(Separable(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for layer in cast("Iterable[Separable]", self.layers):
            y = layer(y.relu())
        return x + y


class Halving(nn.Module):
    """pool(second(ReLU(first(f(x))))) + a 1×1 convolution of stride 2; f is ReLU, or the identity in the first block"""

    def __init__(self, inputs: int, inner: int, outputs: int, f: nn.Module):
        super().__init__()
        self.f = f
        self.first, self.second = Separable(inputs, inner), Separable(inner, outputs)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.shortcut = ConvUnit(nn.Conv2d(inputs, outputs, 1, stride=2, bias=False), nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.pool(self.second(self.first(self.f(x)).relu()))
        return y + self.shortcut(x)


class Xception(Pretrained):
    """images (b, channels, height, width) -> logits (b, classes)"""

    Config = XceptionConfig

    def __init__(self, config: XceptionConfig):
        super().__init__()
        c = self.config = config
        one, two = c.stem
        self.conv_1 = ConvUnit(nn.Conv2d(c.channels, one, 3, stride=2, bias=False), nn.ReLU(inplace=True))
        self.conv_2 = ConvUnit(nn.Conv2d(one, two, 3, bias=False), nn.ReLU(inplace=True))
        starts = [nn.Identity(), *(nn.ReLU() for _ in c.entry[1:])]
        widths = zip((two, *c.entry), c.entry, starts, strict=False)
        self.entry = nn.ModuleList(Halving(inputs, outputs, outputs, f) for inputs, outputs, f in widths)
        width = c.entry[-1]
        self.middle = nn.ModuleList(Middle(width) for _ in range(c.middle))
        self.exit = Halving(width, width, c.exit[0], nn.ReLU())
        self.last = nn.ModuleList([Separable(c.exit[0], c.exit[1]), Separable(c.exit[1], c.exit[2])])
        self.dropout = nn.Dropout(c.dropout)
        self.head = nn.Linear(c.exit[2], c.classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def maps(self, x: Tensor) -> Tensor:
        """The maps of the last layer, a 32nd of the image's side."""
        x = self.conv_2(self.conv_1(x))
        for block in (*self.entry, *self.middle, self.exit):
            x = block(x)
        for layer in cast("Iterable[Separable]", self.last):
            x = layer(x).relu()
        return x

    def features(self, x: Tensor) -> Tensor:
        """Their mean over places."""
        return self.maps(x).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(x)))


SIZES = {"xception": XceptionConfig()}
PARAMETERS = {"xception": 22_855_952}
TINY = XceptionConfig(2, 3, stem=(4, 6), entry=(8, 10), middle=2, exit=(12, 14, 16), dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Three images."""
    return torch.randn(3, 2, 41, 38, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("Xception")
