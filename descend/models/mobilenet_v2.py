"""MobileNet v2: residual blocks turned inside out, wide within and narrow between.

    e = ReLU6(BN(V_1 x))              1×1, to 6 times the channels
    d = ReLU6(BN(W * e))              3×3, each channel for itself, stride 1 or 2
    y = BN(V_2 d) + x                 1×1, back to few channels; no ReLU, which would lose what few channels carry
                                      the sum only where the shapes agree

16 such blocks after a stem, a last 1×1 convolution to 1280 channels, the mean over places, dropout, logits = W x̄ + b.
Numbers of channels are multiples of 8. With `output_stride` 8 or 16 the later blocks keep the size of the maps and look
at places further apart instead (dilation), as segmentation needs.

Files of the Hugging Face hub say classifier_dropout_prob 0.8: in TensorFlow that was the share to keep. It is read as
it stands; train with dropout=0.2.

Systems: mobilenet-and-xception
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from descend.models.mobilenet_v1 import thousand
from descend.nn.convolution.unit import ConvUnit, SameConv2d
from descend.ranges import Fraction, Positive, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import batch_norm, rename

CHANNELS = (16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320)
STRIDES = (2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1)


@dataclass(frozen=True)
class MobileNetV2Config:
    """The defaults are the published network; a recipe takes channels and labels from its data."""

    channels: Width = 3
    width: Positive = 1.0
    """Every number of channels is multiplied by it."""
    divisor: Width = 8
    """Numbers of channels are multiples of it."""
    least: Width = 8
    """No layer has fewer channels."""
    expand: Positive = 6.0
    output_stride: Side = 32
    fine: bool = True
    """Below width 1 the last convolution keeps its 1280 channels."""
    tf_padding: bool = True
    """Pad as TensorFlow does, else evenly on every side."""
    dropout: Fraction = 0.2
    eps: Share = 0.001
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError(f"width {self.width}: give a number above 0")
        if self.output_stride not in (2, 4, 8, 16, 32):
            raise ValueError(f"output_stride {self.output_stride}: give 2, 4, 8, 16 or 32")

    def round_channels(self, channels: float) -> int:
        """The nearest multiple of `divisor`, but not below nine tenths."""
        n = round(channels)
        near = max(self.least, int(n + self.divisor / 2) // self.divisor * self.divisor)
        return near + self.divisor if near < 0.9 * n else near

    def place_blocks(self) -> list[tuple[int, int]]:
        """Stride and dilation of each block: where the maps may not shrink further, dilation takes over."""
        found, reached, dilation = [], 2, 1
        for stride in STRIDES:
            if reached == self.output_stride:
                found.append((1, dilation))
                dilation *= stride
            else:
                found.append((stride, 1))
                reached *= stride
        return found


Make = Callable[[int, int, int, int, int, int], nn.Conv2d]
"""(inputs, outputs, kernel, stride, groups, dilation) -> a convolution"""


def same_convolution(inputs: int, outputs: int, kernel: int, stride: int, groups: int, dilation: int) -> nn.Conv2d:
    """Padded as TensorFlow does."""
    conv = SameConv2d(inputs, outputs, kernel, stride, groups=groups, dilation=dilation, bias=False)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return conv


def even_convolution(inputs: int, outputs: int, kernel: int, stride: int, groups: int, dilation: int) -> nn.Conv2d:
    """Padded evenly."""
    padding = kernel // 2 * dilation
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias=False)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return conv


class Stem(nn.Module):
    """A 3×3 convolution of stride 2, a depthwise one, and the way to few channels."""

    def __init__(self, inputs: int, inner: int, outputs: int, make: Make, eps: float):
        super().__init__()
        self.first = ConvUnit(make(inputs, inner, 3, 2, 1, 1), nn.ReLU6(inplace=True), eps)
        self.depth = ConvUnit(make(inner, inner, 3, 1, inner, 1), nn.ReLU6(inplace=True), eps)
        self.reduce = ConvUnit(make(inner, outputs, 1, 1, 1, 1), nn.Identity(), eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduce(self.depth(self.first(x)))


class Inverted(nn.Module):
    """reduce(depth(expand(x))), plus x where `make` keeps its shape."""

    def __init__(self, inputs: int, inner: int, outputs: int, place: tuple[int, int], make: Make, eps: float):
        super().__init__()
        stride, dilation = place
        self.expand = ConvUnit(make(inputs, inner, 1, 1, 1, 1), nn.ReLU6(inplace=True), eps)
        self.depth = ConvUnit(make(inner, inner, 3, stride, inner, dilation), nn.ReLU6(inplace=True), eps)
        self.reduce = ConvUnit(make(inner, outputs, 1, 1, 1, 1), nn.Identity(), eps)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.reduce(self.depth(self.expand(x)))
        return x + y if self.residual else y


class MobileNetV2(Pretrained):
    """images (b, channels, height, width) -> logits (b, labels)"""

    Config = MobileNetV2Config

    def __init__(self, config: MobileNetV2Config):
        super().__init__()
        c = self.config = config
        make = same_convolution if c.tf_padding else even_convolution
        widths = [c.round_channels(n * c.width) for n in CHANNELS]
        self.stem = Stem(c.channels, c.round_channels(32 * c.width), widths[0], make, c.eps)
        self.blocks = nn.ModuleList(
            Inverted(inputs, c.round_channels(inputs * c.expand), outputs, place, make, c.eps)
            for inputs, outputs, place in zip(widths, widths[1:], c.place_blocks(), strict=False)
        )
        last = 1280 if c.fine and c.width < 1 else c.round_channels(1280 * c.width)
        self.last = ConvUnit(make(widths[-1], last, 1, 1, 1, 1), nn.ReLU6(inplace=True), c.eps)
        self.dropout = nn.Dropout(c.dropout)
        self.head = nn.Linear(last, len(c.labels))
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def maps(self, x: Tensor) -> Tensor:
        """The maps of the last layer."""
        x = self.stem(x)
        for block in cast("Iterable[Inverted]", self.blocks):
            x = block(x)
        return self.last(x)

    def features(self, x: Tensor) -> Tensor:
        """Their mean over places."""
        return self.maps(x).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(x)))


SIZES = {
    "mobilenet-v2-1.0": MobileNetV2Config(labels=thousand()),
    "mobilenet-v2-1.4": MobileNetV2Config(width=1.4, labels=thousand()),
}
PARAMETERS = {"mobilenet-v2-1.0": 3_504_872, "mobilenet-v2-1.4": 6_108_776}
TINY = MobileNetV2Config(width=0.1, divisor=2, least=2, fine=False, dropout=0.0, labels=Labels(("a", "b", "c")))


def TINY_INPUT() -> Tensor:
    """Three images."""
    return torch.randn(3, 3, 61, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="MobileNetV2ForImageClassification",
    fields={
        "channels": "num_channels",
        "width": "depth_multiplier",
        "divisor": "depth_divisible_by",
        "least": "min_depth",
        "expand": "expand_ratio",
        "output_stride": "output_stride",
        "fine": "finegrained_output",
        "tf_padding": "tf_padding",
        "dropout": "classifier_dropout_prob",
        "eps": "layer_norm_eps",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"hidden_act": "relu6", "first_layer_is_expansion": True},
    bare_prefix="mobilenet_v2.",
)

UNITS = {
    "stem.first": "conv_stem.first_conv",
    "stem.depth": "conv_stem.conv_3x3",
    "stem.reduce": "conv_stem.reduce_1x1",
    "blocks.{}.expand": "layer.{}.expand_1x1",
    "blocks.{}.depth": "layer.{}.conv_3x3",
    "blocks.{}.reduce": "layer.{}.reduce_1x1",
    "last": "conv_1x1",
}
KEYS = [
    *(rename(f"{a}.conv.weight", f"mobilenet_v2.{b}.convolution.weight") for a, b in UNITS.items()),
    *(rule for a, b in UNITS.items() for rule in batch_norm(f"{a}.norm", f"mobilenet_v2.{b}.normalization")),
    *(rename(f"head.{p}", f"classifier.{p}") for p in ("weight", "bias")),
]
