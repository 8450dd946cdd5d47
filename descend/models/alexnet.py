"""AlexNet: five convolutions and three dense layers, with ReLU, dropout and overlapping pools.

    c1  11×11, stride 4, pool        c2  5×5, pool        c3, c4, c5  3×3, pool after c5
    f6, f7  4096 units with dropout ½        logits = W f7 + b
    pools take the maximum of 3×3 at stride 2, so that neighbours overlap

Two networks have the name. The book's text says 64 first filters: that is the common re-implementation, with
64-192-384-256-256 maps, 224×224 pixels and 61,100,840 parameters ("alexnet", the default). The paper has
96-256-384-384-256 maps on 227×227 pixels, c2, c4 and c5 in two groups (each of two GPUs sees its own half), and after
c1 and c2 each response is divided by those of its neighbours among the channels:

    b_i = a_i / (2 + 10⁻⁴ Σ_j a_j²)^¾        j the 5 channels around i

It has 60,965,224 parameters ("alexnet-paper"); in one tower without groups 62,378,344 ("alexnet-one-tower").
Before the dense layers maps of any size are averaged to grid × grid; at the published sizes that changes nothing. The
weights start from He's distribution, not from the paper's N(0, 0.01²), which needs its own schedule to leave the start.

Systems: alexnet
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.ranges import Few, Fraction, Side, SideOrAny, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename


@dataclass(frozen=True)
class AlexNetConfig:
    """The defaults are the network of the text; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 224, 224)
    """Channels, height, width."""
    classes: Width = 1000
    widths: tuple[Width, Width, Width, Width, Width] = (64, 192, 384, 256, 256)
    """Maps of the five convolutions."""
    kernel: Side = 11
    """Of the first convolution; small images need 3 or 5."""
    stride: Side = 4
    """Of the first convolution; small images need 1."""
    padding: SideOrAny = 2
    """Of the first convolution."""
    groups: Width = 1
    """Of c2, c4 and c5."""
    neighbours: Few = 0
    """Channels in the response normalization; 0 leaves it out."""
    grid: Width = 6
    """Side of the maps that the dense layers see."""
    hidden: Width = 4096
    dropout: Fraction = 0.5

    def __post_init__(self) -> None:
        for name in ("image", "widths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        _, height, width = self.image
        if self.side(min(height, width)) < 1:
            raise ValueError(
                f"images of {height}×{width} are too small for AlexNet with kernel {self.kernel}, stride {self.stride}"
            )

    def side(self, n: int) -> int:
        """Side of the last maps for an image of side n."""
        n = (n + 2 * self.padding - self.kernel) // self.stride + 1
        for _ in range(3):
            n = (n - 3) // 2 + 1
        return n


class AlexNet(Pretrained):
    """images (b, channels, height, width) -> logits (b, classes)"""

    Config = AlexNetConfig

    def __init__(self, config: AlexNetConfig):
        super().__init__()
        c = self.config = config
        one, two, three, four, five = c.widths
        self.c1 = nn.Conv2d(c.image[0], one, c.kernel, c.stride, c.padding)
        self.c2 = nn.Conv2d(one, two, 5, padding=2, groups=c.groups)
        self.c3 = nn.Conv2d(two, three, 3, padding=1)
        self.c4 = nn.Conv2d(three, four, 3, padding=1, groups=c.groups)
        self.c5 = nn.Conv2d(four, five, 3, padding=1, groups=c.groups)
        self.norm = response_norm(c.neighbours) if c.neighbours else nn.Identity()
        self.pool = nn.MaxPool2d(3, stride=2)
        self.average = nn.AdaptiveAvgPool2d(c.grid)
        self.dropout = nn.Dropout(c.dropout)
        self.f6 = nn.Linear(five * c.grid**2, c.hidden)
        self.f7 = nn.Linear(c.hidden, c.hidden)
        self.head = nn.Linear(c.hidden, c.classes)
        for layer in (self.c1, self.c2, self.c3, self.c4, self.c5, self.f6, self.f7):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def maps(self, x: Tensor) -> Tensor:
        """The maps after the last pool."""
        x = self.pool(self.norm(self.c1(x).relu()))
        x = self.pool(self.norm(self.c2(x).relu()))
        x = self.c4(self.c3(x).relu()).relu()
        return self.pool(self.c5(x).relu())

    def features(self, x: Tensor) -> Tensor:
        """The 4096 units of f7."""
        x = self.average(self.maps(x)).flatten(1)
        x = self.f6(self.dropout(x)).relu()
        return self.f7(self.dropout(x)).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def response_norm(neighbours: int) -> nn.LocalResponseNorm:
    """The paper's: k = 2, α = 10⁻⁴, β = ¾. torch divides α by the number of neighbours, the paper does not."""
    return nn.LocalResponseNorm(neighbours, alpha=1e-4 * neighbours, beta=0.75, k=2.0)


PAPER = (96, 256, 384, 384, 256)
SIZES = {
    "alexnet": AlexNetConfig(),
    "alexnet-paper": AlexNetConfig((3, 227, 227), widths=PAPER, padding=0, groups=2, neighbours=5),
    "alexnet-one-tower": AlexNetConfig((3, 227, 227), widths=PAPER, padding=0, neighbours=5),
}
PARAMETERS = {"alexnet": 61_100_840, "alexnet-paper": 60_965_224, "alexnet-one-tower": 62_378_344}
TOP_5_ERROR = {"alexnet": 15.3, "runner-up": 26.2}
"""Per cent in the competition of 2012. S940 calls the second the best before; it took part in the same competition."""
SMALL = AlexNetConfig((3, 32, 32), 10, (32, 64, 96, 64, 64), kernel=3, stride=1, padding=1, grid=3, hidden=256)
"""For images of 32×32: a tenth of the width, no stride at the start."""
TINY = AlexNetConfig((2, 17, 19), 3, (4, 8, 6, 6, 4), 3, 1, 1, groups=2, neighbours=3, grid=2, hidden=10, dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("AlexNet")

NAMES = ("c1", "c2", "c3", "c4", "c5", "f6", "f7", "head")
PUBLIC = (*(f"features.{i}" for i in (0, 3, 6, 8, 10)), *(f"classifier.{i}" for i in (1, 4, 6)))
TORCHVISION = [rename(f"{a}.{p}", f"{b}.{p}") for a, b in zip(NAMES, PUBLIC, strict=True) for p in ("weight", "bias")]
"""Names of torchvision's file for "alexnet" (`descend.weights.flat`)."""
