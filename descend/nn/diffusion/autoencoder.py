"""Encoder and decoder of a latent diffusion model: an image of c×h×w to a code of k×h/f×w/f and back.

    encode   conv, at each level n blocks and half the sides, bottom (block, attention, block), conv(silu(norm))
    decode   conv, bottom, at each level n + 1 blocks and twice the sides, conv(silu(norm))

f = 2^(levels − 1): with 4 levels 512×512×3 becomes 64×64×4, 48 times fewer numbers. The blocks are those of the
diffusion U-Net without time, and no map is handed across: all that the decoder knows is the code.

Systems: latent-diffusion
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from descend.nn.convolution.residual import channels_last
from descend.nn.diffusion.blocks import Downsample, MapAttention, NormSiLU, ResidualBlock, Upsample
from descend.nn.diffusion.levels import DownLevel, Middle, UpLevel

EPS = 1e-6


def make_middle(width: int, groups: int) -> Middle:
    """Block, attention with a single head, block."""
    resnets = [ResidualBlock(width, width, groups, EPS) for _ in range(2)]
    return Middle(resnets, [MapAttention(width, width, groups, EPS)])


class ImageEncoder(nn.Module):
    """(b, channels, h, w) -> (b, out, h/f, w/f)"""

    def __init__(self, channels: int, out: int, widths: Sequence[int], blocks: int, groups: int):
        super().__init__()
        self.conv_in = nn.Conv2d(channels, widths[0], 3, padding=1)
        levels, last = [], widths[0]
        for i, width in enumerate(widths):
            resnets = [ResidualBlock(width if j else last, width, groups, EPS) for j in range(blocks)]
            levels.append(DownLevel(resnets, [], Downsample(width, 0) if i < len(widths) - 1 else None))
            last = width
        self.down_blocks = nn.ModuleList(levels)
        self.mid_block = make_middle(last, groups)
        self.conv_norm_out = NormSiLU(groups, last, EPS)
        self.conv_out = nn.Conv2d(last, out, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv_in(channels_last(x))
        for level in self.down_blocks:
            h = level(h)[-1]
        return self.conv_out(self.conv_norm_out(self.mid_block(h)))


class ImageDecoder(nn.Module):
    """(b, channels, h/f, w/f) -> (b, out, h, w)"""

    def __init__(self, channels: int, out: int, widths: Sequence[int], blocks: int, groups: int):
        super().__init__()
        last = widths[-1]
        self.conv_in = nn.Conv2d(channels, last, 3, padding=1)
        self.mid_block = make_middle(last, groups)
        levels = []
        for i, width in reversed(list(enumerate(widths))):
            resnets = [ResidualBlock(width if j else last, width, groups, EPS) for j in range(blocks + 1)]
            levels.append(UpLevel(resnets, [], Upsample(width) if i else None))
            last = width
        self.up_blocks = nn.ModuleList(levels)
        self.conv_norm_out = NormSiLU(groups, last, EPS)
        self.conv_out = nn.Conv2d(last, out, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        h = self.mid_block(self.conv_in(channels_last(z)))
        for level in self.up_blocks:
            h = level(h)
        return self.conv_out(self.conv_norm_out(h))
