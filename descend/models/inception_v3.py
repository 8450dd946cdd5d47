"""Inception-v3: each module looks at its input in several ways at once and stacks what it finds.

    y = [f_1(x); f_2(x); .. ; f_n(x)]            along the channels; f_i a few convolutions, or a pool and one
    unit: convolution without bias, batch norm (ε = 0.001), ReLU

    stem        299×299 -> 35×35, 192 channels
    A  ×3       1×1 · 5×5 · 3×3 twice · mean          256, 288, 288 channels at 35×35
    B           3×3 and 3×3 twice at stride 2 · max    768 at 17×17
    C  ×4       1×1 · 7×7 · 7×7 twice · mean          768; a 7×7 is a 1×7 and a 7×1
    D           like B                               1280 at 8×8
    E  ×2       1×1 · 3×3 · 3×3 twice · mean          2048; the last 3×3 is a 1×3 beside a 3×1
    features    the mean over places, 2048 numbers; logits = W features + b

`features` is what FID compares. A locally trained network of any family serves as well, for comparisons among
themselves. The published FID figures come from TensorFlow's weights, whose pools differ (means count only real pixels,
the last module takes a maximum): a figure from other weights is another scale.

27,161,264 parameters with the auxiliary classifier on the 17×17 maps (`InceptionV3WithAuxiliary`, whose loss is added
in training), 23,834,568 without.

Systems: inception-v3
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.nn.convolution.unit import ConvUnit
from descend.ranges import Fraction, Positive, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import batch_norm, rename

Side = int | tuple[int, int]
Unit = Callable[[int, int, Side, int, Side], nn.Module]
"""(inputs, outputs, kernel, stride, padding) -> a unit; numbers of channels at full width"""

FLAT, UPRIGHT = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
POINT, THREE, HALVING = (1, 1, 0), (3, 1, 1), (3, 2, 0)


@dataclass(frozen=True)
class InceptionV3Config:
    """The defaults are the published network; a recipe takes channels and classes from its data."""

    channels: Width = 3
    classes: Width = 1000
    width: Positive = 1.0
    """Every number of channels is multiplied by it: 1, or sixteenths."""
    dropout: Fraction = 0.5

    def __post_init__(self) -> None:
        if self.width <= 0 or (16 * self.width) % 1:
            raise ValueError(f"width {self.width}: give a multiple of 1/16, so that all channels are whole numbers")


class Branches(nn.ModuleList):
    """x -> [f_1(x); f_2(x); ..] along the channels"""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self], dim=1)


def mixed_a(u: Unit, n: int, pooled: int) -> Branches:
    return Branches([
        u(n, 64, *POINT),
        nn.Sequential(u(n, 48, *POINT), u(48, 64, 5, 1, 2)),
        nn.Sequential(u(n, 64, *POINT), u(64, 96, *THREE), u(96, 96, *THREE)),
        make_pool_branch(u, n, pooled),
    ])  # fmt: skip


def mixed_b(u: Unit, n: int) -> Branches:
    return Branches([
        u(n, 384, *HALVING),
        nn.Sequential(u(n, 64, *POINT), u(64, 96, *THREE), u(96, 96, *HALVING)),
        nn.MaxPool2d(3, 2),
    ])  # fmt: skip


def mixed_c(u: Unit, n: int, m: int) -> Branches:
    twice = u(n, m, *POINT), u(m, m, *UPRIGHT), u(m, m, *FLAT), u(m, m, *UPRIGHT), u(m, 192, *FLAT)
    return Branches([
        u(n, 192, *POINT),
        nn.Sequential(u(n, m, *POINT), u(m, m, *FLAT), u(m, 192, *UPRIGHT)),
        nn.Sequential(*twice),
        make_pool_branch(u, n, 192),
    ])  # fmt: skip


def mixed_d(u: Unit, n: int) -> Branches:
    return Branches([
        nn.Sequential(u(n, 192, *POINT), u(192, 320, *HALVING)),
        nn.Sequential(u(n, 192, *POINT), u(192, 192, *FLAT), u(192, 192, *UPRIGHT), u(192, 192, *HALVING)),
        nn.MaxPool2d(3, 2),
    ])  # fmt: skip


def mixed_e(u: Unit, n: int) -> Branches:
    return Branches([
        u(n, 320, *POINT),
        nn.Sequential(u(n, 384, *POINT), make_cross(u)),
        nn.Sequential(u(n, 448, *POINT), u(448, 384, *THREE), make_cross(u)),
        make_pool_branch(u, n, 192),
    ])  # fmt: skip


def make_pool_branch(u: Unit, inputs: int, outputs: int) -> nn.Sequential:
    """The mean of 3×3 places, then 1×1."""
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), u(inputs, outputs, *POINT))


def make_cross(u: Unit) -> Branches:
    """A 1×3 beside a 3×1 convolution."""
    return Branches([u(384, 384, (1, 3), 1, (0, 1)), u(384, 384, (3, 1), 1, (1, 0))])


def unit(inputs: int, outputs: int, kernel: Side, stride: int = 1, padding: Side = 0) -> ConvUnit:
    """Convolution, batch norm, ReLU."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return ConvUnit(conv, nn.ReLU(inplace=True), eps=0.001)


def make_unit(width: float) -> Unit:
    """Units whose numbers of channels are multiplied by `width`."""

    def u(inputs: int, outputs: int, kernel: Side, stride: int, padding: Side) -> ConvUnit:
        return unit(int(inputs * width), int(outputs * width), kernel, stride, padding)

    return u


