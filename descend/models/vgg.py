"""VGG: only 3×3 convolutions, in blocks that a pool ends, then three dense layers.

    x ← max-pool(ReLU(W_n * .. ReLU(W_1 * x)))        five blocks; 3×3 kernels keep the size, the pool halves it
    f6, f7  4096 units with dropout ½        logits = W f7 + b

    convolutions in the blocks          parameters
    VGG-11    1, 1, 2, 2, 2            132,863,336
    VGG-13    2, 2, 2, 2, 2            133,047,848
    VGG-16    2, 2, 3, 3, 3            138,357,544        13 convolutions and 3 dense layers
    VGG-19    2, 2, 4, 4, 4            143,667,240

Two 3×3 convolutions see 5×5 pixels with 18 C² weights instead of 25 C². 89.4% of VGG-16 are dense layers.
Erratum: DLN makes VGG-19 of VGG-16 by three more convolutions at the end. The paper adds one to each of the blocks 3, 4
and 5; three at the end would be 145,436,968 parameters. The layers are one flat list, in the order of the public files.
With batch norm: `descend.models.vgg_bn`.

Systems: vgg
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.ranges import Depth, Fraction, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename


@dataclass(frozen=True)
class VGGConfig:
    """The defaults are VGG-16; a recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 224, 224)
    """Channels, height, width."""
    classes: Width = 1000
    convs: tuple[Depth, ...] = (2, 2, 3, 3, 3)
    """Convolutions of each block."""
    widths: tuple[Width, ...] = (64, 128, 256, 512, 512)
    """Maps of each block."""
    grid: Width = 7
    """Side of the maps that the dense layers see; others are averaged to it."""
    hidden: Width = 4096
    dropout: Fraction = 0.5

    def __post_init__(self) -> None:
        for name in ("image", "convs", "widths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.convs) != len(self.widths):
            raise ValueError(f"{len(self.convs)} blocks of convolutions, but {len(self.widths)} widths; give as many")
        if min(self.image[1:]) >> len(self.convs) < 1:
            height, width = self.image[1:]
            raise ValueError(f"images of {height}×{width} are too small for {len(self.convs)} pools")


class VGG(Pretrained):
    """images (b, channels, height, width) -> logits (b, classes)"""

    Config = VGGConfig

    def __init__(self, config: VGGConfig):
        super().__init__()
        c = self.config = config
        layers: list[nn.Module] = []
        channels = c.image[0]
        for convs, width in zip(c.convs, c.widths, strict=True):
            for _ in range(convs):
                layers += self.unit(channels, width)
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.layers = nn.Sequential(*layers)
        self.average = nn.AdaptiveAvgPool2d(c.grid)
        self.dropout = nn.Dropout(c.dropout)
        self.f6 = nn.Linear(channels * c.grid**2, c.hidden)
        self.f7 = nn.Linear(c.hidden, c.hidden)
        self.head = nn.Linear(c.hidden, c.classes)
        for layer in self.layers:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        for dense in (self.f6, self.f7, self.head):
            nn.init.normal_(dense.weight, std=0.01)
            nn.init.zeros_(dense.bias)

    def unit(self, inputs: int, outputs: int) -> list[nn.Module]:
        """One convolution and what follows it."""
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)]

    def maps(self, x: Tensor) -> Tensor:
        """The maps after the last pool."""
        return self.layers(x)

    def features(self, x: Tensor) -> Tensor:
        """The 4096 units of f7."""
        x = self.average(self.maps(x)).flatten(1)
        x = self.dropout(self.f6(x).relu())
        return self.f7(x).relu()

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(x)))


CONVS = {
    "vgg-11": (1, 1, 2, 2, 2),
    "vgg-13": (2, 2, 2, 2, 2),
    "vgg-16": (2, 2, 3, 3, 3),
    "vgg-19": (2, 2, 4, 4, 4),
}
SIZES = {name: VGGConfig(convs=convs) for name, convs in CONVS.items()}
PARAMETERS = {"vgg-11": 132_863_336, "vgg-13": 133_047_848, "vgg-16": 138_357_544, "vgg-19": 143_667_240}
TINY = VGGConfig((2, 9, 11), 3, (2, 1, 2), (4, 6, 8), grid=2, hidden=10, dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("VGG")

PARTS = ("layers.{}", "f6", "f7", "head")
PUBLIC = ("features.{}", "classifier.0", "classifier.3", "classifier.6")
TORCHVISION = [rename(f"{a}.{p}", f"{b}.{p}") for a, b in zip(PARTS, PUBLIC, strict=True) for p in ("weight", "bias")]
"""Names of torchvision's files vgg11 .. vgg19 (`descend.weights.flat`)."""
