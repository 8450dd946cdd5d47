"""Many small networks of one shape trained side by side: one product does the work of all of them.

y_c = W_L,c φ(… φ(W_1,c x_c + b_1,c) …) + b_L,c          copy c has its own weights and its own examples
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine


class Copies(nn.Module):
    """Networks with layers of these sizes; x (copies, n, sizes[0]) -> (copies, n, sizes[-1])."""

    def __init__(
        self,
        copies: int,
        sizes: Sequence[int],
        activation: Callable[[Tensor], Tensor],
        random: torch.Generator,
        gain: float = 1.0,
    ):
        super().__init__()
        self.activation = activation
        pairs = list(pairwise(sizes))
        draw = [gain * torch.randn(copies, n, m, generator=random) / n**0.5 for n, m in pairs]
        self.weights = nn.ParameterList(draw)
        self.biases = nn.ParameterList([torch.zeros(copies, 1, m) for _, m in pairs])

    def forward(self, x: Tensor) -> Tensor:
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(b, x, w)
            if i < len(self.weights) - 1:
                x = self.activation(x)
        return x


def fit_copies(model: nn.Module, loss: Callable[[], Tensor], steps: int, lr: float) -> None:
    """Adam with a cosine to zero on a loss that is a sum over copies, so that no copy sees another."""
    minimise(model, loss, steps, Adam(lr), Cosine(warmup=steps // 20, floor=0.0))
