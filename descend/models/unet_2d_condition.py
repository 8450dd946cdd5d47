"""The conditioned diffusion U-Net of latent diffusion: every place of the map looks at the words.

    e = MLP(γ(t))
    down, bottom, up as in `unet_2d`: 2 and 3 residual blocks a level, each followed, at the levels that ask for it, by
    self-attention, cross-attention to τ(y) and a gated feed-forward part      softmax(Q Kᵀ/√D) V

τ(y) (b, s, d) is any sequence, such as the vectors of a frozen text encoder: 77 of width 768 in Stable Diffusion 1, of
1024 in 2. Spatial conditions come as more input channels: 9 for inpainting (latent 4, mask 1, masked latent 4), 5 for
depth; `widen` gives a trained network such channels without changing what it does.

In this family's files `attention_head_dim` is in effect the NUMBER of heads, one number or one for each level; here it
is called so. Opens and writes diffusers' UNet2DConditionModel in the layouts of Stable Diffusion 1 and 2; what later
ones add (SDXL's sizes, other embeddings) is refused.

Systems: diffusion-conditioning, latent-diffusion
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from descend.models._diffusion_layout import FIXED, PARTS, Bit, Levels
from descend.nn.convolution.residual import channels_last
from descend.nn.diffusion.blocks import NormSiLU, ResidualBlock
from descend.nn.diffusion.conditioning import EPS, ConditionedBlock, ConditionedMap, widen_input
from descend.nn.diffusion.levels import Level, Middle, check_sides, make_down, make_up, run_levels
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time, spread_time
from descend.ranges import Depth, Fraction, Share, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair, subtree


@dataclass(frozen=True)
class UNet2DConditionConfig:
    """The defaults are those of the published format."""

    size: Side | None = None
    channels: Width = 4
    out: Width = 4
    widths: tuple[Width, ...] = (320, 640, 1280, 1280)
    """Channels of each level."""
    attention: tuple[bool, ...] = (True, True, True, False)
    """Whether the places of a level look at each other and at the condition."""
    blocks: Depth = 2
    heads: Width | tuple[Width, ...] = 8
    """Attention heads, of all levels or of each."""
    context: Width = 1280
    """Width of the condition's vectors."""
    depth: Depth = 1
    """Transformer blocks after each residual block."""
    linear: bool = False
    """Whether the map enters the transformer by a linear layer (2.0 and later) or a 1×1 convolution: equal numbers."""
    groups: Width = 32
    eps: Share = 1e-5
    dropout: Fraction = 0.0
    padding: Bit = 1
    shift: Bit = 0
    cosine_first: bool = True

    def __post_init__(self) -> None:
        if len(self.widths) != len(self.attention):
            raise ValueError(f"{len(self.widths)} widths and {len(self.attention)} levels of attention: give as many")
        if isinstance(self.heads, tuple | list) and len(self.heads) != len(self.widths):
            raise ValueError(f"{len(self.heads)} numbers of heads for {len(self.widths)} levels: give one, or as many")
        if any(width % self.groups for width in self.widths):
            raise ValueError(f"widths {self.widths}: each must be a multiple of {self.groups} groups")

    def heads_of(self, level: int) -> int:
        return self.heads if isinstance(self.heads, int) else self.heads[level]


