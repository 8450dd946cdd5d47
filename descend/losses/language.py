"""The causal language-model loss: how surprised the model is by the next token.

    L = − Σ_t log p(x_{t+1} | x_1 .. x_t)          SUM over positions (MF 20.3.2, VOM 13)
    L = the same / T                               MEAN over positions (MF 33.2); this is what training minimises here

Systems: causal-lm-loss
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def token_losses(logits: Tensor, y: Tensor) -> Tensor:
    """− log p of each target: logits (b, t, v), y (b, t) -> (b, t)"""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view_as(y)


def causal_lm_loss(logits: Tensor, y: Tensor) -> Tensor:
    """The mean over all positions, in nats."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def causal_lm_sum(logits: Tensor, y: Tensor) -> Tensor:
    """The sum over all positions, in nats: −log p of the whole batch."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum")
