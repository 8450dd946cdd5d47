"""DiT: a diffusion transformer. The noisy latent is cut into patches, and time and class steer every norm.

    x = W patch + p                                      p: fixed sinusoids of column and row
    c_l = MLP_l(γ(t)) + E_l[y]                           of each block, as released
    [β₁ γ₁ α₁ β₂ γ₂ α₂] = W silu(c_l)
    x ← x + α₁ attn((1 + γ₁) norm(x) + β₁)
    x ← x + α₂ mlp((1 + γ₂) norm(x) + β₂)
    out = W' ((1 + γ) norm(x) + β), patches laid back into an image          [β γ] = W'' silu(c_1)

norm has no weights of its own. The gates α start near 0, so that each block starts near the identity (adaLN-Zero). The
last class, number `classes`, stands for "none": classifier-free guidance needs it. With `out` = 2 channels the second
half predicts variances. Not in the books; users expect it. Opens and writes diffusers' DiTTransformer2DModel.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.attention.multi_head import Attention
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time, spread_time
from descend.nn.gelu import GELUTanh
from descend.nn.mlp import MLP
from descend.ranges import Depth, Share, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair, subtree

WAVES = 256  # of time, in every released model
EPS = 1e-6


@dataclass(frozen=True)
class DiTConfig:
    """The defaults are those of the published format."""

    heads: Width = 16
    head_size: Width = 72
    channels: Width = 4
    out: Width | None = None
    """Channels of the output; none: those of the input."""
    depth: Depth = 28
    size: Side = 32
    """Of the latent; other sizes are refused."""
    patch: Side = 2
    classes: Width = 1000
    eps: Share = 1e-5

    def __post_init__(self) -> None:
        if self.size % self.patch:
            raise ValueError(f"size {self.size} is not a multiple of the patch {self.patch}")

    @property
    def width(self) -> int:
        return self.heads * self.head_size


class TimeAndClass(nn.Module):
    """c = MLP(γ(t)) + E[y]: (b, d)"""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.timestep_embedder = TimeEmbedding(WAVES, width)
        self.table = nn.Embedding(classes + 1, width)

    def forward(self, waves: Tensor, y: Tensor) -> Tensor:
        return self.timestep_embedder(waves) + self.table(y)


class SteeredBlock(nn.Module):
    """Attention and feed-forward part, scaled, shifted and gated by time and class."""

    def __init__(self, width: int, heads: int, classes: int, eps: float):
        super().__init__()
        self.emb = TimeAndClass(width, classes)
        self.steer = nn.Linear(width, 6 * width)
        self.attn = Attention(width, heads)
        self.ff = MLP(width, 4 * width, GELUTanh())
        self.eps = eps
        nn.init.normal_(self.steer.weight, std=1e-3)
        nn.init.zeros_(self.steer.bias)

    def forward(self, x: Tensor, waves: Tensor, y: Tensor) -> Tensor:
        parts = self.steer(F.silu(self.emb(waves, y)))[:, None].chunk(6, dim=-1)
        x = x + parts[2] * self.attn(steer(x, parts[1], parts[0], EPS))
        return x + parts[5] * self.ff(steer(x, parts[4], parts[3], self.eps))


def steer(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    """(1 + γ) norm(x) + β"""
    return F.layer_norm(x, x.shape[-1:], eps=eps) * (1 + scale) + shift


class DiT(Pretrained):
    """x (b, c, h, w), t (b,), y (b,) or none -> (b, out, h, w)"""

    Config = DiTConfig

    def __init__(self, config: DiTConfig):
        super().__init__()
        c = self.config = config
        self.patches = nn.Conv2d(c.channels, c.width, c.patch, stride=c.patch)
        self.blocks = nn.ModuleList(SteeredBlock(c.width, c.heads, c.classes, c.eps) for _ in range(c.depth))
        self.proj_out_1 = nn.Linear(c.width, 2 * c.width)
        self.proj_out_2 = nn.Linear(c.width, c.patch**2 * (c.out or c.channels))

    def forward(self, x: Tensor, t: Tensor | float, y: Tensor | None = None) -> Tensor:
        c = self.config
        if x.shape[-2:] != (c.size, c.size):
            raise ValueError(
                f"an input of {x.shape[-1]}×{x.shape[-2]}: this transformer has places for {c.size}×{c.size}"
            )
        y = torch.full((len(x),), c.classes, device=x.device) if y is None else y
        waves = embed_time(spread_time(t, len(x), x.device), WAVES, shift=1, cosine_first=True)
        h = self.patches(x)
        side = h.shape[-1]
        h = h.flatten(2).mT + encode_places(side, c.width).to(h)
        for block in self.blocks:
            h = block(h, waves, y)
        shift, scale = self.proj_out_1(F.silu(self.blocks[0].emb(waves, y)))[:, None].chunk(2, dim=-1)  # type: ignore
        h = self.proj_out_2(steer(h, scale, shift, EPS))
        grid = h.view(len(x), side, side, c.patch, c.patch, -1)  # rows, columns, and those of a patch
        return grid.permute(0, 5, 1, 3, 2, 4).reshape(len(x), -1, c.size, c.size)


def encode_places(side: int, width: int) -> Tensor:
    """p (side², d): half of it says the column, half the row, each with sines and then cosines."""
    waves = embed_time(torch.arange(side), width // 2)
    return torch.cat([waves.repeat(side, 1), waves.repeat_interleave(side, 0)], -1)


SIZES = {"DiT-XL-2-256": DiTConfig(out=8)}
PARAMETERS = {"DiT-XL-2-256": 749_826_464}
TINY = DiTConfig(heads=2, head_size=8, channels=2, depth=2, size=8, classes=3)


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(4, 2, 8, 8, generator=torch.Generator().manual_seed(0))
    return x, torch.tensor([3, 700, 20, 999]), torch.tensor([0, 1, 2, 3])


LAYOUT = Layout(
    architecture="DiTTransformer2DModel",
    library="diffusers",
    fields={
        "heads": "num_attention_heads",
        "head_size": "attention_head_dim",
        "channels": "in_channels",
        "out": "out_channels",
        "depth": "num_layers",
        "size": "sample_size",
        "patch": "patch_size",
        "classes": "num_embeds_ada_norm",
        "eps": "norm_eps",
    },
    fixed={
        "activation_fn": "gelu-approximate",
        "attention_bias": True,
        "dropout": 0.0,
        "norm_elementwise_affine": False,
        "norm_type": "ada_norm_zero",
    },
)
BLOCK = ("blocks.{}", "transformer_blocks.{}")
NAMES = {
    "steer": "norm1.linear",
    "emb.timestep_embedder.linear_1": "norm1.emb.timestep_embedder.linear_1",
    "emb.timestep_embedder.linear_2": "norm1.emb.timestep_embedder.linear_2",
    **{f"attn.{part}": f"attn1.to_{part}" for part in "qkv"},
    "attn.out": "attn1.to_out.0",
    "ff.up": "ff.net.0.proj",
    "ff.down": "ff.net.2",
}
KEYS = [
    *(rule for ours, theirs in NAMES.items() for rule in rename_pair(f"{BLOCK[0]}.{ours}", f"{BLOCK[1]}.{theirs}")),
    rename(f"{BLOCK[0]}.emb.table.weight", f"{BLOCK[1]}.norm1.emb.class_embedder.embedding_table.weight"),
    subtree("patches", "pos_embed.proj"),
    subtree("proj_out_1"),
    subtree("proj_out_2"),
]
