"""ViTDet's backbone: a plain vision transformer on large images, most of whose blocks look into windows only.

    x_0 = E patches + b + P                                                a map (h/16, w/16, d); P interpolated
    y = x + attention(norm(x)),   x' = y + W_2 gelu(W_1 norm(y) + b_1) + b_2
    attention     in windows of 14 × 14 in most blocks, of the whole map in four of twelve: these carry news across
    positions     relative, by rows and by columns (`nn/attention/decomposed_positions.py`), beside the absolute P
    residual      or, after some blocks, a convolution: x' + norm(conv1×1(gelu(norm(conv3×3(..)))))

The book's text describes a hierarchy of four stages by patch merging and calls it ViT-Det: that is a Swin transformer
(`models/swin.py`). The original is this one: one resolution from beginning to end, and a pyramid made of the last map
(`nn/detection/plain_pyramid.py`). `models/vit_detector.py` detects with either.

Systems: vit-det
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.attention.decomposed_positions import DecomposedAttention, MapAttention, attend_in_windows
from descend.nn.detection.plain_pyramid import PixelNorm
from descend.nn.drop_path import DropPath, path_rates
from descend.nn.mlp import MLP
from descend.nn.patches import PatchEmbedding, grid_of
from descend.ranges import Depth, Few, Fraction, Share, Side, SideOrAny, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, rename, rename_pair


@dataclass(frozen=True)
class VitDetConfig:
    """The defaults are those of transformers: a ViT-B without windows."""

    channels: Width = 3
    side: Side = 224
    """Of the images that the tables of relative positions are made for."""
    pretrained_side: Side = 224
    """Of the images that the absolute positions are made for."""
    patch: Side = 16
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    ratio: Width = 4
    """Hidden width of the MLP, in widths."""
    window: SideOrAny = 0
    windowed: tuple[Few, ...] = ()
    """The blocks that look into windows: 0 is the first."""
    residual: tuple[Few, ...] = ()
    """The blocks that a convolution follows."""
    absolute: bool = True
    relative: bool = False
    qkv_bias: bool = True
    drop_path: Fraction = 0.0
    eps: Share = 1e-6

    def __post_init__(self) -> None:
        for name in ("windowed", "residual"):  # lists when read from config.json
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.windowed and not self.window:
            raise ValueError(f"blocks {self.windowed} look into windows, but the window is 0; give its side")

    def make_attention(self, window: int) -> MapAttention:
        """For windows of this side, or for the whole map (0)."""
        if not self.relative:
            return MapAttention(self.width, self.heads, self.qkv_bias)
        rows = window or grid_of(self.side, self.side, self.patch)[0]
        return DecomposedAttention(self.width, self.heads, rows, rows, self.qkv_bias)


class VitDetBlock(nn.Module):
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y)),  and what follows: (b, h, w, d) -> (b, h, w, d)"""

    def __init__(self, attn: MapAttention, mlp: MLP, after: nn.Module, window: int, eps: float, path: float):
        super().__init__()
        width = attn.out.out_features
        self.norm_1, self.norm_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attn, self.mlp, self.after = attn, mlp, after
        self.path, self.window = DropPath(path), window

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm_1(x)
        x = x + self.path(attend_in_windows(self.attn, h, self.window) if self.window else self.attn(h))
        x = x + self.path(self.mlp(self.norm_2(x)))
        return self.after(x)


class ConvBottleneck(nn.Module):
    """x + norm(conv1×1(gelu(norm(conv3×3(gelu(norm(conv1×1(x)))))))) of a map (b, h, w, d); it begins as x."""

    def __init__(self, width: int):
        super().__init__()
        half = width // 2
        self.conv_1, self.norm_1 = nn.Conv2d(width, half, 1, bias=False), PixelNorm(half)
        self.conv_2, self.norm_2 = nn.Conv2d(half, half, 3, padding=1, bias=False), PixelNorm(half)
        self.conv_3, self.norm_3 = nn.Conv2d(half, width, 1, bias=False), PixelNorm(width)
        nn.init.zeros_(self.norm_3.weight)

    def forward(self, x: Tensor) -> Tensor:
        h = x.permute(0, 3, 1, 2)
        h = F.gelu(self.norm_1(self.conv_1(h)))
        h = F.gelu(self.norm_2(self.conv_2(h)))
        return x + self.norm_3(self.conv_3(h)).permute(0, 2, 3, 1)


