"""ViT-Det: a vision transformer as the backbone of a detector, in the text's form or in the original's.

    hierarchical   Swin: four stages of maps by patch merging, then an FPN         the text's ("conflates two systems")
    plain          ViTDet: one map, and a simple feature pyramid made of it        the original's
    both give      maps of `width` channels at the strides 4, 8, 16, 32
    head           class logits and distances to the four sides at every cell, as YOLOv8's

The original's heads are those of Mask R-CNN; the head here needs neither proposals nor anchors, and is trained by the
loss of YOLOv8 (`losses/detection/task_aligned.py`). Training times and accuracies of the text are claims without a
measurement, and are not repeated.

Systems: vit-det
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.models.swin import KEYS as SWIN_KEYS
from descend.models.swin import LAYOUT as SWIN
from descend.models.swin import SwinConfig, SwinStages
from descend.models.vitdet import KEYS as VIT_KEYS
from descend.models.vitdet import LAYOUT as VIT
from descend.models.vitdet import VitDet, VitDetConfig
from descend.models.yolo_v8 import FoundDistances
from descend.nn.detection.fpn import NoLevels, SmoothedPyramid
from descend.nn.detection.heads import DistanceHead
from descend.nn.detection.plain_pyramid import PlainPyramid
from descend.ops.detection.distances import distances_to_boxes, expected_distance, make_points
from descend.ops.nms import keep_best
from descend.ranges import Share, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout, config_from_json, config_to_json
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, drop, subtree

LEVELS = 4


@dataclass(frozen=True)
class VitDetectorConfig:
    """The defaults are those of Swin-T with an FPN of 256 maps. A recipe takes channels and labels from its data."""

    channels: Width = 3
    backbone: Any = field(default_factory=SwinConfig)
    """A SwinConfig (hierarchical) or a VitDetConfig (plain)."""
    width: Width = 256
    """Maps of every level."""
    bins: Width = 16
    """How many distances, in strides, a side is distributed over: 0 .. bins − 1."""
    tau: Share = 0.65
    """Of two boxes of a class with a larger IoU, the one with the lower score is removed."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backbone", replace(self.backbone, channels=self.channels))
        if isinstance(self.backbone, SwinConfig) and len(self.backbone.depths) != LEVELS:
            raise ValueError(f"a backbone of {len(self.backbone.depths)} stages; the pyramid has {LEVELS} levels")
        if self.finest * 4 != self.backbone.patch * (4 if isinstance(self.backbone, SwinConfig) else 1):
            raise ValueError(f"patches of {self.backbone.patch}: a plain backbone needs a multiple of 4")

    @property
    def finest(self) -> int:
        """Stride of the finest level."""
        return self.backbone.patch if isinstance(self.backbone, SwinConfig) else self.backbone.patch // 4

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.finest * 2**i for i in range(LEVELS))


class Hierarchical(nn.Module):
    """A Swin's maps of four stages and an FPN: images -> maps (b, width, ..), fine to coarse"""

    def __init__(self, config: SwinConfig, width: int):
        super().__init__()
        self.backbone = SwinStages(config)
        self.backbone.norm = nn.Identity()  # type: ignore[assignment]
        widths = [config.width * 2**i for i in range(LEVELS)]
        self.pyramid = SmoothedPyramid(widths, width, NoLevels())

    def forward(self, x: Tensor) -> list[Tensor]:
        return self.pyramid(self.backbone.pyramid(x))


class Plain(nn.Module):
    """The last map of a ViTDet and a simple pyramid: images -> maps (b, width, ..), fine to coarse"""

    def __init__(self, config: VitDetConfig, width: int):
        super().__init__()
        self.backbone = VitDet(config)
        self.pyramid = PlainPyramid(config.width, width)

    def forward(self, x: Tensor) -> list[Tensor]:
        return self.pyramid(self.backbone.maps(x))


