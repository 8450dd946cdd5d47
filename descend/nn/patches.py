"""Patches: an image cut into squares, each flattened and mapped to a token.

    N = (H / P) (W / P)                    patches of P × P pixels, row by row
    x_p ∈ ℝ^(N × P² C)                     flattened
    z_i = E x_p^(i) + b                    E ∈ ℝ^(d × P² C)

The same as a convolution with kernel = stride = P: its kernel, flattened, is E. So the weights are stored as a kernel,
(d, C, P, P), and a patch is flattened in that order: channel, row, column (the books do not say). At P = 16 an image of
224 × 224 × 3 gives 196 tokens of 768 numbers; its 50,176 pixels as tokens would make attention 65,536 times as large.

H and W must be multiples of P. Models that take other sizes pad the image first.

Systems: patch-embedding
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


def grid_of(height: int, width: int, patch: int) -> tuple[int, int]:
    """(H / P, W / P): how many patches stand below each other and side by side."""
    if patch < 1 or height % patch or width % patch:
        raise ValueError(f"patches of {patch} x {patch} do not tile an image of {height} x {width}; resize or pad it")
    return height // patch, width // patch


def patchify(x: Tensor, patch: int) -> Tensor:
    """Images (b, c, H, W) -> flattened patches (b, N, c·P²), row by row."""
    b, c, height, width = x.shape
    rows, columns = grid_of(height, width, patch)
    cut = x.reshape(b, c, rows, patch, columns, patch)
    return cut.permute(0, 2, 4, 1, 3, 5).reshape(b, rows * columns, c * patch * patch)


def unpatchify(x: Tensor, patch: int, grid: tuple[int, int]) -> Tensor:
    """Back again: (b, N, c·P²) -> (b, c, H, W) for a grid of rows and columns."""
    rows, columns = grid
    if x.shape[1] != rows * columns or x.shape[2] % patch**2:
        raise ValueError(f"{tuple(x.shape[1:])} are not {rows} x {columns} patches of {patch} x {patch} pixels")
    cut = x.reshape(x.shape[0], rows, columns, -1, patch, patch)
    return cut.permute(0, 3, 1, 4, 2, 5).reshape(x.shape[0], -1, rows * patch, columns * patch)


class PatchEmbedding(nn.Conv2d):
    """z_i = E x_p^(i) + b: images (b, c, H, W) -> tokens (b, N, d). A strided convolution, computed as one product."""

    def __init__(self, channels: int, width: int, patch: int, bias: bool = True):
        super().__init__(channels, width, patch, stride=patch, bias=bias)
        self.patch = patch

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 4 or x.shape[1] != self.in_channels:
            raise ValueError(f"images of shape {tuple(x.shape)}; these patches take (batch, {self.in_channels}, H, W)")
        return F.linear(patchify(x, self.patch), self.weight.flatten(1), self.bias)