class VitDet(Pretrained):
    """images (b, channels, h, w), sides multiples of the patch -> the last map (b, d, h / patch, w / patch)"""

    Config = VitDetConfig

    def __init__(self, config: VitDetConfig):
        super().__init__()
        c = self.config = config
        self.patches = PatchEmbedding(c.channels, c.width, c.patch)
        if c.absolute:  # the first is that of a class token, which is not there
            rows, columns = grid_of(c.pretrained_side, c.pretrained_side, c.patch)
            self.position = nn.Parameter(torch.empty(1, 1 + rows * columns, c.width))
            nn.init.trunc_normal_(self.position, std=0.02)
        paths = path_rates(c.drop_path, c.depth)
        self.blocks = nn.ModuleList(self.make_block(i, path) for i, path in enumerate(paths))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def make_block(self, i: int, path: float) -> VitDetBlock:
        c = self.config
        window = c.window if i in c.windowed else 0
        after = ConvBottleneck(c.width) if i in c.residual else nn.Identity()
        mlp = MLP(c.width, c.ratio * c.width, nn.GELU())
        return VitDetBlock(c.make_attention(window), mlp, after, window, c.eps, path)

    def forward(self, x: Tensor) -> Tensor:
        return self.maps(x)

    def maps(self, x: Tensor) -> Tensor:
        """The last map."""
        return self.walk(x)[-1]

    def walk(self, x: Tensor) -> list[Tensor]:
        """The maps (b, d, h', w') of the patches and after every block."""
        rows, columns = grid_of(x.shape[2], x.shape[3], self.config.patch)
        x = self.patches(x).unflatten(1, (rows, columns))
        if self.config.absolute:
            x = x + resize_positions(self.position[:, 1:], rows, columns)
        found = [x]
        for block in self.blocks:
            found.append(block(found[-1]))
        return [y.permute(0, 3, 1, 2) for y in found]


def resize_positions(position: Tensor, rows: int, columns: int) -> Tensor:
    """Positions of a square grid (1, n², d) for another grid: (1, rows, columns, d), bicubic."""
    side = round(position.shape[1] ** 0.5)
    grid = position.unflatten(1, (side, side))
    if (rows, columns) == (side, side):
        return grid
    return F.interpolate(grid.permute(0, 3, 1, 2), (rows, columns), mode="bicubic").permute(0, 2, 3, 1)


SIZES = {
    "vitdet-b": VitDetConfig(side=1024, window=14, relative=True, windowed=(0, 1, 3, 4, 6, 7, 9, 10)),
    "vitdet-l": VitDetConfig(
        side=1024, window=14, relative=True, width=1024, depth=24, heads=16,
        windowed=tuple(i for i in range(24) if i % 6 != 5),
    ),
}  # fmt: skip
PARAMETERS = {"vitdet-b": 85_889_024, "vitdet-l": 303_432_704}
TINY = VitDetConfig(
    side=24, pretrained_side=16, patch=4, width=16, depth=2, heads=2, ratio=2, window=3, windowed=(0,), relative=True
)


def TINY_INPUT() -> Tensor:
    """Two images that windows do not tile."""
    return torch.randn(2, 3, 16, 28, generator=torch.Generator().manual_seed(0))


LAYOUT = Layout(
    architecture="VitDetModel",
    fields={
        "channels": "num_channels",
        "side": "image_size",
        "pretrained_side": "pretrain_image_size",
        "patch": "patch_size",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "ratio": "mlp_ratio",
        "window": "window_size",
        "windowed": "window_block_indices",
        "residual": "residual_block_indices",
        "absolute": "use_absolute_position_embeddings",
        "relative": "use_relative_position_embeddings",
        "qkv_bias": "qkv_bias",
        "drop_path": "drop_path_rate",
        "eps": "layer_norm_eps",
    },
    fixed={"hidden_act": "gelu", "dropout_prob": 0.0},
)
ARCHITECTURES: dict[str, type[Pretrained]] = {"VitDetModel": VitDet, "VitDetBackbone": VitDet}


def block_keys(ours: str, theirs: str) -> list[Rule]:
    """One block."""
    names = {"norm_1": "norm1", "norm_2": "norm2", "attn.qkv": "attention.qkv", "attn.out": "attention.proj"}
    names |= {"mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2"}
    names |= {f"after.norm_{n}": f"residual.norm{n}" for n in (1, 2, 3)}
    return [
        *(rule for a, b in names.items() for rule in rename_pair(f"{ours}.{a}", f"{theirs}.{b}")),
        rename(f"{ours}.attn.rows", f"{theirs}.attention.rel_pos_h"),
        rename(f"{ours}.attn.columns", f"{theirs}.attention.rel_pos_w"),
        *(rename(f"{ours}.after.conv_{n}.weight", f"{theirs}.residual.conv{n}.weight") for n in (1, 2, 3)),
    ]


KEYS = [
    rename("position", "embeddings.position_embeddings"),
    *rename_pair("patches", "embeddings.projection"),
    *block_keys("blocks.{}", "encoder.layer.{}"),
]
