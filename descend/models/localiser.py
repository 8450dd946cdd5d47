"""Classification and localisation: one backbone, two heads. What is it, and where is it?

    φ = convolutions(x)                         each halves the image but for the first
    logits = W mean(φ) + b                      the class: no place in it
    box = sigmoid(V flatten(φ) + c)             x0, y0, x1, y1 as shares of width and height: here places count

The backbone may come from a classifier, and the class head is replaced for new classes, as in all transfer learning
(DLN: downstream tasks reuse the backbone). The loss is in `descend.tasks.localise`.

Systems: transfer-learning
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.ranges import Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class LocaliserConfig:
    """A recipe takes image and classes from its data."""

    image: tuple[Side, Side, Side] = (3, 32, 32)
    """Channels, height, width."""
    classes: Width = 6
    widths: tuple[Width, ...] = (16, 32, 64)
    """Maps of each convolution."""

    def __post_init__(self) -> None:
        for name in ("image", "widths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if min(self.sides) < 1 or not self.widths:
            raise ValueError(f"widths {self.widths} need at least one convolution and an image")

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the last maps."""
        halvings = 2 ** (len(self.widths) - 1)
        return -(-self.image[1] // halvings), -(-self.image[2] // halvings)


class Located(NamedTuple):
    """Logits (b, classes), and boxes (b, 4) as shares of the image."""

    logits: Tensor
    box: Tensor


class ConvLayer(nn.Module):
    """A 3×3 convolution, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.conv(x))
        return y.relu()


class Localiser(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes), boxes (b, 4)"""

    Config = LocaliserConfig

    def __init__(self, config: LocaliserConfig):
        super().__init__()
        c = self.config = config
        sizes = pairwise((c.image[0], *c.widths))
        self.layers = nn.ModuleList(ConvLayer(n, out, 1 if i == 0 else 2) for i, (n, out) in enumerate(sizes))
        self.box = nn.Linear(c.widths[-1] * c.sides[0] * c.sides[1], 4)
        self.head = nn.Linear(c.widths[-1], c.classes)

    def forward(self, x: Tensor) -> Located:
        maps = self.maps(x)
        return Located(self.head(maps.mean(dim=(2, 3))), self.box(maps.flatten(1)).sigmoid())

    def features(self, x: Tensor) -> Tensor:
        """The mean of the last maps over their pixels (b, d)."""
        return self.maps(x).mean(dim=(2, 3))

    def maps(self, x: Tensor) -> Tensor:
        """The last maps (b, d, h', w')."""
        for layer in self.layers:
            x = layer(x)
        return x


TINY = LocaliserConfig(image=(3, 9, 10), classes=3, widths=(4, 6))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("Localiser")
