"""The two paths of a diffusion U-Net, level by level, and the bottom between them.

    down   n blocks at each level, then half the sides; every result is kept          1 + n L + (L − 1) maps
    bottom block, attention, block
    up     n + 1 blocks at each level, each takes one kept map, then twice the sides   (n + 1) L = as many

That is why there are 2 blocks a level on the way down and 3 on the way up: the input convolution and the L − 1 halvings
leave a map too, and each map is taken once. The autoencoder uses the same levels, without time and without kept maps.

Systems: diffusion-unet
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.nn.diffusion.blocks import Downsample, ResidualBlock, Upsample

MakeBlock = Callable[[int, int], ResidualBlock]
"""(channels, out) -> a block."""
MakeAttention = Callable[[], nn.Module]


class Level(NamedTuple):
    """Channels of a level, and what makes an attention after each of its blocks; none: no attention."""

    width: int
    attention: MakeAttention | None = None

    def attentions(self, count: int) -> nn.ModuleList:
        """One for each block."""
        return nn.ModuleList(self.attention() for _ in range(count) if self.attention)


class Blocks(nn.Module):
    """Residual blocks, each with the attention that follows it."""

    def __init__(self, resnets: Iterable[nn.Module], attentions: Iterable[nn.Module] = ()):
        super().__init__()
        self.attentions = nn.ModuleList(attentions)
        self.resnets = nn.ModuleList(resnets)

    def step(self, i: int, x: Tensor, e: Tensor | None, context: Tensor | None) -> Tensor:
        """Block i."""
        x = self.resnets[i](x, e)
        return self.attentions[i](x, context) if len(self.attentions) else x


class DownLevel(Blocks):
    """x -> the maps after each block and after the halving, the last of which goes on."""

    def __init__(self, resnets: Iterable[nn.Module], attentions: Iterable[nn.Module], shrink: nn.Module | None):
        super().__init__(resnets, attentions)
        self.downsamplers = nn.ModuleList([shrink] if shrink else [])

    def forward(self, x: Tensor, e: Tensor | None = None, context: Tensor | None = None) -> list[Tensor]:
        maps = []
        for i in range(len(self.resnets)):
            x = self.step(i, x, e, context)
            maps.append(x)
        return maps + [shrink(x) for shrink in self.downsamplers]


class UpLevel(Blocks):
    """x and the kept maps, the last of them first -> the map of the level above."""

    def __init__(self, resnets: Iterable[nn.Module], attentions: Iterable[nn.Module], grow: nn.Module | None):
        super().__init__(resnets, attentions)
        self.upsamplers = nn.ModuleList([grow] if grow else [])

    def forward(
        self, x: Tensor, kept: list[Tensor] | None = None, e: Tensor | None = None, context: Tensor | None = None
    ) -> Tensor:
        """Without kept maps it is the decoder of an autoencoder."""
        for i in range(len(self.resnets)):
            x = self.step(i, x if kept is None else torch.cat([x, kept.pop()], dim=1), e, context)
        for grow in self.upsamplers:
            x = grow(x)
        return x


class Middle(Blocks):
    """Block, attention, block."""

    def forward(self, x: Tensor, e: Tensor | None = None, context: Tensor | None = None) -> Tensor:
        x = self.resnets[0](x, e)
        for attention, block in zip(self.attentions, self.resnets[1:], strict=False):
            x = block(attention(x, context), e)
        return x


def make_down(levels: Sequence[Level], blocks: int, make_block: MakeBlock, padding: int) -> nn.ModuleList:
    """The way down: halved after every level but the last."""
    widths = [levels[0].width, *(level.width for level in levels)]
    made = []
    for i, level in enumerate(levels):
        ends = [widths[i], *[level.width] * blocks]
        shrink = Downsample(level.width, padding) if i < len(levels) - 1 else None
        made.append(DownLevel([make_block(a, b) for a, b in pairwise(ends)], level.attentions(blocks), shrink))
    return nn.ModuleList(made)


def make_up(levels: Sequence[Level], blocks: int, make_block: MakeBlock) -> nn.ModuleList:
    """The way up: one block more at each level, and each takes a kept map."""
    kept = count_kept([level.width for level in levels], blocks)
    made, width = [], levels[-1].width
    for i, level in reversed(list(enumerate(levels))):
        resnets = []
        for _ in range(blocks + 1):
            resnets.append(make_block(width + kept.pop(), level.width))
            width = level.width
        made.append(UpLevel(resnets, level.attentions(blocks + 1), Upsample(width) if i else None))
    return nn.ModuleList(made)


def count_kept(widths: Sequence[int], blocks: int) -> list[int]:
    """Channels of the maps that the way down keeps, in order: the input convolution's first."""
    kept = [widths[0]]
    for i, width in enumerate(widths):
        kept += [width] * (blocks + (i < len(widths) - 1))
    return kept


def run_levels(
    x: Tensor, e: Tensor, context: Tensor | None, down: nn.ModuleList, middle: nn.Module, up: nn.ModuleList
) -> Tensor:
    """Down with all maps kept, through the bottom, and up again."""
    kept = [x]
    for level in down:
        kept += level(kept[-1], e, context)
    x = middle(kept[-1], e, context)
    for level in up:
        x = level(x, kept, e, context)
    return x


def check_sides(x: Tensor, levels: int) -> None:
    """Both sides must be halved levels − 1 times without a rest."""
    factor = 2 ** (levels - 1)
    if x.shape[-2] % factor or x.shape[-1] % factor:
        raise ValueError(
            f"an image of {x.shape[-1]}×{x.shape[-2]}: with {levels} levels both sides must be multiples of {factor}"
        )
