"""DeepFace: convolutions, then layers that are connected locally without sharing weights, then one vector of the face.

    C1  conv 11×11        32 maps of 142×142          M2  max pool 3×3, stride 2        71×71
    C3  conv 9×9          16 maps of 63×63            what every face has alike: edges and texture
    L4  local 9×9         16 maps of 55×55            weights of its own at every place: faces are aligned
    L5  local 7×7 / 2     16 maps of 25×25
    L6  local 5×5         16 maps of 21×21
    F7  the representation: 4,096 numbers, ReLU       F8  logits of the identities, used in training only

DLN names DeepFace with Siamese networks for face and signature verification; these are the sizes of the paper (Taigman
et al., 2014) for aligned images of 152×152. Two images are of the same person where d(F7(a), F7(b)) is small: the same
weights read both, so d(a, b) = d(b, a). F7 is normalised to length 1 (the paper divides by the training set's maxima
first). (`tasks/verify`.) Left out: the 3-D alignment of faces, which is no network.

Parameters: 118,923,774 with 4,030 identities, of which the two convolutions have 53,136 (the paper says "more than 120
million", most of them in the local and dense layers).

Systems: deepface-verification
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.nn.convolution.local import LocallyConnected2d
from descend.ranges import Fraction, Range, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

Stride = Annotated[int, Range(int, least=1, most=64)]


@dataclass(frozen=True)
class DeepFaceConfig:
    """The defaults are the paper's; a recipe takes image and identities from its data."""

    image: tuple[Side, Side, Side] = (3, 152, 152)
    """Channels, height, width."""
    classes: Width = 4030
    """Identities of the training images."""
    convs: tuple[Width, ...] = (32, 16)
    """Maps of the two convolutions, before and after the pool."""
    kernels: tuple[Side, ...] = (11, 9)
    """Their kernels."""
    pool: Stride = 2
    """Stride of the pool of 3×3; 1: no pool."""
    local: Width = 16
    """Maps of the local layers."""
    local_kernels: tuple[Side, ...] = (9, 7, 5)
    """Their kernels; one layer each."""
    strides: tuple[Stride, ...] = (1, 2, 1)
    """Their strides."""
    width: Width = 4096
    """Numbers of the representation."""
    dropout: Fraction = 0.0
    """Before the representation."""

    def __post_init__(self) -> None:
        for name in ("image", "convs", "kernels", "local_kernels", "strides"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if len(self.convs) != 2 or len(self.kernels) != 2:
            raise ValueError(f"convs {self.convs}, kernels {self.kernels}: DeepFace has two convolutions")
        if len(self.local_kernels) != len(self.strides):
            raise ValueError(f"local_kernels {self.local_kernels}, strides {self.strides}: one stride for each layer")


class DeepFace(Pretrained):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = DeepFaceConfig

    def __init__(self, config: DeepFaceConfig):
        super().__init__()
        c = self.config = config
        channels, height, width = c.image
        pool = nn.MaxPool2d(3, c.pool, padding=1) if c.pool > 1 else nn.Identity()
        size = height, width
        layers: list[nn.Module] = []
        for i, (maps, kernel) in enumerate(zip(c.convs, c.kernels, strict=True)):
            layers += [nn.Conv2d(channels, maps, kernel), nn.ReLU(), *([pool] if i == 0 else [])]
            size = tuple(edge - kernel + 1 for edge in size)  # type: ignore[assignment]
            if i == 0 and c.pool > 1:
                size = tuple((edge - 1) // c.pool + 1 for edge in size)  # type: ignore[assignment]
            channels = maps
        for kernel, stride in zip(c.local_kernels, c.strides, strict=True):
            if min(size) < kernel:
                raise ValueError(
                    f"images of {height}×{width} are too small: {size[0]}×{size[1]} are left for {kernel}×{kernel}"
                )
            layer = LocallyConnected2d(channels, c.local, size, kernel, stride)
            layers += [layer, nn.ReLU()]
            size, channels = layer.size, c.local
        self.layers = nn.Sequential(*layers)
        self.represent = nn.Linear(channels * size[0] * size[1], c.width)
        self.drop = nn.Dropout(c.dropout)
        self.head = nn.Linear(c.width, c.classes)

    def features(self, x: Tensor) -> Tensor:
        """F7 (b, width)"""
        found: Tensor = self.represent(self.drop(self.layers(x).flatten(1))).relu()
        return found

    def embed(self, x: Tensor) -> Tensor:
        """F7 of length 1: what two images are compared by (b, width)."""
        return normalize(self.features(x), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


SIZES = {"deepface": DeepFaceConfig()}
PARAMETERS = {"deepface": 118_923_774}
TINY = DeepFaceConfig(
    image=(1, 20, 18), classes=3, convs=(4, 5), kernels=(3, 3), local=4, local_kernels=(3, 2), strides=(1, 1), width=8
)


def TINY_INPUT() -> Tensor:
    """Four images."""
    return torch.randn(4, *TINY.image, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("DeepFace")
