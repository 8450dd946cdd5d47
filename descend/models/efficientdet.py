"""EfficientDet: an EfficientNet, a BiFPN and light heads, all made larger together.

    C3..C5 = EfficientNet(x)        P3..P7 = BiFPN(C)        classes and offsets of 9 anchors a cell by two light towers
    tower    depth × SiLU(BN_level(conv1×1(depthwise3×3))), then the same without norm: convolutions are shared by the
             levels, their batch norms are not

    φ                0     1     2     3     4     5     6        compound scaling (Tan, Pang and Le 2020, table 1)
    pixels           512   640   768   896   1024  1280  1280
    BiFPN width      64    88    112   160   224   288   384
    BiFPN cells      3     4     5     6     7     7     8
    tower depth      3     3     3     4     4     4     5

Trained by the focal loss (`losses/detection/focal.py`). The books name it only. D0 has 3,877,763 parameters with 90
classes: that of the public PyTorch form, without biases before batch norms; the first release has 2,304 of them more.

Systems: efficientdet
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.contracts import Boxes
from descend.models._regions import best_of_levels, lay_anchors
from descend.models.retinanet import AnchorsFound
from descend.nn.convolution.inverted import InvertedBlock, norm
from descend.nn.detection.bifpn import BiFPN
from descend.nn.detection.fpn import lay_out
from descend.nn.detection.heads import start_unlikely
from descend.ops.boxes import clip_boxes
from descend.ops.detection.coding import LIMIT, decode_offsets
from descend.ranges import Count, Depth, Positive, PositiveShare, Share, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


class LightTower(nn.Module):
    """Levels (b, width, h_i, w_i) -> predictions (b, Σ h_i w_i k, numbers)"""

    def __init__(self, width: int, depth: int, levels: int, anchors: int, numbers: int):
        super().__init__()
        self.depthwise = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False) for _ in range(depth + 1)
        )
        self.pointwise = nn.ModuleList(nn.Conv2d(width, width, 1, bias=False) for _ in range(depth))
        self.norms = nn.ModuleList(nn.ModuleList(norm(width) for _ in range(levels)) for _ in range(depth))
        self.predict = nn.Conv2d(width, anchors * numbers, 1)
        nn.init.normal_(self.predict.weight, std=0.01)
        nn.init.zeros_(self.predict.bias)  # type: ignore[arg-type]
        self.numbers = numbers

    def forward(self, maps: Sequence[Tensor]) -> Tensor:
        return torch.cat([lay_out(self.see(x, i), self.numbers) for i, x in enumerate(maps)], dim=1)

    def see(self, x: Tensor, level: int) -> Tensor:
        """One level."""
        *first, last = self.depthwise
        for depthwise, pointwise, norms in zip(first, self.pointwise, self.norms, strict=True):
            x = F.silu(norms[level](pointwise(depthwise(x))))  # type: ignore[index]
        return self.predict(last(x))


@dataclass(frozen=True)
class EfficientDetConfig:
    """The defaults are those of D0. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 32
    widths: tuple[Width, ...] = (16, 24, 40, 80, 112, 192, 320)
    """Maps of the backbone's stages; of those with one stride the last is looked at, from stride 8 on."""
    depths: tuple[Depth, ...] = (1, 2, 2, 3, 3, 4, 1)
    kernels: tuple[Width, ...] = (3, 3, 5, 3, 5, 5, 3)
    strides: tuple[Width, ...] = (1, 2, 2, 2, 1, 2, 1)
    expand: Width = 6
    """How much wider a block is inside, but for those of the first stage."""
    pyramid: Width = 64
    """Maps of every level."""
    cells: Depth = 3
    """How often the levels are mixed."""
    depth: Depth = 3
    """Convolutions of a tower."""
    size: Positive = 4.0
    """√area of the smallest anchors, in strides."""
    ratios: tuple[Positive, ...] = (1.0, 2.0, 0.5)
    """h / w of the anchors."""
    corner: Share = 0.5
    """Where in its cell an anchor's centre is."""
    candidates: Count = 1000
    """Of each level, before NMS."""
    tau: PositiveShare = 0.5
    """IoU above which the better of two objects of a class suppresses the other."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths", "kernels", "strides", "ratios"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not len(self.widths) == len(self.depths) == len(self.kernels) == len(self.strides):
            raise ValueError("widths, depths, kernels and strides: give one of each for a stage")
        if not self.seen:
            raise ValueError(f"strides {self.strides}: no stage has stride 8 or more, which the pyramid begins at")

    @property
    def seen(self) -> tuple[int, ...]:
        """The stages whose maps are looked at: the last of each stride from 8 on."""
        total = [2 * math.prod(self.strides[: i + 1]) for i in range(len(self.strides))]
        return tuple(i for i, s in enumerate(total) if s >= 8 and s not in total[i + 1 :])


class EfficientDet(Pretrained):
    """images (b, channels, h, w) -> logits and offsets of all anchors"""

    Config = EfficientDetConfig

    def __init__(self, config: EfficientDetConfig):
        super().__init__()
        c = self.config = config
        self.stem = nn.Sequential(nn.Conv2d(c.channels, c.stem, 3, 2, 1, bias=False), norm(c.stem), nn.SiLU())
        self.stages, inputs = nn.ModuleList(), c.stem
        for i, (width, depth, kernel, stride) in enumerate(zip(c.widths, c.depths, c.kernels, c.strides, strict=True)):
            blocks = []
            for j in range(depth):
                blocks.append(InvertedBlock(inputs, width, kernel, 1 if j else stride, c.expand if i else 1))
                inputs = width
            self.stages.append(nn.Sequential(*blocks))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out")
        widths, k = [c.widths[i] for i in c.seen], 3 * len(c.ratios)
        self.neck = BiFPN(widths, c.pyramid, c.cells)
        levels = len(widths) + 2
        self.classes = LightTower(c.pyramid, c.depth, levels, k, len(c.labels))
        self.offsets = LightTower(c.pyramid, c.depth, levels, k, 4)
        start_unlikely(self.classes.predict)
        self.stride = 2 * math.prod(c.strides)

    def forward(self, x: Tensor) -> AnchorsFound:
        maps = self.neck(self.pyramid(x))
        strides = [x.shape[2] // m.shape[2] for m in maps]
        sizes = [[self.config.size * s * 2 ** (k / 3) for k in range(3)] for s in strides]
        anchors = lay_anchors(maps, x, sizes, self.config.ratios, self.config.corner)
        return AnchorsFound(self.classes(maps), self.offsets(maps), *anchors, torch.tensor(x.shape[2:]))

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The backbone's maps that are looked at, fine to coarse."""
        x, found = self.stem(x), []
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i in self.config.seen:
                found.append(x)
        return found

    def decode(self, found: AnchorsFound, least: float = 0.001, most: int = 100) -> Boxes:
        """Objects, best first, after NMS of each class."""
        height, width = found.size.tolist()
        boxes = clip_boxes(decode_offsets(found.offsets.float(), found.anchors, limit=LIMIT), width, height)
        counts, c = torch.bincount(found.level).tolist(), self.config
        return best_of_levels(boxes, found.logits.float().sigmoid(), counts, c.candidates, c.tau, least, most)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(90)))
