"""YOLOv4: CSPDarknet, spatial pyramid pooling, a path up and a path down, three grids.

    backbone   CSPDarknet-53 with Mish: maps of strides 8, 16, 32
    pool       three units, [x, max 5×5, max 9×9, max 13×13], three units
    path       as PAN: 1×1 units narrow what comes from above and from the backbone, maps are laid beside each other,
               five units mix them; then down again by 3×3 units of stride 2
    level      a 3×3 unit and the 1×1 head to B (5 + K) maps
    boxes      10,647 of an image of 416: 8,112 + 2,028 + 507 (erratum: MF's sum 13,182 counts the total as one level)
    centre     b_x = a σ(t_x) − (a − 1)/2 + j,  a = 1.2, 1.1, 1.05

The book's YOLOv4/v5 is the same frame: CSPDarknet, PAN, heads, CIoU, mosaic; its post-processing is `decode_sure`.
Layers and anchors are the paper's (Bochkovskiy et al. 2020). The loss is `losses/detection/yolo_v4.py`.

Systems: yolo-v4-v5
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models._yolo import COCO, GridDetector, check_anchors, name_fields
from descend.models.yolo_v3 import alternate
from descend.nn.detection.csp import leaky_unit
from descend.nn.detection.darknet import CspStages
from descend.nn.detection.heads import GridHead
from descend.nn.detection.pan import double
from descend.ranges import Depth, Positive, Share, Width
from descend.weights.labels import Labels

POOLS = (13, 9, 5)


class PooledPath(nn.Module):
    """Three units, the maxima of 13×13, 9×9 and 5×5 pixels beside the maps themselves, three units: w -> w/2."""

    def __init__(self, width: int):
        super().__init__()
        self.before = alternate(width, width, 3)
        self.after = alternate(2 * width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        return self.after(torch.cat([*(F.max_pool2d(x, k, 1, k // 2) for k in POOLS), x], dim=1))


class NarrowPaths(nn.Module):
    """PAN with 1×1 units that narrow its inputs: maps of widths w_l -> the same sizes with w_l / 2 maps."""

    def __init__(self, widths: tuple[int, ...]):
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.above = nn.ModuleList(leaky_unit(b // 2, a // 2) for a, b in pairs)
        self.side = nn.ModuleList(leaky_unit(a, a // 2) for a, _ in pairs)
        self.mix = nn.ModuleList(alternate(a, a) for a, _ in pairs)
        self.down = nn.ModuleList(leaky_unit(a // 2, b // 2, 3, 2) for a, b in pairs)
        self.mix_again = nn.ModuleList(alternate(b, b) for _, b in pairs)

    def forward(self, maps: list[Tensor], top: Tensor) -> list[Tensor]:
        falling = [top]
        for level in reversed(range(len(self.mix))):
            both = [self.side[level](maps[level]), double(self.above[level](falling[-1]))]
            falling.append(self.mix[level](torch.cat(both, dim=1)))
        rising = [falling.pop()]
        for x, down, mix in zip(reversed(falling), self.down, self.mix_again, strict=True):
            rising.append(mix(torch.cat([down(rising[-1]), x], dim=1)))
        return rising


@dataclass(frozen=True)
class YoloV4Config:
    """The defaults are the paper's, for COCO. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 32
    widths: tuple[Width, Width, Width, Width, Width] = (64, 128, 256, 512, 1024)
    depths: tuple[Depth, Depth, Depth, Depth, Depth] = (1, 2, 8, 8, 4)
    """Residual units after each halving."""
    anchors: tuple[Positive, ...] = (12, 16, 19, 36, 40, 28, 36, 75, 76, 55, 72, 146, 142, 110, 192, 243, 459, 401)
    """w, h, w, h, .. in pixels, from the finest level to the coarsest."""
    tau: Share = 0.5
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "anchors"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_anchors(self.anchors, 3)
        if len(self.widths) != 5 or len(self.depths) != 5 or any(width % 2 for width in self.widths):
            raise ValueError(f"widths {self.widths}, depths {self.depths}: five even widths and five depths are needed")


class YoloV4(GridDetector):
    """images (b, channels, h, w), sides multiples of 32 -> `GridFound` of three levels"""

    Config = YoloV4Config
    stride, strides, stretch = 32, (8, 16, 32), (1.2, 1.1, 1.05)

    def __init__(self, config: YoloV4Config):
        super().__init__()
        c = self.config = config
        self.backbone = CspStages(c.channels, c.stem, c.widths, c.depths)
        self.pool = PooledPath(c.widths[-1])
        self.neck = NarrowPaths(c.widths[2:])
        self.expand = nn.ModuleList(leaky_unit(w // 2, w, 3) for w in c.widths[2:])
        self.heads = nn.ModuleList(GridHead(w, len(c.anchors) // 6, len(c.labels)) for w in c.widths[2:])
        self.keep_anchors(c.anchors)

    def score_maps(self, x: Tensor) -> list[Tensor]:
        maps = self.backbone(x)[2:]
        levels = zip(self.neck(maps, self.pool(maps[-1])), self.expand, self.heads, strict=True)
        return [head(expand(y)) for y, expand, head in levels]


SIZES = {"yolo-v4": YoloV4Config(labels=COCO)}
PARAMETERS = {"yolo-v4": 64_363_101}
TINY = YoloV4Config(
    stem=4,
    widths=(4, 6, 8, 8, 12),
    depths=(1, 1, 1, 1, 1),
    anchors=(12.0, 12.0, 24.0, 24.0, 40.0, 40.0),
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


LAYOUT = name_fields(YoloV4Config)