class InceptionV3(Pretrained):
    """images (b, channels, height, width), 75 pixels or more -> logits (b, classes)"""

    Config = InceptionV3Config

    def __init__(self, config: InceptionV3Config):
        super().__init__()
        c = self.config = config
        u = make_unit(c.width)
        self.stem = nn.Sequential(
            unit(c.channels, int(32 * c.width), 3, stride=2), u(32, 32, 3, 1, 0), u(32, 64, *THREE),
            nn.MaxPool2d(3, 2), u(64, 80, *POINT), u(80, 192, 3, 1, 0), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        a = mixed_a(u, 192, 32), mixed_a(u, 256, 64), mixed_a(u, 288, 64)
        self.to_17 = nn.Sequential(*a, mixed_b(u, 288), *(mixed_c(u, 768, m) for m in (128, 160, 160, 192)))
        self.to_8 = nn.Sequential(mixed_d(u, 768), mixed_e(u, 1280), mixed_e(u, 2048))
        self.dropout = nn.Dropout(c.dropout)
        self.head = nn.Linear(int(2048 * c.width), c.classes)

    def maps(self, x: Tensor) -> Tensor:
        """The maps of the last module, 8×8 for 299×299 pixels."""
        return self.to_8(self.to_17(self.stem(x)))

    def features(self, x: Tensor) -> Tensor:
        """Their mean over places: 2048 numbers."""
        return self.maps(x).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(x)))


class Auxiliary(nn.Module):
    """A classifier of the maps in the middle: means of 5×5, 1×1 to 128, 5×5 to 768, mean over places, linear."""

    def __init__(self, width: float, classes: int):
        super().__init__()
        self.pool = nn.AvgPool2d(5, 3)
        self.units = nn.Sequential(make_unit(width)(768, 128, *POINT), make_unit(width)(128, 768, 5, 1, 0))
        self.head = nn.Linear(int(768 * width), classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.units(self.pool(x)).mean((2, 3)))


class InceptionV3WithAuxiliary(InceptionV3):
    """With a second classifier on the 17×17 maps, for training."""

    def __init__(self, config: InceptionV3Config):
        super().__init__(config)
        self.auxiliary = Auxiliary(config.width, config.classes)

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the network, and of the auxiliary classifier (its loss counts 0.3 to 0.4); from 299 pixels on."""
        middle = self.to_17(self.stem(x))
        return self.head(self.dropout(self.to_8(middle).mean((2, 3)))), self.auxiliary(middle)


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "InceptionV3WithAuxiliary": InceptionV3WithAuxiliary,
    "InceptionV3": InceptionV3,
}
SIZES = {"inception-v3": InceptionV3Config()}
PARAMETERS = {"inception-v3": 23_834_568}
TINY = InceptionV3Config(channels=2, classes=3, width=0.0625, dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Four images."""
    return torch.randn(4, 2, 107, 111, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("InceptionV3")

STEM = {0: "Conv2d_1a_3x3", 1: "Conv2d_2a_3x3", 2: "Conv2d_2b_3x3", 4: "Conv2d_3b_1x1", 5: "Conv2d_4a_3x3"}
DOUBLE = {"2.0": "branch3x3dbl_1", "2.1": "branch3x3dbl_2"}
ENDS = {"0": "branch1x1", "3.1": "branch_pool"}
PUBLIC = {
    "a": {**ENDS, "1.0": "branch5x5_1", "1.1": "branch5x5_2", **DOUBLE, "2.2": "branch3x3dbl_3"},
    "b": {"0": "branch3x3", **{f"1.{i}": f"branch3x3dbl_{i + 1}" for i in range(3)}},
    "c": {
        **ENDS,
        **{f"1.{i}": f"branch7x7_{i + 1}" for i in range(3)},
        **{f"2.{i}": f"branch7x7dbl_{i + 1}" for i in range(5)},
    },
    "d": {
        **{f"0.{i}": f"branch3x3_{i + 1}" for i in range(2)},
        **{f"1.{i}": f"branch7x7x3_{i + 1}" for i in range(4)},
    },
    "e": {
        **ENDS, "1.0": "branch3x3_1", "1.1.0": "branch3x3_2a", "1.1.1": "branch3x3_2b",
        **DOUBLE, "2.2.0": "branch3x3dbl_3a", "2.2.1": "branch3x3dbl_3b",
    },
}  # fmt: skip
MODULES = {
    "to_17.0": ("a", "5b"), "to_17.1": ("a", "5c"), "to_17.2": ("a", "5d"), "to_17.3": ("b", "6a"),
    "to_17.4": ("c", "6b"), "to_17.5": ("c", "6c"), "to_17.6": ("c", "6d"), "to_17.7": ("c", "6e"),
    "to_8.0": ("d", "7a"), "to_8.1": ("e", "7b"), "to_8.2": ("e", "7c"),
}  # fmt: skip
NAMES = {
    **{f"stem.{i}": name for i, name in STEM.items()},
    **{f"{at}.{a}": f"Mixed_{name}.{b}" for at, (kind, name) in MODULES.items() for a, b in PUBLIC[kind].items()},
    "auxiliary.units.0": "AuxLogits.conv0",
    "auxiliary.units.1": "AuxLogits.conv1",
}
TORCHVISION = [
    *(rename(f"{a}.conv.weight", f"{b}.conv.weight") for a, b in NAMES.items()),
    *(rule for a, b in NAMES.items() for rule in batch_norm(f"{a}.norm", f"{b}.bn")),
    *(
        rename(f"{a}.{p}", f"{b}.{p}")
        for a, b in (("head", "fc"), ("auxiliary.head", "AuxLogits.fc"))
        for p in ("weight", "bias")
    ),
]
"""Names of torchvision's file (`descend.weights.flat`). The network without the auxiliary classifier leaves it out."""