BACKBONES = ((1.0, 1.0), (1.0, 1.1), (1.1, 1.2), (1.2, 1.4), (1.4, 1.8), (1.6, 2.2), (1.8, 2.6))
"""By how much EfficientNet-B0 .. B6 are wider and deeper than B0."""
PIXELS = (512, 640, 768, 896, 1024, 1280, 1280)
NECKS = ((64, 3, 3), (88, 4, 3), (112, 5, 3), (160, 6, 4), (224, 7, 4), (288, 7, 4), (384, 8, 5))
"""BiFPN width, cells and depth of the towers for φ = 0 .. 6."""


def round_width(width: float) -> int:
    """The nearest multiple of 8, but no more than a tenth smaller."""
    nearest = max(8, int(width + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * width else nearest + 8


def scale_up(phi: int, labels: Labels = COCO) -> EfficientDetConfig:
    """EfficientDet-D0 .. D6."""
    (wider, deeper), (pyramid, cells, depth), b0 = BACKBONES[phi], NECKS[phi], EfficientDetConfig()
    return EfficientDetConfig(
        stem=round_width(wider * b0.stem),
        widths=tuple(round_width(wider * w) for w in b0.widths),
        depths=tuple(math.ceil(deeper * d) for d in b0.depths),
        pyramid=pyramid,
        cells=cells,
        depth=depth,
        labels=labels,
    )


SIZES = {"efficientdet-d0": scale_up(0)}
PARAMETERS = {"efficientdet-d0": 3_877_763}
TINY = EfficientDetConfig(
    stem=4,
    widths=(4, 6, 8),
    depths=(1, 1, 2),
    kernels=(3, 3, 5),
    strides=(1, 2, 2),
    expand=2,
    pyramid=8,
    cells=2,
    depth=1,
    size=2.0,
    labels=Labels(("a", "b", "c")),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 48, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout("EfficientDet", parts={"labels": Labels})
