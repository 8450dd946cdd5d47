"""Attention in closed form: why the scores are divided by √d_k, and what heads cost.

    Var(q·k) = Σ_i E[q_i²] E[k_i²] = d_k          independent entries, mean 0, variance 1
    Var(q·k / √d_k) = 1
    softmax over two scores that differ by g:  p = σ(g),  dp/dg = p (1 - p)      gone when g ≈ √d_k is large

    parameters = 3 d h k + h k d                  W^Q, W^K, W^V (d × k for each of h heads) and W^O (h k × d), no biases
    FLOPs(n)   = 3 · 2 n d h k + 2 n h k d        the projections of n tokens
               + 4 n² h k                         the scores Q Kᵀ and the mixing A V

With k = d / h all of these are free of h: eight heads of 64 cost what one head of 512 does, eight heads of 512 cost
eight times as much. MF 18.7.3 gives ±30 unscaled and ±3 scaled as typical ranges for d_k = 512; they do not belong
together, since √512 ≈ 22.6.

Systems: attention-scaling-analysis
"""

from __future__ import annotations

import math


def score_std(head_size: int) -> float:
    """√d_k: the standard deviation of q·k, and so the divisor that makes it 1."""
    return math.sqrt(head_size)


def score_beyond(head_size: int, limit: float) -> float:
    """P(|q·k| > limit), with q·k taken as normal (central limit theorem)."""
    return math.erfc(limit / (score_std(head_size) * math.sqrt(2)))


def pair_softmax_slope(gap: float) -> float:
    """p (1 - p), p = σ(gap): how fast a softmax over two scores still reacts when they differ by `gap`."""
    return 0.25 / math.cosh(gap / 2) ** 2  # the same number, without the cancellation in 1 - p


def head_size(width: int, heads: int) -> int:
    """k = d / h."""
    if width % heads:
        raise ValueError(f"width {width} is not a multiple of heads {heads}")
    return width // heads


def head_columns(head: int, head_size: int) -> range:
    """The columns that head number `head` (from 0) fills in [head_1 .. head_h]."""
    return range(head * head_size, (head + 1) * head_size)


def projection_shapes(width: int, heads: int, head_size: int) -> dict[str, tuple[int, int]]:
    """One head's W^Q, W^K and W^V, and the W^O that all heads share."""
    return dict.fromkeys(("W^Q", "W^K", "W^V"), (width, head_size)) | {"W^O": (heads * head_size, width)}


def parameters(width: int, heads: int, head_size: int) -> int:
    """3 d h k + h k d; 4 d² when k = d / h. Without biases, which would add 3 h k + d."""
    shapes = projection_shapes(width, heads, head_size)
    return sum((1 if name == "W^O" else heads) * math.prod(shape) for name, shape in shapes.items())


def projection_flops(tokens: int, width: int, heads: int, head_size: int) -> int:
    """2 FLOPs for each weight and token: 3 · 2 n d h k + 2 n h k d."""
    return 2 * tokens * parameters(width, heads, head_size)


def mixing_flops(tokens: int, heads: int, head_size: int) -> int:
    """4 n² h k: the scores and the weighted sums of the values."""
    return 4 * tokens**2 * heads * head_size


def flops(tokens: int, width: int, heads: int, head_size: int) -> int:
    """Projections and mixing of `tokens` positions, forward."""
    return projection_flops(tokens, width, heads, head_size) + mixing_flops(tokens, heads, head_size)
