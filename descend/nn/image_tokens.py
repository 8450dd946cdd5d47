"""What a transformer reads of an image: patch tokens behind a learned class token, with learned positions.

    H⁽⁰⁾ = [z_cls; z_1 .. z_N] + E_pos                    E_pos ∈ ℝ^((N + 1) × d), positions 0 .. N
    H⁽⁰⁾ = [z_cls; z_distil; z_1 .. z_N] + E_pos          DeiT: a second token, N + 2 positions

The class token has no patch of its own: what it gathers from the others becomes the image's vector. Positions number
the patches row by row and know nothing of two dimensions. Without them the class token's output does not change when
the patches are permuted. Tokens start as N(0, 0.02²), positions as N(0, 0.3²), a third of the scale of a patch token:
released models start at 0.02 and are trained for days, where a small one needs to see the places from the start.

Systems: class-token
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.nn.attention.positions_2d import resize_positions
from descend.nn.patches import PatchEmbedding, grid_of

POSITION = 0.3  # standard deviation of positions at the start


class ImageTokens(nn.Module):
    """images (b, c, side, side) -> tokens (b, 1 + N, d)"""

    special = 1

    def __init__(self, channels: int, side: int, patch: int, width: int, dropout: float = 0.0):
        super().__init__()
        self.side, self.grid = side, grid_of(side, side, patch)
        self.patches = PatchEmbedding(channels, width, patch)
        self.cls = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, self.special + self.grid[0] * self.grid[1], width) * POSITION)
        self.drop = nn.Dropout(dropout)

    def leading(self) -> tuple[Tensor, ...]:
        """The tokens before the patches, (1, 1, d) each."""
        return (self.cls,)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2:] != (self.side, self.side):
            height, width = x.shape[-2:]
            raise ValueError(
                f"images of {height} x {width}, but this model has positions for {self.side} x {self.side}; "
                f"resize them, or take the model at another side"
            )
        patches = self.patches(x)
        tokens = torch.cat([*(token.expand(len(x), -1, -1) for token in self.leading()), patches], dim=1)
        return self.drop(tokens + self.positions)

    def positions_at(self, side: int) -> Tensor:
        """The learned positions for images of another side."""
        return resize_positions(self.positions, self.grid, grid_of(side, side, self.patches.patch))


class DistilledTokens(ImageTokens):
    """images (b, c, side, side) -> tokens (b, 2 + N, d): the second one learns from a teacher."""

    special = 2

    def __init__(self, channels: int, side: int, patch: int, width: int, dropout: float = 0.0):
        super().__init__(channels, side, patch, width, dropout)
        self.distil = nn.Parameter(torch.randn(1, 1, width) * 0.02)

    def leading(self) -> tuple[Tensor, ...]:
        return self.cls, self.distil
