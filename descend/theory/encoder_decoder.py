"""What an encoder-decoder transformer costs: the FLOPs of its blocks, part by part.

    one encoder block, n tokens:   projections 8 n d²   scores and mixing 4 n² d   feed-forward 4 n d d_ff
    scores and mixing outgrow the rest when 4 n² d > 8 n d² + 4 n d d_ff,   n > 2 d + d_ff
    attention of m target positions to n source positions:   4 m n d, and 4 m d² + 4 n d² for its projections

VOM 12.8 writes O(n² d N) for the whole, which drops the terms linear in n although they are the greater ones up to
n = 3072 at the base size: it is O(N (n² d + n d² + n d d_ff)).
"""

from __future__ import annotations

from typing import NamedTuple

from descend.theory.attention import mixing_flops, projection_flops


class Flops(NamedTuple):
    """Of one block, forward."""

    mixing: int
    """Scores and weighted sums."""
    projections: int
    feed_forward: int

    @property
    def total(self) -> int:
        return sum(self)


def encoder_block_flops(n: int, width: int, hidden: int) -> Flops:
    """One encoder block over n tokens, 2 FLOPs for a multiplication and its addition."""
    return Flops(mixing_flops(n, 1, width), projection_flops(n, width, 1, width), 4 * n * width * hidden)


def cross_attention_flops(m: int, n: int, width: int) -> Flops:
    """Attention of m target positions to n source positions."""
    return Flops(4 * m * n * width, 4 * (m + n) * width**2, 0)


def quadratic_from(width: int, hidden: int) -> int:
    """n = 2 d + d_ff, where the part that is quadratic in the length equals the rest."""
    return 2 * width + hidden