class UNet2DCondition(Pretrained):
    """x (b, c, h, w), t (b,), condition (b, s, d) -> (b, out, h, w)"""

    Config = UNet2DConditionConfig

    def __init__(self, config: UNet2DConditionConfig):
        super().__init__()
        c = self.config = config
        first, last, time = c.widths[0], c.widths[-1], 4 * c.widths[0]

        def make_block(channels: int, out: int) -> ResidualBlock:
            return ResidualBlock(channels, out, c.groups, c.eps, time, c.dropout)

        def make_attention(level: int) -> ConditionedMap:
            width = c.widths[level]
            blocks = [ConditionedBlock(width, c.heads_of(level), c.context) for _ in range(c.depth)]
            ends = [nn.Linear(width, width) if c.linear else nn.Conv2d(width, width, 1) for _ in range(2)]
            return ConditionedMap((ends[0], ends[1]), nn.GroupNorm(c.groups, width, EPS), blocks)

        levels = [
            Level(width, partial(make_attention, i) if c.attention[i] else None) for i, width in enumerate(c.widths)
        ]
        self.conv_in = nn.Conv2d(c.channels, first, 3, padding=1)
        self.time_embedding = TimeEmbedding(first, time)
        self.down_blocks = make_down(levels, c.blocks, make_block, c.padding)
        self.mid_block = Middle([make_block(last, last) for _ in range(2)], [make_attention(len(levels) - 1)])
        self.up_blocks = make_up(levels, c.blocks, make_block)
        self.conv_norm_out = NormSiLU(c.groups, first, c.eps)
        self.conv_out = nn.Conv2d(first, c.out, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor | float, y: Tensor | None = None) -> Tensor:
        c = self.config
        check_sides(x, len(c.widths))
        if y is None or y.shape[-1] != c.context:
            given = "none was given" if y is None else f"{y.shape[-1]} wide vectors were given"
            raise ValueError(f"this network needs a condition (b, s, {c.context}); {given}")
        waves = embed_time(spread_time(t, len(x), x.device), c.widths[0], c.shift, c.cosine_first)
        e = nn.functional.silu(self.time_embedding(waves))
        h = self.conv_in(channels_last(x))
        h = run_levels(h, e, y, self.down_blocks, self.mid_block, self.up_blocks)
        return self.conv_out(self.conv_norm_out(h))

    def widen(self, channels: int) -> None:
        """More input channels, which change nothing until they are trained."""
        self.conv_in = widen_input(self.conv_in, channels)
        self.config = replace(self.config, channels=channels)


LEVELS = Levels(("DownBlock2D", "CrossAttnDownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D"))
SIZES = {
    "stable-diffusion-1": UNet2DConditionConfig(size=64, context=768),
    "stable-diffusion-2": UNet2DConditionConfig(size=64, context=1024, heads=(5, 10, 20, 20), linear=True),
    "stable-diffusion-1-inpainting": UNet2DConditionConfig(size=64, channels=9, context=768),
}
PARAMETERS = {
    "stable-diffusion-1": 859_520_964,
    "stable-diffusion-2": 865_910_724,
    "stable-diffusion-1-inpainting": 859_535_364,
}
TINY = UNet2DConditionConfig(
    size=8, channels=2, out=2, widths=(8, 16), attention=(True, False), blocks=1, heads=2, context=6, groups=4
)


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    return torch.randn(2, 2, 8, 8, generator=random), torch.tensor([3, 700]), torch.randn(2, 5, 6, generator=random)


LAYOUT = Layout(
    architecture="UNet2DConditionModel",
    library="diffusers",
    fields={
        "size": "sample_size",
        "channels": "in_channels",
        "out": "out_channels",
        "widths": "block_out_channels",
        "attention": "attention",
        "blocks": "layers_per_block",
        "heads": "attention_head_dim",
        "context": "cross_attention_dim",
        "depth": "transformer_layers_per_block",
        "linear": "use_linear_projection",
        "groups": "norm_num_groups",
        "eps": "norm_eps",
        "dropout": "dropout",
        "padding": "downsample_padding",
        "shift": "freq_shift",
        "cosine_first": "flip_sin_to_cos",
    },
    fixed=FIXED
    | {
        "addition_embed_type": None,
        "attention_type": "default",
        "conv_in_kernel": 3,
        "conv_out_kernel": 3,
        "cross_attention_norm": None,
        "dual_cross_attention": False,
        "encoder_hid_dim": None,
        "mid_block_type": "UNetMidBlock2DCrossAttn",
        "num_attention_heads": None,
        "num_class_embeds": None,
        "only_cross_attention": False,
        "resnet_out_scale_factor": 1.0,
        "resnet_skip_time_act": False,
        "time_cond_proj_dim": None,
        "timestep_post_act": None,
    },
    older=LEVELS.read,
    newer=LEVELS.write,
)
KEYS = [
    *(rename(f"{{*}}.{part}.weight", f"{{*}}.to_{part}.weight") for part in "qkv"),
    *rename_pair("{*}.out", "{*}.to_out.0"),
    *rename_pair("{*}.ff.up", "{*}.ff.net.0.proj"),
    *rename_pair("{*}.ff.down", "{*}.ff.net.2"),
    *map(subtree, PARTS),
]
