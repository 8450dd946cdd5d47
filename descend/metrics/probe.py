"""A linear probe: what a layer's vectors say to a linear classifier.

    W = argmin_W ‖X W − Y‖² + λ ‖W‖²,  Y one-hot          ŷ = argmax (x W)

X has a column of ones. In closed form, so a probe costs one solve and adds no training of its own. High accuracy says
that the label is there for a linear map to read; it does not say that the model uses it.

Systems: attention-head-and-layer-probes, position-encoding-labs
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def linear_probe(x: Tensor, y: Tensor, ridge: float = 1e-3) -> Tensor:
    """W (d + 1, classes) fitted to vectors x (n, d) and labels y (n)."""
    x, hot = with_one(x), F.one_hot(y).double()
    eye = ridge * len(x) * torch.eye(x.shape[1], dtype=torch.float64)
    return torch.linalg.solve(x.T @ x + eye, x.T @ hot)


def probe_accuracy(x: Tensor, y: Tensor, ridge: float = 1e-3) -> float:
    """Share of labels that a probe fitted to the first half reads right in the second."""
    half = len(x) // 2
    found = with_one(x[half:]) @ linear_probe(x[:half], y[:half], ridge)
    return float((found.argmax(dim=-1) == y[half:]).double().mean())


def with_one(x: Tensor) -> Tensor:
    """(n, d) -> (n, d + 1) in float64, with a column of ones."""
    return F.pad(x.detach().double(), (0, 1), value=1.0)
