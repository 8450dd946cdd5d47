"""ResNet: a deep stack of residual blocks, y = ReLU(F(x) + S(x)), in stages that halve the image and widen the maps.

    stem      conv 7×7/2, BN, ReLU, max-pool 3×3/2        224 → 112 → 56
    stage i   depths[i] blocks of widths[i] maps           56, 28, 14, 7: the first block of stages 2.. has stride 2
    head      logits = W_c f + b_c                         f: the mean of the last maps over their pixels

    18, 34          basic blocks       (2, 2, 2, 2), (3, 4, 6, 3)                          two layers each
    50, 101, 152    bottleneck blocks  (3, 4, 6, 3), (3, 4, 23, 3), (3, 8, 36, 3)          three layers each
    layers = 1 + (layers of a block) · Σ depths + 1        projections are not counted

The blocks are those of `nn/convolution/residual.py`. A stage begins with a projection where shapes change; all other
shortcuts are the identity. The stride of a bottleneck is in its 3×3 convolution, or in the first 1×1 (the paper:
`stride_first`). Erratum: MF (22.14) prints a max-pool without padding, which makes 55 of 112; 56 needs padding 1.
`pyramid` gives the maps of all stages (MF's F2 .. F5). `TORCHVISION` has the names of torchvision's files.

Systems: resnet
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.models._image_heads import MeanClassifier
from descend.nn.convolution.residual import BasicBlock, BottleneckBlock, ConvNorm, channels_last, stages
from descend.ranges import Depth, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.rules import Rule, batch_norm, rename


@dataclass(frozen=True)
class ResNetConfig:
    """The defaults are those of ResNet-50. A recipe takes channels and labels from its data."""

    channels: Width = 3
    stem: Width = 64
    widths: tuple[Width, ...] = (256, 512, 1024, 2048)
    """Maps that the stages give; a bottleneck has a quarter of them inside."""
    depths: tuple[Depth, ...] = (3, 4, 6, 3)
    block: str = "bottleneck"
    """basic or bottleneck"""
    halve_first: bool = False
    """Whether the first stage halves the image too."""
    stride_first: bool = False
    """Whether a bottleneck's stride is in its first 1×1 convolution."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.block not in LAYERS:
            raise ValueError(f"block {self.block!r} is unknown; known: {', '.join(LAYERS)}")

    @property
    def layers(self) -> int:
        """The number in the network's name."""
        return 1 + LAYERS[self.block] * sum(self.depths) + 1

    def make(self) -> Callable[[int, int, int], nn.Module]:
        """(inputs, outputs, stride) -> a block"""
        if self.block == "basic":
            return BasicBlock
        if self.stride_first:
            return lambda inputs, outputs, stride: BottleneckBlock(inputs, outputs, (stride, 1))
        return lambda inputs, outputs, stride: BottleneckBlock(inputs, outputs, (1, stride))


LAYERS = {"basic": 2, "bottleneck": 3}
"""Layers with weights in a block, its shortcut not counted."""


class ResNet(MeanClassifier):
    """images (b, channels, h, w) -> logits (b, classes)"""

    Config = ResNetConfig

    def __init__(self, config: ResNetConfig):
        super().__init__()
        c = self.config = config
        self.stem = ConvNorm(c.channels, c.stem, 7, 2)
        strides = (1 + c.halve_first, *(2,) * (len(c.depths) - 1))
        self.stages = stages(c.make(), (c.stem, *c.widths), c.depths, strides)
        self.head = nn.Linear(c.widths[-1], len(c.labels))

    def maps(self, x: Tensor) -> Tensor:
        """The last stage's maps (b, d, h', w')."""
        return self.pyramid(x)[-1]

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The maps of every stage, from fine to coarse."""
        x = channels_last(F.relu(self.stem(channels_last(x))))
        x, found = F.max_pool2d(x, 3, 2, padding=1), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found


IMAGENET = Labels(tuple(f"LABEL_{k}" for k in range(1000)))
BASIC = (64, 128, 256, 512)
SIZES = {
    "resnet-18": ResNetConfig(widths=BASIC, depths=(2, 2, 2, 2), block="basic", labels=IMAGENET),
    "resnet-34": ResNetConfig(widths=BASIC, depths=(3, 4, 6, 3), block="basic", labels=IMAGENET),
    "resnet-50": ResNetConfig(labels=IMAGENET),
    "resnet-101": ResNetConfig(depths=(3, 4, 23, 3), labels=IMAGENET),
    "resnet-152": ResNetConfig(depths=(3, 8, 36, 3), labels=IMAGENET),
}
PARAMETERS = {
    "resnet-18": 11_689_512,
    "resnet-34": 21_797_672,
    "resnet-50": 25_557_032,
    "resnet-101": 44_549_160,
    "resnet-152": 60_192_808,
}
TINY = ResNetConfig(stem=6, widths=(8, 12), depths=(2, 1), labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 17, 22, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="ResNetForImageClassification",
    fields={
        "channels": "num_channels",
        "stem": "embedding_size",
        "widths": "hidden_sizes",
        "depths": "depths",
        "block": "layer_type",
        "halve_first": "downsample_in_first_stage",
        "stride_first": "downsample_in_bottleneck",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"hidden_act": "relu"},
    bare_prefix="resnet.",
)


def pair(ours: str, conv: str, norm: str) -> list[Rule]:
    """The tensors of a convolution and its batch norm."""
    return [rename(f"{ours}.conv.weight", f"{conv}.weight"), *batch_norm(f"{ours}.norm", norm)]


def their_pair(ours: str, theirs: str) -> list[Rule]:
    return pair(ours, f"{theirs}.convolution", f"{theirs}.normalization")


KEYS = [
    *their_pair("stem", "resnet.embedder.embedder"),
    *(
        rule
        for n in range(3)
        for rule in their_pair(f"stages.{{}}.{{}}.conv_{n + 1}", f"resnet.encoder.stages.{{}}.layers.{{}}.layer.{n}")
    ),
    *their_pair("stages.{}.{}.shortcut", "resnet.encoder.stages.{}.layers.{}.shortcut"),
    *(rename(f"head.{p}", f"classifier.1.{p}") for p in ("weight", "bias")),
]

TORCHVISION = [
    *pair("stem", "conv1", "bn1"),
    *(
        rule
        for s in range(4)
        for n in (1, 2, 3)
        for rule in pair(f"stages.{s}.{{}}.conv_{n}", f"layer{s + 1}.{{}}.conv{n}", f"layer{s + 1}.{{}}.bn{n}")
    ),
    *(
        rule
        for s in range(4)
        for rule in pair(
            f"stages.{s}.{{}}.shortcut", f"layer{s + 1}.{{}}.downsample.0", f"layer{s + 1}.{{}}.downsample.1"
        )
    ),
    *(rename(f"head.{p}", f"fc.{p}") for p in ("weight", "bias")),
]
