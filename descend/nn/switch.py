"""The Switch layer: every token passes through one expert.

    p = softmax(W_r x),  i = argmax p          y = p_i(x) E_i(x)
    an expert takes C = ⌈factor · tokens / N⌉ tokens; those beyond it are dropped: y = 0, the residual carries them

Parameters grow with N at constant arithmetic for a token. The factor p_i gives the router its gradient. With N = 1 it
is the plain network. In training the router's input is jittered, x ⊙ u, u uniform in 1 ± ε (the paper's 0.01).
The book names the layer only (MF 20.5.3, S940 12.4); capacity, dropped tokens and jitter are the paper's.

Systems: switch-transformer
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.nn.experts import Experts, Router, Routing, dispatch
from descend.ops.routing import capacity, gates, top_k, within_capacity


class SwitchRouter(Router):
    """The one expert of the largest gate, with the gate as its weight."""

    def __init__(self, width: int, experts: int, jitter: float = 0.0):
        super().__init__(width, experts, k=1)
        self.jitter = jitter

    def forward(self, x: Tensor) -> Routing:
        if self.training and self.jitter:
            x = x * torch.empty_like(x).uniform_(1 - self.jitter, 1 + self.jitter)
        p = gates(self.gate(x))
        return Routing(*top_k(p, 1), p)


class Switch(nn.Module):
    """x (b, t, d) -> (b, t, d), 0 for the tokens that found their expert full."""

    def __init__(self, router: SwitchRouter, experts: Experts, factor: float = 1.25):
        super().__init__()
        self.router, self.experts, self.factor = router, experts, factor

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, -2)
        routing: Routing = self.router(flat)
        kept = within_capacity(
            routing.chosen[:, 0], len(self.experts), capacity(len(flat), len(self.experts), self.factor)
        )
        rows = kept.nonzero().squeeze(1)  # a dropped token costs nothing
        y = dispatch(flat[rows], routing.weight[rows], routing.chosen[rows], self.experts)
        return torch.zeros_like(flat).index_copy(0, rows, y).view_as(x)
