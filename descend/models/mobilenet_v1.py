"""MobileNet: every convolution but the first is split in two, one over places and one over channels.

    depthwise     y_c = W_c * x_c              3×3, each channel for itself
    pointwise     z = V y                      1×1, all channels at each place
    each followed by batch norm and ReLU6 = min(max(·, 0), 6)
    13 such pairs, the mean over places, dropout, logits = W z̄ + b

A pair costs 9 C + C C' multiplications at each place instead of 9 C C': 1/C' + 1/9 of the full convolution. Channels
are 32, then 64, 128, 128, 256, 256, six times 512, 1024, 1024, times `width`; 4,231,976 parameters for 1000 classes.
The public files have 1001 classes, the first of them "background", and pad as TensorFlow does (`tf_padding`).

Files of the Hugging Face hub say classifier_dropout_prob 0.999: in TensorFlow that was the share to keep. It is read as
it stands; train with dropout=0.001. The running means follow torch's momentum 0.1.

Systems: mobilenet-and-xception
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from descend.nn.convolution.unit import ConvUnit, SameConv2d
from descend.ranges import Fraction, Positive, Share, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import batch_norm, rename

CHANNELS = (32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)


@dataclass(frozen=True)
class MobileNetV1Config:
    """The defaults are the published network; a recipe takes channels and labels from its data."""

    channels: Width = 3
    width: Positive = 1.0
    """Every number of channels is multiplied by it."""
    least: Width = 8
    """No layer has fewer channels."""
    tf_padding: bool = True
    """Pad as TensorFlow does, else by 1 on every side."""
    dropout: Fraction = 0.001
    eps: Share = 0.001
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise ValueError(f"width {self.width}: give a number above 0")

    def scale_channels(self, channels: int) -> int:
        return max(int(channels * self.width), self.least)


def convolution(inputs: int, outputs: int, kernel: int, stride: int, groups: int, tf_padding: bool) -> nn.Conv2d:
    """Without bias, padded the one way or the other, from He's distribution."""
    if tf_padding:
        conv: nn.Conv2d = SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
    else:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return conv


class MobileNetV1(Pretrained):
    """images (b, channels, height, width) -> logits (b, labels)"""

    Config = MobileNetV1Config

    def __init__(self, config: MobileNetV1Config):
        super().__init__()
        c = self.config = config

        def unit(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> ConvUnit:
            conv = convolution(inputs, outputs, kernel, stride, groups, c.tf_padding)
            return ConvUnit(conv, nn.ReLU6(inplace=True), c.eps)

        widths = [c.scale_channels(n) for n in CHANNELS]
        self.stem = unit(c.channels, widths[0], 3, stride=2)
        self.layers = nn.ModuleList()
        for inputs, outputs, stride in zip(widths, widths[1:], STRIDES, strict=False):
            self.layers.append(unit(inputs, inputs, 3, stride, groups=inputs))
            self.layers.append(unit(inputs, outputs, 1))
        self.dropout = nn.Dropout(c.dropout)
        self.head = nn.Linear(widths[-1], len(c.labels))
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def maps(self, x: Tensor) -> Tensor:
        """The maps of the last layer, a 32nd of the image's side."""
        x = self.stem(x)
        for layer in cast("Iterable[ConvUnit]", self.layers):
            x = layer(x)
        return x

    def features(self, x: Tensor) -> Tensor:
        """Their mean over places."""
        return self.maps(x).mean((2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.features(x)))


def thousand() -> Labels:
    """The classes of ImageNet, unnamed."""
    return Labels(tuple(f"LABEL_{k}" for k in range(1000)))


SIZES = {f"mobilenet-{width}": MobileNetV1Config(width=width, labels=thousand()) for width in (0.25, 0.5, 0.75, 1.0)}
PARAMETERS = {
    "mobilenet-0.25": 470_072,
    "mobilenet-0.5": 1_331_592,
    "mobilenet-0.75": 2_585_560,
    "mobilenet-1.0": 4_231_976,
}
TINY = MobileNetV1Config(width=0.0625, least=4, labels=Labels(("a", "b", "c")), dropout=0.0)


def TINY_INPUT() -> Tensor:
    """Three images."""
    return torch.randn(3, 3, 61, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="MobileNetV1ForImageClassification",
    fields={
        "channels": "num_channels",
        "width": "depth_multiplier",
        "least": "min_depth",
        "tf_padding": "tf_padding",
        "dropout": "classifier_dropout_prob",
        "eps": "layer_norm_eps",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"hidden_act": "relu6"},
    bare_prefix="mobilenet_v1.",
)

KEYS = [
    rename("stem.conv.weight", "mobilenet_v1.conv_stem.convolution.weight"),
    *batch_norm("stem.norm", "mobilenet_v1.conv_stem.normalization"),
    rename("layers.{}.conv.weight", "mobilenet_v1.layer.{}.convolution.weight"),
    *batch_norm("layers.{}.norm", "mobilenet_v1.layer.{}.normalization"),
    *(rename(f"head.{p}", f"classifier.{p}") for p in ("weight", "bias")),
]
