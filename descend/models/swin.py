"""Swin transformer: window attention on maps that shrink from stage to stage, as those of a CNN do.

    x_0 = norm(E patches + b)                                                 h/4 × w/4 positions of C channels
    y = x + windows(norm(x)),   x' = y + W_2 gelu(W_1 norm(y) + b_1) + b_2    windows shifted in every second block
    merge: x'_{ij} = W norm([x_{2i,2j}; x_{2i+1,2j}; x_{2i,2j+1}; x_{2i+1,2j+1}])         4 C -> 2 C, half the height
    logits = W_c mean(norm(x_L)) + b_c

Four stages of 2, 2, 6, 2 blocks and 96 .. 768 channels at 56, 28, 14, 7 are Swin-T: 28,288,354 parameters with 1,000
classes. Sizes that do not divide are filled up with zeros, below and to the right: images to patches, maps to pairs
before a merge, maps to windows inside the attention. MF (27.8) is garbled: merging goes from 4d to 2d. A merge is a
2 × 2 convolution of stride 2 after the norm.

Stochastic depth, as in the original: in training a block's attention and MLP are left out of an image with a
probability that grows from 0 to `drop_path` with depth.

Systems: swin
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.attention.shifted_window import ImageWindowAttention
from descend.nn.drop_path import DropPath, path_rates
from descend.nn.mlp import MLP
from descend.nn.patches import PatchEmbedding
from descend.ranges import Depth, Fraction, Positive, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import drop, rename, rename_pair


@dataclass(frozen=True)
class SwinConfig:
    """The configuration of a Swin transformer; the defaults are those of Swin-T."""

    channels: Width = 3
    side: Side = 224
    """Of the images it was trained on; others work too."""
    patch: Side = 4
    width: Width = 96
    """Channels of the first stage; they double from stage to stage."""
    depths: tuple[Depth, ...] = (2, 2, 6, 2)
    heads: tuple[Width, ...] = (3, 6, 12, 24)
    window: Side = 7
    ratio: Positive = 4.0
    """Hidden width of the MLP, in widths."""
    dropout: Fraction = 0.0
    drop_path: Fraction = 0.1
    eps: Share = 1e-5
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depths", tuple(self.depths))
        object.__setattr__(self, "heads", tuple(self.heads))
        if len(self.depths) != len(self.heads):
            raise ValueError(f"{len(self.depths)} depths and {len(self.heads)} numbers of heads; give one each a stage")

    @property
    def features(self) -> int:
        """Channels of the last stage."""
        return self.width * 2 ** (len(self.depths) - 1)


class Block(nn.Module):
    """y = x + windows(norm(x)),  x' = y + mlp(norm(y)): (b, h, w, d) -> (b, h, w, d)"""

    def __init__(self, attn: ImageWindowAttention, width: int, hidden: int, eps: float, dropout: float, path: float):
        super().__init__()
        self.norm_1 = nn.LayerNorm(width, eps)
        self.attn = attn
        self.norm_2 = nn.LayerNorm(width, eps)
        self.mlp = MLP(width, hidden, nn.GELU())
        self.drop, self.path = nn.Dropout(dropout), DropPath(path)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.path(self.drop(self.attn(self.norm_1(x))))
        return x + self.path(self.drop(self.mlp(self.norm_2(x))))


class PatchMerging(nn.Module):
    """W norm([four neighbours]): (b, h, w, d) -> (b, ⌈h/2⌉, ⌈w/2⌉, 2 d)"""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduce(self.norm(neighbours(x)))


def neighbours(x: Tensor) -> Tensor:
    """2 × 2 positions in one, column by column: (b, h, w, d) -> (b, ⌈h/2⌉, ⌈w/2⌉, 4 d)"""
    height, width = x.shape[1:3]
    if height % 2 or width % 2:
        x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
    x = x.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))  # (b, h/2, row, w/2, column, d)
    return x.permute(0, 1, 3, 4, 2, 5).flatten(3)


class SwinOutput(NamedTuple):
    """hidden (b, n, d): a vector a position of the last map; pooled (b, d): their mean."""

    hidden: Tensor
    pooled: Tensor


