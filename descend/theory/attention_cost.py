"""What attention costs: multiplications and memory of full attention and of the forms that leave pairs out.

    scores Q Kᵀ    H T² d_k = T² d            A V: the same again            T² numbers for each head        quadratic
    layer          attention O(H T² d_k), feed-forward O(T d d_ff), projections O(T d²); L layers: L times as much
    T5             encoder T_x² d + T_x d d_ff;   decoder T_y² d + T_y T_x d + T_y d d_ff
    window w       T (2w + 1) − w (w + 1) pairs           with g global tokens at most T (2w + 1) + 2 g T
    strided l      about T (l + T/(2l)), least at l ≈ √T: O(T √T)
    Performer      2 T m d multiplications, m features    linear in T

    exponent       cost ~ T^p:   p is the slope of log cost against log T

Inconsistent in MF: 32.6.2 and 33.10.2 write O(H T² d_k), 35.6.1, 36.8 and 37.10.1 drop the factor H. H is no constant
(H d_k = d), so here a layer costs O(T² d). The projections O(T d²) are left out everywhere in MF; `layer_flops` has
them. A backward pass costs twice its forward pass. FLOPs count a multiplication and an addition as two.

Systems: attention-cost-model, longformer
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from descend.theory.attention import flops, head_size


def full_pairs(tokens: int) -> int:
    """T²: the scores of one head."""
    return tokens**2


def causal_pairs(tokens: int) -> int:
    """T (T + 1) / 2"""
    return tokens * (tokens + 1) // 2


def window_pairs(tokens: int, radius: int) -> int:
    """T (2w + 1) − w (w + 1); T² once the window reaches over all."""
    w = min(radius, tokens - 1)
    return tokens * (2 * w + 1) - w * (w + 1)


def global_pairs_bound(tokens: int, radius: int, count: int) -> int:
    """T (2w + 1) + 2 g T: g rows and g columns more than the window; those inside it are counted twice."""
    return tokens * (2 * radius + 1) + 2 * count * tokens


def strided_pairs_bound(tokens: int) -> float:
    """2 T √T: a row of √T and a column of √T for every query."""
    return 2 * tokens * math.sqrt(tokens)


def score_multiplications(tokens: int, heads: int, head_size: int) -> int:
    """H T² d_k: the products of Q Kᵀ in all heads of a layer."""
    return heads * full_pairs(tokens) * head_size


def attention_multiplications(tokens: int, width: int, value_width: int | None = None) -> int:
    """T² d for the scores and T² d_v for the outputs."""
    return full_pairs(tokens) * (width + (width if value_width is None else value_width))


def performer_multiplications(tokens: int, features: int, width: int) -> int:
    """2 T m d: Φ(K)ᵀ V and Φ(Q) times it."""
    return 2 * tokens * features * width


def score_bytes(tokens: int, heads: int, batch: int = 1, each: int = 4) -> int:
    """The memory of the T × T weights of every head, kept for the backward pass."""
    return batch * heads * full_pairs(tokens) * each


def layer_flops(tokens: int, width: int, heads: int, hidden: int) -> int:
    """Projections, scores, weighted sums and feed-forward part of one encoder layer, forward."""
    return flops(tokens, width, heads, head_size(width, heads)) + 4 * tokens * width * hidden


def decoder_layer_flops(tokens: int, source: int, width: int, heads: int, hidden: int) -> int:
    """The same with attention from T_y tokens to T_x of a source: queries and output of T_y, keys and values of T_x."""
    cross = 4 * tokens * width**2 + 4 * source * width**2 + 4 * tokens * source * width
    return layer_flops(tokens, width, heads, hidden) + cross


def longformer_multiplications(layers: int, tokens: int, radius: int, count: int, width: int, hidden: int) -> int:
    """L (T (2w + 1) d + 2 g T d + T d d_ff), the terms of MF 35.6 with all heads: d in the place of d_k."""
    return layers * (global_pairs_bound(tokens, radius, count) * width + tokens * width * hidden)


def work_ratio(factor: float, exponent: float) -> float:
    """How much more work `factor` times the tokens are; at factor 10: 10 for a linear method, 100 for a quadratic."""
    return factor**exponent


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """p of cost ~ size^p: least squares in the logarithms."""
    x, y = ([math.log(value) for value in values] for values in (sizes, costs))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    up = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return up / sum((a - mean_x) ** 2 for a in x)
