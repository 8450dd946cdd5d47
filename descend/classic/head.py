"""A linear probe: the head of a frozen network, fitted to features that are computed once.

    min_{W,b}  (1/n) Σ_i −log softmax(W φ_i + b)_{y_i} + (λ/2) ‖W‖²

The features φ_i of every example are one pass through the network; the problem that is left is convex, and L-BFGS with
a line search solves it in a moment, where training the head by steps runs the whole network for each of them.

Systems: transfer-learning
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def fit_head(features: Tensor, y: Tensor, classes: int, decay: float = 1e-3, steps: int = 200) -> nn.Linear:
    """The linear layer for features φ (n, d) and classes y (n); `decay` is λ, the bias is free."""
    if len(features) != len(y) or not len(y):
        raise ValueError(f"{len(features)} features for {len(y)} classes")
    φ = features.detach()
    mean, scale = φ.mean(dim=0), φ.std(dim=0, correction=0).clamp_min(1e-6)
    x = (φ - mean) / scale  # another basis, in which the climb is short; the penalty keeps that of φ
    w = torch.zeros(classes, x.shape[1], dtype=x.dtype, requires_grad=True)
    b = torch.zeros(classes, dtype=x.dtype, requires_grad=True)
    rule = torch.optim.LBFGS(
        [w, b],
        max_iter=steps,
        tolerance_grad=1e-9,
        tolerance_change=1e-12,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        rule.zero_grad()
        value = F.cross_entropy(x @ w.T + b, y) + decay / 2 * (w / scale).square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        rule.step(loss)
    head = nn.Linear(x.shape[1], classes, dtype=x.dtype)
    with torch.no_grad():
        head.weight.copy_(w / scale)
        head.bias.copy_(b - (w / scale) @ mean)
    return head
