"""VGG with a batch norm behind each convolution: it trains from the start at full depth.

    x ← max-pool(ReLU(BN(W_n * .. ReLU(BN(W_1 * x)))))

Else it is `descend.models.vgg`. The convolutions keep their biases, as in the public files, although the norm takes
them away again: their gradient in training is zero but for rounding.

Systems: vgg
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from descend.models import vgg
from descend.models.vgg import CONVS, VGG, VGGConfig
from descend.weights.rules import batch_norm


@dataclass(frozen=True)
class VGGBNConfig(VGGConfig):
    """The same numbers as VGG."""


class VGGBN(VGG):
    """images (b, channels, height, width) -> logits (b, classes)"""

    Config = VGGBNConfig

    def unit(self, inputs: int, outputs: int) -> list[nn.Module]:
        """Convolution, batch norm, ReLU."""
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]


SIZES = {f"{name}-bn": VGGBNConfig(convs=convs) for name, convs in CONVS.items()}
PARAMETERS = {
    "vgg-11-bn": 132_868_840,
    "vgg-13-bn": 133_053_736,
    "vgg-16-bn": 138_365_992,
    "vgg-19-bn": 143_678_248,
}
TINY = VGGBNConfig((2, 9, 11), 3, (2, 1, 2), (4, 6, 8), grid=2, hidden=10, dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Three images."""
    return torch.randn(3, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = replace(vgg.LAYOUT, architecture="VGGBN")
TORCHVISION = [*vgg.TORCHVISION, *batch_norm("layers.{}", "features.{}")]
"""Names of torchvision's files vgg11_bn .. vgg19_bn (`descend.weights.flat`)."""
