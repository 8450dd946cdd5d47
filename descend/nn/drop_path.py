"""Stochastic depth: in training a whole branch of a residual block is left out of an example at random.

    x' = x + m f(x) / (1 − p)          m ~ Bernoulli(1 − p), one for each example; at test x + f(x)

p grows with depth, p_l = p_L l / (L − 1) for l = 0 .. L − 1: early blocks are nearly always there.
"""

from __future__ import annotations

from torch import Tensor, nn


class DropPath(nn.Module):
    """m x / (1 − p) in training, x otherwise."""

    def __init__(self, p: float):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p = {p}: the probability to drop is at least 0 and less than 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not self.p:
            return x
        keep = x.new_empty(len(x), *(1 for _ in x.shape[1:])).bernoulli_(1 - self.p)
        return x * keep.div_(1 - self.p)


def path_rates(last: float, depth: int) -> list[float]:
    """p_0 = 0 .. p_{L−1} = `last`, evenly."""
    return [last * layer / max(depth - 1, 1) for layer in range(depth)]
