"""A residual stack as a sum over paths: every block is passed through F or stepped over.

    n blocks        y = (I + F_n) ⋯ (I + F_1) x = Σ_{S ⊆ {1..n}} Π_{i ∈ S} F_i x          linear blocks: exactly
    paths           2ⁿ in all, C(n, k) of length k          mean length n/2
    deletion        without block i half of the paths are left, the others as they were
    tied weights    F_1 = ⋯ = F_n: the recurrence h_t = h_{t−1} + F(h_{t−1}), unrolled n times

The equation of paths needs linear blocks; for others it is a way to read a stack (S940 3.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import torch
from torch import Tensor


def linear_stack(blocks: Sequence[Tensor], x: Tensor) -> Tensor:
    """(I + F_n) ⋯ (I + F_1) x for matrices F_i (d, d) and x (d)."""
    for f in blocks:
        x = x + f @ x
    return x


def paths(blocks: Sequence[Tensor], x: Tensor) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Every path: the blocks that it passes through, and what it carries to the end."""
    n = len(blocks)
    for passed in (s for k in range(n + 1) for s in combinations(range(n), k)):
        carried = x
        for i in passed:
            carried = blocks[i] @ carried
        yield passed, carried


def sum_over_paths(blocks: Sequence[Tensor], x: Tensor) -> Tensor:
    """Σ over the 2ⁿ paths."""
    return torch.stack([carried for _, carried in paths(blocks, x)]).sum(dim=0)


def paths_by_length(n: int) -> list[int]:
    """C(n, 0) .. C(n, n)"""
    return [math.comb(n, k) for k in range(n + 1)]


def mean_path_length(n: int) -> float:
    """Σ_k k C(n, k) / 2ⁿ = n/2"""
    return sum(k * count for k, count in enumerate(paths_by_length(n))) / 2**n


def bottleneck_weights(channels: int) -> int:
    """1×1, 3×3, 1×1 around a quarter of the channels: C²/4 + 9 C²/16 + C²/4 = 17/16 C²."""
    inner = channels // 4
    return channels * inner + 9 * inner * inner + inner * channels


def two_convolutions_weights(channels: int) -> int:
    """Two full 3×3 convolutions: 18 C²."""
    return 2 * 9 * channels**2


BOTTLENECK_SHARE = 17 / 16 / 18
"""Weights of a bottleneck for each of two full 3×3 convolutions."""
