"""The jigsaw of PIRL: an image cut into g × g pieces that change places.

    pieces[i] = piece π(i) of the image                      image = pieces put back by π⁻¹

π is a permutation of g² numbers, the order of as many random ones. Undone it gives the image again, pixel by pixel.

Systems: pirl
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.errors import Mistake


def permutations(u: Tensor) -> Tensor:
    """Random numbers (b, k) -> a permutation of 0..k−1 for each row, all equally likely: (b, k)."""
    return u.argsort(dim=1)


def invert(permutation: Tensor) -> Tensor:
    """π⁻¹ of each row: (b, k) -> (b, k)."""
    return permutation.argsort(dim=1)


def cut(x: Tensor, grid: int) -> Tensor:
    """Images (b, c, h, w) -> pieces (b, g², c, h/g, w/g), row by row."""
    b, c, h, w = x.shape
    if grid < 1 or h % grid or w % grid:
        raise Mistake(f"images of {h}×{w} cannot be cut into {grid}×{grid} equal pieces; choose another grid or size")
    pieces = x.view(b, c, grid, h // grid, grid, w // grid).permute(0, 2, 4, 1, 3, 5)
    return pieces.reshape(b, grid * grid, c, h // grid, w // grid)


def join(pieces: Tensor) -> Tensor:
    """Pieces (b, g², c, h, w) -> images (b, c, g h, g w)."""
    b, k, c, h, w = pieces.shape
    grid = round(k**0.5)
    return pieces.view(b, grid, grid, c, h, w).permute(0, 3, 1, 4, 2, 5).reshape(b, c, grid * h, grid * w)


def reorder(pieces: Tensor, permutation: Tensor) -> Tensor:
    """pieces[i] = piece π(i): (b, k, ..), (b, k) -> (b, k, ..)."""
    rows = torch.arange(len(pieces), device=pieces.device)[:, None]
    return pieces[rows, permutation]
