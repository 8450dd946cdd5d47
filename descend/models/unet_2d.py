"""The diffusion U-Net: from a noisy image and its time step to an image of the same size, the predicted noise.

    e = MLP(γ(t)) (+ E[y])                                       γ: sinusoids of t;  E: a vector for each class
    kept maps  down: at each level 2 × (residual block with e, attention where asked), then half the sides
    bottom     block, attention, block
    up         at each level 3 × (residual block of [h ; kept map], attention), then twice the sides
    ε_θ(x_t, t) = conv(silu(norm(h)))

Every level of the way down leaves its maps to the way up, so detail need not pass the bottom. Attention looks across
the whole map where it is small: at 16×16 in the paper. `SIZES` has the paper's configuration for 32×32 images,
35,746,307 parameters; DLN gives its block counts only. Any sides that can be halved levels − 1 times will do. With
`classes` the condition y adds to the time's vector; one class more can stand for "none" (classifier-free guidance).

`head_size` is the size of a head here (`attention_head_dim` in the file); without one there is a single head. Opens and
writes diffusers' UNet2DModel. Left out: scale-shift norm, Fourier time, residual down- and upsampling; a file that asks
for them is refused.

Systems: diffusion-unet
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from descend.models._diffusion_layout import FIXED, PARTS, Bit, Levels, attention_keys
from descend.nn.convolution.residual import channels_last
from descend.nn.diffusion.blocks import MapAttention, NormSiLU, ResidualBlock
from descend.nn.diffusion.levels import Level, Middle, check_sides, make_down, make_up, run_levels
from descend.nn.diffusion.time_embedding import TimeEmbedding, embed_time, spread_time
from descend.ranges import Depth, Fraction, Share, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import subtree


@dataclass(frozen=True)
class UNet2DConfig:
    """The defaults are those of the published format."""

    size: Side | None = None
    """Side of the images it was trained with."""
    channels: Width = 3
    out: Width = 3
    """Channels of the output."""
    widths: tuple[Width, ...] = (224, 448, 672, 896)
    """Channels of each level."""
    attention: tuple[bool, ...] = (False, True, True, True)
    """Whether a level has attention after its blocks."""
    blocks: Depth = 2
    """Of each level on the way down; the way up has one more."""
    head_size: Width | None = 8
    """Of an attention head; none: one head of all channels."""
    groups: Width = 32
    """Of group norm."""
    eps: Share = 1e-5
    dropout: Fraction = 0.0
    padding: Bit = 1
    """Of the halving convolutions: 1, or 0 as in the first DDPM."""
    shift: Bit = 0
    """Of the waves of time."""
    cosine_first: bool = True
    classes: Width | None = None
    """Conditions that have a vector of their own; none: no condition."""

    def __post_init__(self) -> None:
        if len(self.widths) != len(self.attention):
            raise ValueError(f"{len(self.widths)} widths and {len(self.attention)} levels of attention: give as many")
        if any(width % self.groups for width in self.widths):
            raise ValueError(f"widths {self.widths}: each must be a multiple of {self.groups} groups")


class UNet2D(Pretrained):
    """x (b, c, h, w), t (b,), y (b,) or none -> (b, out, h, w)"""

    Config = UNet2DConfig

    def __init__(self, config: UNet2DConfig):
        super().__init__()
        c = self.config = config
        first, last, time = c.widths[0], c.widths[-1], 4 * c.widths[0]

        def make_block(channels: int, out: int) -> ResidualBlock:
            return ResidualBlock(channels, out, c.groups, c.eps, time, c.dropout)

        def make_attention(width: int) -> MapAttention:
            return MapAttention(width, c.head_size or width, c.groups, c.eps)

        levels = [
            Level(width, partial(make_attention, width) if attends else None)
            for width, attends in zip(c.widths, c.attention, strict=True)
        ]
        self.conv_in = nn.Conv2d(c.channels, first, 3, padding=1)
        self.time_embedding = TimeEmbedding(first, time)
        self.class_embedding = nn.Embedding(c.classes, time) if c.classes else None
        self.down_blocks = make_down(levels, c.blocks, make_block, c.padding)
        self.mid_block = Middle([make_block(last, last) for _ in range(2)], [make_attention(last)])
        self.up_blocks = make_up(levels, c.blocks, make_block)
        self.conv_norm_out = NormSiLU(c.groups, first, c.eps)
        self.conv_out = nn.Conv2d(first, c.out, 3, padding=1)

    def forward(self, x: Tensor, t: Tensor | float, y: Tensor | None = None) -> Tensor:
        check_sides(x, len(self.config.widths))
        e = nn.functional.silu(self.embed(spread_time(t, len(x), x.device), y))
        h = self.conv_in(channels_last(x))
        h = run_levels(h, e, None, self.down_blocks, self.mid_block, self.up_blocks)
        return self.conv_out(self.conv_norm_out(h))

    def embed(self, t: Tensor, y: Tensor | None) -> Tensor:
        """e (b, 4 C) of time and condition; a network with classes must be told which."""
        c = self.config
        e = self.time_embedding(embed_time(t, c.widths[0], c.shift, c.cosine_first))
        if self.class_embedding is None:
            if y is not None:
                raise ValueError("a class was given, but this network has no classes; leave it out")
            return e
        if y is None:
            raise ValueError(f"this network has {c.classes} classes: say which, y (b,)")
        return e + self.class_embedding(y)


LEVELS = Levels(("DownBlock2D", "AttnDownBlock2D"), ("UpBlock2D", "AttnUpBlock2D"))
SIZES = {
    "ddpm-cifar10-32": UNet2DConfig(
        size=32, widths=(128, 256, 256, 256), attention=(False, True, False, False), head_size=None, eps=1e-6,
        dropout=0.1, padding=0, shift=1, cosine_first=False,
    ),
}  # fmt: skip
PARAMETERS = {"ddpm-cifar10-32": 35_746_307}
TINY = UNet2DConfig(
    size=8, channels=1, out=1, widths=(8, 16), attention=(False, True), blocks=1, head_size=4, groups=4, classes=5
)


def TINY_INPUT() -> tuple[Tensor, Tensor, Tensor]:
    x = torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return x, torch.tensor([0, 3, 9, 500, 999]), torch.arange(5)


LAYOUT = Layout(
    architecture="UNet2DModel",
    library="diffusers",
    fields={
        "size": "sample_size",
        "channels": "in_channels",
        "out": "out_channels",
        "widths": "block_out_channels",
        "attention": "attention",
        "blocks": "layers_per_block",
        "head_size": "attention_head_dim",
        "groups": "norm_num_groups",
        "eps": "norm_eps",
        "dropout": "dropout",
        "padding": "downsample_padding",
        "shift": "freq_shift",
        "cosine_first": "flip_sin_to_cos",
        "classes": "num_class_embeds",
    },
    fixed=FIXED
    | {
        "add_attention": True,
        "attn_norm_num_groups": None,
        "downsample_type": "conv",
        "mid_block_type": "UNetMidBlock2D",
        "num_train_timesteps": None,
        "upsample_type": "conv",
    },
    older=LEVELS.read,
    newer=LEVELS.write,
)


KEYS = [*attention_keys(), *map(subtree, (*PARTS, "class_embedding"))]
