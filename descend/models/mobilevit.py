"""MobileViT: a small convolutional network in which some layers let distant positions speak to each other.

    y = W_1 conv(x)                                            local: k × k convolution, then d numbers a position
    y_p = transformer(y_p),   p = 1 .. P²                      unfold: the p-th pixels of all patches make a sequence
    x' = conv([x; W_2 fold(y)])                                back to c channels, beside what came in

unfold takes maps (b, d, H, W) to P² sequences of N = HW/P² tokens: a pixel attends to those at the same place of every
patch, and knows its own patch from the convolution. fold(unfold(y)) = y. Around these blocks stand the inverted
residuals of MobileNetV2: expand 1 × 1, depthwise 3 × 3, reduce 1 × 1, with x added where the shapes agree.

The encoder is that of `descend.nn.encoder`, pre-norm with SiLU. Maps that patches do not tile are resized for unfold
and back after fold, as released. MF names MobileViT only; sizes and layout are those of the paper and its checkpoints.

Systems: mobilevit
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.models.vit import IMAGENET, block_keys, unpack_sides
from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.patches import grid_of, patchify, unpatchify
from descend.ranges import Fraction, Positive, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, batch_norm, rename, rename_pair


@dataclass(frozen=True)
class MobileViTConfig:
    """The configuration of a MobileViT; the defaults are those of the small size."""

    channels: Width = 3
    patch: Side = 2
    widths: tuple[Width, ...] = (144, 192, 240)
    """Of the three transformers."""
    maps: tuple[Width, ...] = (16, 32, 64, 96, 128, 160, 640)
    """Channels after the stem, the five stages, and the last 1 × 1 convolution."""
    heads: Width = 4
    ratio: Positive = 2.0
    """Hidden width of the MLPs, in widths."""
    expand: Positive = 4.0
    """Channels inside an inverted residual, in those of its input."""
    kernel: Side = 3
    dropout: Fraction = 0.1
    attention_dropout: Fraction = 0.0
    head_dropout: Fraction = 0.1
    eps: Share = 1e-5
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))
        object.__setattr__(self, "maps", tuple(self.maps))
        if len(self.widths) != 3 or len(self.maps) != 7:
            raise ValueError(f"{len(self.widths)} widths and {len(self.maps)} maps; a MobileViT has 3 and 7")


def unfold(x: Tensor, patch: int) -> Tensor:
    """Maps (b, d, H, W) -> (b · P², N, d): a sequence for each place in a patch."""
    tokens = patchify(x, patch).unflatten(2, (x.shape[1], patch * patch))
    return tokens.permute(0, 3, 1, 2).flatten(0, 1)


def fold(tokens: Tensor, patch: int, grid: tuple[int, int]) -> Tensor:
    """Back again: (b · P², N, d) -> (b, d, H, W) for a grid of patches."""
    return unpatchify(tokens.unflatten(0, (-1, patch * patch)).permute(0, 2, 3, 1).flatten(2), patch, grid)


class ConvNorm(nn.Module):
    """norm(conv(x)): no bias in the convolution, since the norm has one"""

    def __init__(self, channels: int, out: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding=(kernel - 1) // 2, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class ConvNormSiLU(ConvNorm):
    """silu(norm(conv(x)))"""

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(super().forward(x))


def round_channels(channels: float, step: int = 8) -> int:
    """The nearest multiple of 8 that is not less than 90%."""
    near = max(step, int(channels + step / 2) // step * step)
    return near + step if near < 0.9 * channels else near


class InvertedResidual(nn.Module):
    """x + reduce(depthwise(expand(x))), without x where the shape changes: MobileNetV2's block"""

    def __init__(self, channels: int, out: int, stride: int, expand: float):
        super().__init__()
        inside = round_channels(round(channels * expand))
        self.expand = ConvNormSiLU(channels, inside, 1)
        self.depthwise = ConvNormSiLU(inside, inside, 3, stride, groups=inside)
        self.reduce = ConvNorm(inside, out, 1)
        self.same = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        y = self.reduce(self.depthwise(self.expand(x)))
        return x + y if self.same else y


