"""Gradient averaging over the last K steps.

    x_{t+1} = x_t − α (1/K) Σ_{k = t−K+1}^{t} ∇g(x_k)          the mean of what exists while t < K

DLD 1.7 prints this under the heading ADAM; it is not Adam (no exponential moments, no second moment, no correction).
K = 1 is gradient descent. With exact gradients the window does not help: on a quadratic of curvature λ it is stable
for α λ < 2 K sin²(π / 2K), which is 2, 2, 1.5, 1.17, 0.95 for K = 1 to 5 (`stability.py`). What it can do is to
average noise.

Systems: gradient-window-averaging
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from descend.errors import Mistake
from descend.optim.elementwise import Elementwise, Group, Row, with_l2


class GradientWindow(Elementwise):
    """θ ← θ − α times the mean of the last K gradients; one buffer a gradient."""

    def __init__(self, params: Iterable[Any], lr: float = 0.01, window: int = 4, weight_decay: float = 0.0):
        if window < 1:
            raise Mistake(f"window = {window} must be at least 1")
        self.slots = tuple(f"past_{k}" for k in range(window))
        super().__init__(params, lr=lr, weight_decay=weight_decay)

    def update(self, group: Group, t: int, p: Row, g: Row, *s: Row) -> None:
        torch._foreach_copy_(s[t % len(s)], with_l2(group, p, g))
        seen = min(t, len(s))
        for k in range(seen):  # from the newest to the oldest
            torch._foreach_add_(p, s[(t - k) % len(s)], alpha=-group["lr"] / seen)
