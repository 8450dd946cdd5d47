"""The residual stream in closed form: how small its terms must start.

    x_N = x_0 + Σ_{i=1..N} f_i,   Var(f_i) = σ²   ⟹   Var(Σ f_i) = N σ²        independent terms

so each term is drawn smaller by 1/√N. A transformer block adds two terms (attention, feed-forward): N = 2 · depth.
"""

from __future__ import annotations

import math


def residual_layers(depth: int) -> int:
    """N: the terms that `depth` transformer blocks add to the stream."""
    return 2 * depth


def residual_scale(layers: int) -> float:
    """1/√N."""
    return 1 / math.sqrt(layers)
