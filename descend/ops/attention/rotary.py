"""Rotary positions as the books write them: a rotation of neighbouring pairs by an angle that grows with the position.

    θ_i = base^(−2(i−1)/d)                  i = 1 .. d/2, base 10000 (a fill-in: DLN and MF leave θ_i open)
    R_m = diag(R(mθ_1) .. R(mθ_{d/2})),     R(φ) = [cos φ, −sin φ; sin φ, cos φ] on (x_1, x_2), (x_3, x_4), …
    R_m x = x ⊙ cos + (−x_2, x_1, −x_4, x_3, …) ⊙ sin          each cos and sin stands twice
    (R_m q)·(R_n k) = qᵀ R_{n−m} k          the score knows the distance alone

R_mᵀ R_n = R_{n−m}; DLN prints R_{m−n}, an erratum. Lengths are kept, R_0 = I, values are not turned.
`halves` gives the order in which the pairs become (x_i, x_{i + d/2}), the layout of `descend.nn.attention.rotary`.

Systems: rope
"""

from __future__ import annotations

import torch
from torch import Tensor


def frequencies(size: int, base: float = 10000.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """θ (d/2,), from 1 downwards."""
    return 1.0 / base ** (torch.arange(0, size, 2).to(dtype) / size)


def rotation(angles: Tensor) -> Tensor:
    """R (…, d, d), block diagonal, for angles (…, d/2): one 2 × 2 rotation after another."""
    c, s = angles.cos(), angles.sin()
    blocks = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # (…, d/2, 2, 2)
    pair = torch.eye(angles.shape[-1], dtype=angles.dtype, device=angles.device)
    spread = blocks[..., :, :, None, :] * pair[:, None, :, None]  # (…, pair, row, pair, column)
    return spread.flatten(-4, -3).flatten(-2)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """R x without the matrix: x (…, d) with cos and sin (…, d/2) of the angles."""
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


def halves(size: int) -> Tensor:
    """x[halves(d)] = (x_1, x_3, …, x_2, x_4, …): neighbours become halves."""
    return torch.arange(size).view(-1, 2).t().flatten()
