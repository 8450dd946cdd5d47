"""RT-DETR's efficient hybrid encoder: attention on the coarsest map alone, convolutions between the maps.

    AIFI    F5' = attention(F5) on the flattened, projected S5          (H/32 · W/32)² pairs: 1/441 of all scales'
    CCFF    H5 = F5',   H4 = f([S4, up(H5)]),   H3 = f([S3, up(H4)])                            top-down
            P3 = H3,    P4 = f([down(P3), H4]),   P5 = f([down(P4), H5])                        bottom-up

f is a cross-stage partial block of RepConvs: f(x) = C_3(rep_3 rep_2 rep_1 C_1(x) + C_2(x)), C a 1×1 unit.

    text        AIFI is multi-head attention alone, and fusion is top-down (MF 26.2); tokens are projected H3, H4, H5
    original    AIFI is a whole encoder layer with places, H5 and H4 pass a 1×1 unit before they go up, and the
                bottom-up half follows

The tokens of all maps are laid end to end, fine to coarse: L = 8400 at 640×640 (6400 + 1600 + 400).

Systems: rt-detr-hybrid-encoder
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention
from descend.nn.convolution.repconv import RepConv
from descend.nn.convolution.residual import channels_last, convolution
from descend.nn.convolution.unit import ConvUnit
from descend.nn.detection.pan import double
from descend.nn.detection.set_queries import SetEncoderLayer


def silu_conv(inputs: int, outputs: int, kernel: int = 1, stride: int = 1) -> ConvUnit:
    """SiLU(BN(conv(x)))"""
    return ConvUnit(convolution(inputs, outputs, kernel, stride), nn.SiLU())


def grid_places(rows: int, columns: int, width: int, device: torch.device, base: float = 10000.0) -> Tensor:
    """[sin ωi, cos ωi, sin ωj, cos ωj] of a grid, d/4 frequencies each: (1, rows · columns, d)"""
    if width % 4:
        raise ValueError(f"width {width}: rows and columns have sine and cosine each; give a multiple of 4")
    omega = base ** -(torch.arange(width // 4, dtype=torch.float64, device=device) / (width // 4))
    i, j = (torch.arange(n, dtype=torch.float64, device=device)[:, None] * omega for n in (rows, columns))
    i, j = i[:, None].expand(-1, columns, -1), j[None].expand(rows, -1, -1)
    return torch.cat([i.sin(), i.cos(), j.sin(), j.cos()], dim=-1).flatten(0, 1)[None].float()


class IntraScaleLayers(nn.Module):
    """The original's AIFI: encoder layers on one map (b, d, h, w) -> (b, d, h, w)"""

    def __init__(self, layers: Sequence[SetEncoderLayer], width: int):
        super().__init__()
        self.layers, self.width = nn.ModuleList(layers), width

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = x.shape[-2:]
        tokens, place = x.flatten(2).mT, grid_places(rows, columns, self.width, x.device).to(x.dtype)
        for layer in self.layers:
            tokens = layer(tokens, place)
        return tokens.mT.unflatten(2, (rows, columns))


class IntraScaleAttention(nn.Module):
    """The text's AIFI: F' = MHA(F, F, F) of one map (b, d, h, w)"""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attn = Attention(width, heads)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.attn(x.flatten(2).mT)
        return y.mT.unflatten(2, x.shape[-2:])


class PartialRepConvs(nn.Module):
    """f(x) = C_3(rep .. rep C_1(x) + C_2(x)): x (b, 2 d, h, w) -> (b, d, h, w); C_3 where `hidden` is not d."""

    def __init__(self, inputs: int, outputs: int, hidden: int, depth: int = 3):
        super().__init__()
        self.first, self.second = silu_conv(inputs, hidden), silu_conv(inputs, hidden)
        self.blocks = nn.Sequential(*(RepConv(hidden, hidden) for _ in range(depth)))
        self.last = nn.Identity() if hidden == outputs else silu_conv(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(self.blocks(self.first(x)) + self.second(x))
        return y


class CrossScaleFusion(nn.Module):
    """The original's CCFF: maps of one width, fine to coarse, through both halves."""

    def __init__(self, width: int, levels: int, hidden: int):
        super().__init__()
        self.lateral = nn.ModuleList(silu_conv(width, width) for _ in range(levels - 1))
        self.top_down = nn.ModuleList(PartialRepConvs(2 * width, width, hidden) for _ in range(levels - 1))
        self.down = nn.ModuleList(silu_conv(width, width, 3, 2) for _ in range(levels - 1))
        self.bottom_up = nn.ModuleList(PartialRepConvs(2 * width, width, hidden) for _ in range(levels - 1))

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        *finer, top = (channels_last(x) for x in maps)
        falling = [top]
        for x, lateral, mix in zip(reversed(finer), self.lateral, self.top_down, strict=True):
            falling[-1] = lateral(falling[-1])
            falling.append(mix(torch.cat([double(falling[-1]), x], dim=1)))
        rising = [falling.pop()]
        for x, down, mix in zip(reversed(falling), self.down, self.bottom_up, strict=True):
            rising.append(mix(torch.cat([down(rising[-1]), x], dim=1)))
        return rising


class TopDownFusion(nn.Module):
    """The text's CCFF: H4 = f([S4, up(H5)]), H3 = f([S3, up(H4)])"""

    def __init__(self, width: int, levels: int, hidden: int):
        super().__init__()
        self.top_down = nn.ModuleList(PartialRepConvs(2 * width, width, hidden) for _ in range(levels - 1))

    def forward(self, maps: Sequence[Tensor]) -> list[Tensor]:
        *finer, top = (channels_last(x) for x in maps)
        found = [top]
        for x, mix in zip(reversed(finer), self.top_down, strict=True):
            found.append(mix(torch.cat([x, double(found[-1])], dim=1)))
        return found[::-1]


def join_maps(maps: Sequence[Tensor]) -> tuple[Tensor, list[tuple[int, int]]]:
    """Maps (b, d, h_i, w_i) end to end as tokens (b, L, d), and their rows and columns."""
    grids = [(x.shape[2], x.shape[3]) for x in maps]
    return torch.cat([x.flatten(2).mT for x in maps], dim=1), grids
