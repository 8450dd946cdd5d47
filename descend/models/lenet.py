"""LeNet-5: two convolutions, each followed by average pooling, then three dense layers.

    c1 = tanh(conv(x)),  s2 = pool(c1)            6 maps, pool averages 2×2
    c3 = tanh(conv(s2)), s4 = pool(c3)            16 maps
    f5 = tanh(W s4 + b), f6 = tanh(W f5 + b)      120, 84 units
    logits = W f6 + b

32×32 pixels and 5×5 kernels give maps of side 28, 14, 10, 5 and 61,706 parameters. Other sizes work too: a pool at an
odd edge averages what is there. Left out of the 1998 network: gain and bias in the pools, the sparse table between s2
and c3 (here every map sees every map), the tanh scaled to 1.7159 tanh(2x/3), and the radial-basis output, which became
a softmax.

Systems: lenet
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.ranges import Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class LeNetConfig:
    """The defaults are LeNet-5; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (1, 32, 32)
    """Channels, height, width."""
    classes: Width = 10
    kernel: Side = 5
    """Side of the convolutions' kernels; small images need 3."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "image", tuple(self.image))  # a list when read from config.json
        _, height, width = self.image
        if self.maps(min(height, width))[-1] < 1:
            raise ValueError(f"images of {height}×{width} are too small for LeNet with kernel {self.kernel}")

    def maps(self, side: int) -> tuple[int, int, int, int]:
        """Side of c1, s2, c3, s4 for an image of this side."""
        c1 = side - self.kernel + 1
        s2 = -(-c1 // 2)
        c3 = s2 - self.kernel + 1
        return c1, s2, c3, -(-c3 // 2)


class LeNet(Pretrained):
    """images (b, channels, height, width) -> logits (b, classes)"""

    Config = LeNetConfig

    def __init__(self, config: LeNetConfig):
        super().__init__()
        c = self.config = config
        channels, height, width = c.image
        self.c1 = nn.Conv2d(channels, 6, c.kernel)
        self.c3 = nn.Conv2d(6, 16, c.kernel)
        self.pool = nn.AvgPool2d(2, ceil_mode=True)
        self.f5 = nn.Linear(16 * c.maps(height)[-1] * c.maps(width)[-1], 120)
        self.f6 = nn.Linear(120, 84)
        self.out = nn.Linear(84, c.classes)

    @property
    def head(self) -> nn.Linear:
        """The last layer."""
        return self.out

    def maps(self, x: Tensor) -> Tensor:
        """s4"""
        x = self.pool(self.c1(x).tanh())
        return self.pool(self.c3(x).tanh())

    def features(self, x: Tensor) -> Tensor:
        """f6"""
        x = self.f5(self.maps(x).flatten(1)).tanh()
        return self.f6(x).tanh()

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.features(x))


SIZES = {"lenet-5": LeNetConfig()}
PARAMETERS = {"lenet-5": 61_706}
TINY = LeNetConfig(image=(1, 11, 13), classes=3, kernel=3)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("LeNet")