class MobileViTBlock(nn.Module):
    """x' = conv([x; W_2 fold(transformer(unfold(W_1 conv(x))))]): (b, c, h, w) -> (b, c, h, w)"""

    def __init__(self, channels: int, blocks: list[PreNormBlock], width: int, patch: int, kernel: int, eps: float):
        super().__init__()
        self.patch = patch
        self.local = ConvNormSiLU(channels, channels, kernel)
        self.widen = nn.Conv2d(channels, width, 1, bias=False)
        self.encoder = Encoder(blocks)
        self.norm = nn.LayerNorm(width, eps)
        self.narrow = ConvNormSiLU(width, channels, 1)
        self.fuse = ConvNormSiLU(2 * channels, channels, kernel)

    def forward(self, x: Tensor) -> Tensor:
        y = self.widen(self.local(x))
        size = y.shape[-2:]
        whole = [-(-n // self.patch) * self.patch for n in size]
        if list(size) != whole:
            y = F.interpolate(y, size=whole, mode="bilinear", align_corners=False)
        y = self.norm(self.encoder(unfold(y, self.patch)))
        y = fold(y, self.patch, grid_of(whole[0], whole[1], self.patch))
        if list(size) != whole:
            y = F.interpolate(y, size=size, mode="bilinear", align_corners=False)
        return self.fuse(torch.cat([x, self.narrow(y)], dim=1))


class MobileViT(Pretrained):
    """images (b, c, h, w) -> logits (b, classes)"""

    Config = MobileViTConfig

    def __init__(self, config: MobileViTConfig):
        super().__init__()
        c = self.config = config
        m = c.maps
        self.stem = ConvNormSiLU(c.channels, m[0], 3, 2)
        self.first = nn.ModuleList([InvertedResidual(m[0], m[1], 1, c.expand)])
        self.second = nn.ModuleList([InvertedResidual(m[1 + (i > 0)], m[2], 1 + (i == 0), c.expand) for i in range(3)])
        self.down = nn.ModuleList([InvertedResidual(m[i], m[i + 1], 2, c.expand) for i in (2, 3, 4)])
        self.blocks = nn.ModuleList([
            MobileViTBlock(m[3 + i], self.transformer(width, depth), width, c.patch, c.kernel, c.eps)
            for i, (width, depth) in enumerate(zip(c.widths, (2, 4, 3), strict=True))
        ])  # fmt: skip
        self.last = ConvNormSiLU(m[5], m[6], 1)
        self.drop = nn.Dropout(c.head_dropout)
        self.head = nn.Linear(m[6], len(c.labels))

    def transformer(self, width: int, depth: int) -> list[PreNormBlock]:
        """The blocks of one transformer."""
        c = self.config
        hidden = int(width * c.ratio)
        blocks = [PreNormBlock(width, c.heads, hidden, nn.SiLU(), c.dropout, c.eps) for _ in range(depth)]
        for block in blocks:
            block.attn.dropout = c.attention_dropout
        return blocks

    def maps(self, x: Tensor) -> Tensor:
        """The last feature maps (b, c', h / 32, w / 32)."""
        x = self.stem(x)
        for layer in (*self.first, *self.second):
            x = layer(x)
        for down, block in zip(self.down, self.blocks, strict=True):
            x = block(down(x))
        return self.last(x)

    def features(self, x: Tensor) -> Tensor:
        """Their mean (b, c')."""
        return self.maps(x).mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.features(x)))


SIZES = {
    "mobilevit-small": MobileViTConfig(labels=IMAGENET),
    "mobilevit-x-small": MobileViTConfig(widths=(96, 120, 144), maps=(16, 32, 48, 64, 80, 96, 384), labels=IMAGENET),
    "mobilevit-xx-small": MobileViTConfig(
        widths=(64, 80, 96), maps=(16, 16, 24, 48, 64, 80, 320), expand=2.0, labels=IMAGENET
    ),
}
PARAMETERS = {"mobilevit-small": 5_578_632, "mobilevit-x-small": 2_317_848, "mobilevit-xx-small": 1_272_024}
TINY = MobileViTConfig(
    widths=(8, 12, 16), maps=(8, 8, 8, 8, 16, 16, 24), expand=2.0, heads=2, dropout=0.0, head_dropout=0.0
)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="MobileViTForImageClassification",
    fields={
        "channels": "num_channels",
        "patch": "patch_size",
        "widths": "hidden_sizes",
        "maps": "neck_hidden_sizes",
        "heads": "num_attention_heads",
        "ratio": "mlp_ratio",
        "expand": "expand_ratio",
        "kernel": "conv_kernel_size",
        "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        "head_dropout": "classifier_dropout_prob",
        "eps": "layer_norm_eps",
        "labels": "id2label",
    },
    fixed={"hidden_act": "silu", "output_stride": 32, "qkv_bias": True},
    parts={"labels": Labels},
    older=unpack_sides,
    bare_prefix="mobilevit.",
)


def conv_keys(ours: str, theirs: str) -> list[Rule]:
    """A convolution and its batch norm with running averages."""
    weight = rename(f"{ours}.conv.weight", f"{theirs}.convolution.weight")
    return [weight, *batch_norm(f"{ours}.norm", f"{theirs}.normalization")]


def residual_keys(ours: str, theirs: str) -> list[Rule]:
    """An inverted residual."""
    names = {"expand": "expand_1x1", "depthwise": "conv_3x3", "reduce": "reduce_1x1"}
    return [rule for a, b in names.items() for rule in conv_keys(f"{ours}.{a}", f"{theirs}.{b}")]


def stage_keys(i: int) -> list[Rule]:
    """A stage with a transformer: theirs are the layers 2, 3, 4 of the encoder."""
    ours, theirs = f"blocks.{i}", f"mobilevit.encoder.layer.{i + 2}"
    convs = {"local": "conv_kxk", "narrow": "conv_projection", "fuse": "fusion"}
    return [
        *residual_keys(f"down.{i}", f"{theirs}.downsampling_layer"),
        *(rule for a, b in convs.items() for rule in conv_keys(f"{ours}.{a}", f"{theirs}.{b}")),
        rename(f"{ours}.widen.weight", f"{theirs}.conv_1x1.convolution.weight"),
        *block_keys(f"{ours}.encoder.blocks.{{}}", f"{theirs}.transformer.layer.{{}}"),
        *rename_pair(f"{ours}.norm", f"{theirs}.layernorm"),
    ]


KEYS = [
    *conv_keys("stem", "mobilevit.conv_stem"),
    *residual_keys("first.{}", "mobilevit.encoder.layer.0.layer.{}"),
    *residual_keys("second.{}", "mobilevit.encoder.layer.1.layer.{}"),
    *(rule for i in range(3) for rule in stage_keys(i)),
    *conv_keys("last", "mobilevit.conv_1x1_exp"),
    *rename_pair("head", "classifier"),
]