class SwinStages(Pretrained):
    """Patches, stages and the last norm: what every Swin stands on."""

    Config = SwinConfig

    def __init__(self, config: SwinConfig):
        super().__init__()
        c = self.config = config
        self.embed = PatchEmbedding(c.channels, c.width, c.patch)
        self.embed_norm = nn.LayerNorm(c.width)
        paths = iter(path_rates(c.drop_path, sum(c.depths)))
        self.stages, self.merges = nn.ModuleList(), nn.ModuleList()
        for i, (depth, heads) in enumerate(zip(c.depths, c.heads, strict=True)):
            width = c.width * 2**i
            shifts = [0 if j % 2 == 0 else c.window // 2 for j in range(depth)]
            windows = [ImageWindowAttention(width, heads, c.window, shift, c.dropout) for shift in shifts]
            blocks = (Block(attn, width, int(c.ratio * width), c.eps, c.dropout, next(paths)) for attn in windows)
            self.stages.append(nn.Sequential(*blocks))
        self.merges.extend(PatchMerging(c.width * 2**i) for i in range(len(c.depths) - 1))
        self.norm = nn.LayerNorm(c.features, c.eps)
        self.drop = nn.Dropout(c.dropout)

    def embed_image(self, x: Tensor) -> Tensor:
        """Images (b, c, h, w) -> a map (b, h/patch, w/patch, d), the image filled up to whole patches."""
        p = self.config.patch
        below, right = -x.shape[2] % p, -x.shape[3] % p
        if below or right:
            x = F.pad(x, (0, right, 0, below))
        tokens = self.embed_norm(self.embed(x)).unflatten(1, (x.shape[2] // p, x.shape[3] // p))
        return self.drop(tokens)

    def pyramid(self, x: Tensor) -> list[Tensor]:
        """The maps of the stages, (b, d·2ⁱ, h/(4·2ⁱ), w/(4·2ⁱ)): what detection and segmentation read."""
        return [y.permute(0, 3, 1, 2) for y in self.walk(x)]

    def walk(self, x: Tensor) -> Iterable[Tensor]:
        """The map after each stage, before it is merged: (b, h, w, d)."""
        x = self.embed_image(x)
        for i, stage in enumerate(self.stages):
            x = stage(self.merges[i - 1](x) if i else x)
            yield x

    def maps(self, x: Tensor) -> Tensor:
        """The last map, normed: (b, d, h/32, w/32)"""
        return self.last(x).permute(0, 3, 1, 2)

    def last(self, x: Tensor) -> Tensor:
        """The same with the channels behind: (b, h, w, d)"""
        *_, x = self.walk(x)
        return self.norm(x)

    def features(self, x: Tensor) -> Tensor:
        """The mean of the last map: (b, d)"""
        return self.last(x).mean((1, 2))


class Swin(SwinStages):
    """images (b, c, h, w) -> vectors of the last map (b, n, d) and their mean (b, d)"""

    def __init__(self, config: SwinConfig):
        super().__init__(config)
        self.apply(draw_normal)

    def forward(self, x: Tensor) -> SwinOutput:
        hidden = self.last(x).flatten(1, 2)
        return SwinOutput(hidden, hidden.mean(1))


class SwinForImageClassification(SwinStages):
    """images (b, c, h, w) -> logits (b, classes)"""

    def __init__(self, config: SwinConfig):
        super().__init__(config)
        self.head = nn.Linear(config.features, len(config.labels))
        self.apply(draw_normal)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def draw_normal(module: nn.Module) -> None:
    """Weights N(0, 0.02²) cut off at 2, biases 0, as released."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


IMAGENET = Labels(tuple(f"LABEL_{i}" for i in range(1000)))
SIZES = {
    "swin-tiny": SwinConfig(labels=IMAGENET),
    "swin-small": SwinConfig(depths=(2, 2, 18, 2), drop_path=0.3, labels=IMAGENET),
    "swin-base": SwinConfig(
        width=128, depths=(2, 2, 18, 2), heads=(4, 8, 16, 32), drop_path=0.5, labels=IMAGENET
    ),
    "swin-large": SwinConfig(
        width=192, depths=(2, 2, 18, 2), heads=(6, 12, 24, 48), drop_path=0.5, labels=IMAGENET
    ),
}  # fmt: skip
PARAMETERS = {
    "swin-tiny": 28_288_354,
    "swin-small": 49_606_258,
    "swin-base": 87_768_224,
    "swin-large": 196_532_476,
}
TINY = SwinConfig(side=32, width=16, depths=(2, 2), heads=(2, 4), window=3, drop_path=0.0)

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "SwinModel": Swin,
    "SwinForImageClassification": SwinForImageClassification,
}

LAYOUT = Layout(
    architecture="SwinForImageClassification",
    fields={
        "channels": "num_channels",
        "side": "image_size",
        "patch": "patch_size",
        "width": "embed_dim",
        "depths": "depths",
        "heads": "num_heads",
        "window": "window_size",
        "ratio": "mlp_ratio",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "drop_path": "drop_path_rate",
        "eps": "layer_norm_eps",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"hidden_act": "gelu", "qkv_bias": True, "use_absolute_embeddings": False},
    bare_prefix="swin.",
)


def TINY_INPUT() -> Tensor:
    """Two small images of a size that fills neither windows nor pairs."""
    return torch.rand(2, 3, 32, 28, generator=torch.Generator().manual_seed(0))


BLOCK, THEIRS = "stages.{}.{}", "swin.encoder.layers.{}.blocks.{}"
KEYS = [
    *rename_pair("embed", "swin.embeddings.patch_embeddings.projection"),
    *rename_pair("embed_norm", "swin.embeddings.norm"),
    *rename_pair(f"{BLOCK}.norm_1", f"{THEIRS}.layernorm_before"),
    *rename_pair(f"{BLOCK}.attn.q", f"{THEIRS}.attention.self.query"),
    *rename_pair(f"{BLOCK}.attn.k", f"{THEIRS}.attention.self.key"),
    *rename_pair(f"{BLOCK}.attn.v", f"{THEIRS}.attention.self.value"),
    *rename_pair(f"{BLOCK}.attn.out", f"{THEIRS}.attention.output.dense"),
    rename(f"{BLOCK}.attn.offsets", f"{THEIRS}.attention.self.relative_position_bias_table"),
    drop(f"{THEIRS}.attention.self.relative_position_index"),
    *rename_pair(f"{BLOCK}.norm_2", f"{THEIRS}.layernorm_after"),
    *rename_pair(f"{BLOCK}.mlp.up", f"{THEIRS}.intermediate.dense"),
    *rename_pair(f"{BLOCK}.mlp.down", f"{THEIRS}.output.dense"),
    *rename_pair("merges.{}.norm", "swin.encoder.layers.{}.downsample.norm"),
    rename("merges.{}.reduce.weight", "swin.encoder.layers.{}.downsample.reduction.weight"),
    *rename_pair("norm", "swin.layernorm"),
    *rename_pair("head", "classifier"),
]
