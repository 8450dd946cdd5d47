"""A token from a uniform number that is given, so that every example can have random numbers of its own.

    token = min{ v : Σ_{w ≤ v} p_w > u },   p = softmax(logits / temperature) over the k likeliest        (inverse CDF)

Systems: dall-e-1
"""

from __future__ import annotations

import torch
from torch import Tensor


def draw_token(logits: Tensor, u: Tensor, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    """logits (b, v), u (b) in 0..1 -> tokens (b); top_k 0: all of them"""
    if 0 < top_k < logits.shape[-1]:
        least = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    total = (logits.double() / temperature).softmax(-1).cumsum(-1)
    u = u.double()[:, None] * total[:, -1:]
    return torch.searchsorted(total, u, right=True).squeeze(-1).clamp(max=logits.shape[-1] - 1)