class VitDetector(Pretrained):
    """images (b, channels, h, w), sides multiples of `stride` -> `FoundDistances`"""

    Config = VitDetectorConfig

    def __init__(self, config: VitDetectorConfig):
        super().__init__()
        c = self.config = config
        self.stride = c.strides[-1]
        is_plain = isinstance(c.backbone, VitDetConfig)
        self.body = Plain(c.backbone, c.width) if is_plain else Hierarchical(c.backbone, c.width)
        hidden = max(c.width, min(len(c.labels), 100)), max(16, c.width // 4, 4 * c.bins)
        self.head = DistanceHead((c.width,) * LEVELS, len(c.labels), c.bins, hidden)
        self.register_buffer("bins", torch.arange(float(c.bins)), persistent=False)
        self.bins: Tensor

    def forward(self, x: Tensor) -> FoundDistances:
        maps = self.body(x)
        points, strides = make_points([(m.shape[2], m.shape[3]) for m in maps], self.config.strides, x)
        logits, sides = self.head(maps)
        boxes = distances_to_boxes(expected_distance(sides, self.bins), points, strides)
        return FoundDistances(logits, sides, boxes, points, strides)

    def decode(self, found: FoundDistances, least: float = 0.001, most: int = 100) -> Boxes:
        """The best class of each point, without duplicates."""
        scores, classes = found.logits.sigmoid().max(dim=-1)
        return keep_best(found.boxes, scores, classes, self.config.tau, least, most)


TINY = VitDetectorConfig(
    backbone=SwinConfig(width=8, depths=(1, 1, 1, 1), heads=(1, 2, 2, 2), window=2, ratio=2.0, drop_path=0.0),
    width=8,
    bins=4,
    labels=Labels(("a", "b", "c")),
)
TINY_PLAIN = replace(
    TINY,
    backbone=VitDetConfig(
        side=64, pretrained_side=32, width=16, depth=2, heads=2, ratio=2, window=2, windowed=(0,), relative=True
    ),
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))


def read_values(values: dict[str, Any]) -> dict[str, Any]:
    """With the backbone as a config of ours."""
    given, where = values.get("backbone_config") or {}, Path("backbone_config")
    if given.get("model_type", "swin") == "swin":
        return values | {"backbone_config": config_from_json(SwinConfig, SWIN, given, where)}
    if given["model_type"] == "vitdet":
        return values | {"backbone_config": config_from_json(VitDetConfig, VIT, given, where)}
    raise Mistake(f"backbone_config: {given['model_type']!r} is not known; known: swin, vitdet")


def write_values(values: dict[str, Any]) -> dict[str, Any]:
    """With the backbone as transformers writes it."""
    backbone = values["backbone_config"]
    layout, kind = (VIT, "vitdet") if isinstance(backbone, VitDetConfig) else (SWIN, "swin")
    return values | {"backbone_config": config_to_json(backbone, layout, kind, "float32")}


LAYOUT = Layout(
    architecture="VitDetector",
    library="descend",
    fields={
        "channels": "num_channels",
        "backbone": "backbone_config",
        "width": "pyramid_size",
        "bins": "bins",
        "tau": "tau",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    older=read_values,
    newer=write_values,
)


def move(rules: list[Rule]) -> list[Rule]:
    """The rules of a backbone under `backbone.`; its head, and the norm before it, are not there."""
    kept = [rule for rule in rules if not rule.ours.startswith(("head.", "norm."))]
    ours = [replace(rule, ours=rule.ours and f"body.backbone.{rule.ours}") for rule in kept]
    return [replace(rule, theirs=f"backbone.{rule.theirs.removeprefix('swin.')}") for rule in ours]


KEYS = [
    *move(VIT_KEYS),
    *move(SWIN_KEYS),
    *(drop(f"backbone.layernorm.{p}") for p in ("weight", "bias")),
    subtree("body.pyramid", "pyramid"),
    subtree("head"),
]
