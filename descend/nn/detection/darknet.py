"""The backbones of YOLO: five halvings, 3×3 convolutions that widen and 1×1 convolutions that narrow.

    Darknet-19      stages of 1, 1, 3, 3, 5, 5 units: 3×3 of w, 1×1 of w/2, 3×3 of w, ..; a 2×2 maximum between stages
    Darknet-53      a stage is a 3×3 unit of stride 2 and n residual units x + 3×3(1×1(x)): 1, 2, 8, 8, 4 of them
    CSPDarknet      a stage is a 3×3 unit of stride 2 and a CSP block around n residual units: 1, 2, 8, 8, 4

The last layer of each classifier (1×1 to the classes, after which the pixels are averaged) is one of the 19 or 53. In
CSPDarknet both paths of the first stage keep all w channels, those of later stages w/2; the book's has no stem of its
own width: five stages of 32, 64, 128, 256 and 512 maps, 208 .. 13 pixels of 416 (MF 24.6.1); blocks per stage are not
given there.
All give the maps of every stage, from fine to coarse.

Systems: yolo-v2, yolo-v3, csp-block-and-darknet
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.convolution.residual import channels_last
from descend.nn.detection.csp import CspEntryBlock, DarknetResidual, Unit, leaky_unit, mish_unit


class PlainDarknet(nn.Module):
    """Darknet-19 without its classifier: maps of strides 1, 2, 4, .. from images."""

    def __init__(self, channels: int, widths: Sequence[int], repeats: Sequence[int], unit: Unit = leaky_unit):
        super().__init__()
        self.stages = nn.ModuleList()
        for width, repeat in zip(widths, repeats, strict=True):
            outputs = [width if i % 2 == 0 else width // 2 for i in range(repeat)]
            sizes = enumerate(pairwise((channels, *outputs)))
            self.stages.append(nn.Sequential(*(unit(a, b, 3 if i % 2 == 0 else 1, 1) for i, (a, b) in sizes)))
            channels = outputs[-1]

    def forward(self, x: Tensor) -> list[Tensor]:
        maps: list[Tensor] = []
        for stage in self.stages:
            maps.append(stage(F.max_pool2d(maps[-1], 2) if maps else channels_last(x)))
        return maps


class ResidualDarknet(nn.Module):
    """Darknet-53 without its classifier: maps of strides 2, 4, 8, .. from images."""

    def __init__(self, channels: int, stem: int, widths: Sequence[int], depths: Sequence[int]):
        super().__init__()
        self.stem = leaky_unit(channels, stem, 3, 1)
        steps = zip(pairwise((stem, *widths)), depths, strict=True)
        self.stages = nn.ModuleList(
            nn.Sequential(leaky_unit(a, b, 3, 2), *(DarknetResidual(b, b // 2) for _ in range(depth)))
            for (a, b), depth in steps
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        maps = [self.stem(channels_last(x))]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        return maps[1:]


def csp_stage(inputs: int, outputs: int, depth: int, hidden: int, unit: Unit = mish_unit) -> nn.Sequential:
    """Half the size, then a CSP block with `hidden` channels on either path around `depth` residual units."""
    inside = [DarknetResidual(hidden, outputs // 2, unit) for _ in range(depth)]
    inner = nn.Sequential(*inside, unit(hidden, hidden, 1, 1))
    return nn.Sequential(unit(inputs, outputs, 3, 2), CspEntryBlock(outputs, outputs, hidden, inner, unit))


class CspStages(nn.Module):
    """CSPDarknet without its classifier: maps of strides 2, 4, 8, .. from images."""

    def __init__(self, channels: int, stem: int, widths: Sequence[int], depths: Sequence[int], unit: Unit = mish_unit):
        super().__init__()
        self.stem = unit(channels, stem, 3, 1)
        steps = enumerate(zip(pairwise((stem, *widths)), depths, strict=True))
        self.stages = nn.ModuleList(
            csp_stage(a, b, depth, b if i == 0 else b // 2, unit) for i, ((a, b), depth) in steps
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        maps = [self.stem(channels_last(x))]
        for stage in self.stages:
            maps.append(stage(maps[-1]))
        return maps[1:]
