"""The ResNet of RT-DETR (ResNet-vd): three small convolutions for the large one, and shortcuts that lose no pixels.

    stem       conv 3×3/2, conv 3×3, conv 3×3, max-pool 3×3/2          instead of one 7×7/2
    shortcut   mean of 2×2 pixels, then a projection, where a stage halves the map: a 1×1 convolution of stride 2 would
               read every fourth pixel only

Everything else is ResNet (`models/resnet.py`): stages of basic or bottleneck blocks. `pyramid` gives S2 .. S5 of
strides 4, 8, 16, 32; RT-DETR reads the last three. The basic form projects the shortcut of its first stage, too,
although no shape changes there.

Systems: rt-detr
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.convolution.residual import BasicBlock, BottleneckBlock, ConvNorm, channels_last
from descend.ranges import Depth, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, batch_norm, rename


@dataclass(frozen=True)
class RTDetrResNetConfig:
    """The defaults are those of ResNet-50-vd."""

    channels: Width = 3
    stem: Width = 64
    widths: tuple[Width, ...] = (256, 512, 1024, 2048)
    depths: tuple[Depth, ...] = (3, 4, 6, 3)
    block: str = "bottleneck"
    """basic or bottleneck"""

    def __post_init__(self) -> None:
        for name in ("widths", "depths"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.block not in ("basic", "bottleneck"):
            raise ValueError(f"block {self.block!r} is unknown; known: basic, bottleneck")
        if len(self.widths) != len(self.depths):
            raise ValueError(f"{len(self.widths)} widths and {len(self.depths)} depths; give one each a stage")


def pooled_projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The mean of 2×2 pixels and a projection where the map is halved, else a projection."""
    if stride == 1:
        return ConvNorm(inputs, outputs, 1)
    return nn.Sequential(nn.AvgPool2d(2, 2, ceil_mode=True), ConvNorm(inputs, outputs, 1))


def strided_projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    """A projection that reads every fourth pixel: basic blocks whose width stays."""
    return ConvNorm(inputs, outputs, 1, stride)


def make_stage(block: str, inputs: int, outputs: int, depth: int, stride: int) -> nn.Sequential:
    """The first block may change the shape, the others do not."""
    if block == "bottleneck":
        shapes = [(inputs, outputs, stride), *[(outputs, outputs, 1)] * (depth - 1)]
        return nn.Sequential(
            *(BottleneckBlock(a, b, (1, s), keep if (a, s) == (b, 1) else pooled_projection) for a, b, s in shapes)
        )
    shortcut = strided_projection if inputs == outputs else pooled_projection
    others = (BasicBlock(outputs, outputs) for _ in range(depth - 1))
    return nn.Sequential(BasicBlock(inputs, outputs, stride, shortcut), *others)


def keep(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The identity."""
    return nn.Identity()


class RTDetrResNet(Pretrained):
    """images (b, channels, h, w) -> the maps of all stages, fine to coarse"""

    Config = RTDetrResNetConfig

    def __init__(self, config: RTDetrResNetConfig):
        super().__init__()
        c = self.config = config
        shapes = ((c.channels, c.stem // 2, 2), (c.stem // 2, c.stem // 2, 1), (c.stem // 2, c.stem, 1))
        self.stem = nn.ModuleList(ConvNorm(a, b, 3, s) for a, b, s in shapes)
        widths = zip((c.stem, *c.widths), c.widths, c.depths, strict=False)
        self.stages = nn.ModuleList(make_stage(c.block, a, b, n, 1 + (i > 0)) for i, (a, b, n) in enumerate(widths))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.pyramid(x))

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The maps of every stage, from fine to coarse."""
        x = channels_last(x)
        for conv in self.stem:
            x = channels_last(F.relu(conv(x)))
        x, found = F.max_pool2d(x, 3, 2, padding=1), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found


SIZES = {
    "resnet-18-vd": RTDetrResNetConfig(widths=(64, 128, 256, 512), depths=(2, 2, 2, 2), block="basic"),
    "resnet-50-vd": RTDetrResNetConfig(),
}
PARAMETERS = {"resnet-18-vd": 11_199_968, "resnet-50-vd": 23_527_264}
TINY = RTDetrResNetConfig(stem=6, widths=(8, 12), depths=(2, 1))


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 17, 22, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="RTDetrResNetBackbone",
    fields={
        "channels": "num_channels",
        "stem": "embedding_size",
        "widths": "hidden_sizes",
        "depths": "depths",
        "block": "layer_type",
    },
    fixed={"hidden_act": "relu", "downsample_in_first_stage": False, "downsample_in_bottleneck": False},
)


def conv_keys(ours: str, theirs: str) -> list[Rule]:
    """A convolution and its batch norm."""
    conv = rename(f"{ours}.conv.weight", f"{theirs}.convolution.weight")
    return [conv, *batch_norm(f"{ours}.norm", f"{theirs}.normalization")]


KEYS = [
    *conv_keys("stem.{}", "embedder.embedder.{}"),
    *(
        rule
        for n in range(3)
        for rule in conv_keys(f"stages.{{}}.{{}}.conv_{n + 1}", f"encoder.stages.{{}}.layers.{{}}.layer.{n}")
    ),
    *conv_keys("stages.{}.{}.shortcut", "encoder.stages.{}.layers.{}.shortcut"),
    *conv_keys("stages.{}.{}.shortcut.1", "encoder.stages.{}.layers.{}.shortcut.1"),
]
