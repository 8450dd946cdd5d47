"""Routing: which experts a token goes to, and with what weight.

    p = softmax(W_g x)                      over all N experts
    T_k = the k largest of p

    renormalised     g_e = p_e / Σ_{T_k} p          e in T_k: the softmax of the kept logits (MF 40.4, Mixtral)
    as they are      g_e = p_e                      the kept weights sum to less than 1 (S940 12.4, Switch, DeepSeek-V2)

    noise            p = softmax(W_g x + ε ⊙ softplus(W_n x)),  ε ~ N(0, 1)      (S940 names it only)
    capacity         C = ⌈factor · tokens / N⌉: an expert takes the first C of its tokens, the others are dropped

The books leave noise and capacity open; these are the forms of the papers.

Systems: mixture-of-experts, switch-transformer
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def gates(logits: Tensor) -> Tensor:
    """p (…, N), in float32 at least."""
    return logits.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32))


def top_k(p: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest gates as they are, and their experts: (…, k) each."""
    weight, index = p.topk(k, dim=-1)
    return weight, index


def top_k_renormalised(p: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest gates over their sum, and their experts: (…, k) each."""
    weight, index = top_k(p, k)
    return weight / weight.sum(-1, keepdim=True), index


def noisy(logits: Tensor, spread: Tensor) -> Tensor:
    """logits + ε softplus(spread): experts with close gates take turns, so that all of them learn."""
    return logits + torch.randn_like(logits) * F.softplus(spread)


def best_groups(scores: Tensor, kept: int, size: int) -> Tensor:
    """(…, N): True for the experts of the `kept` best groups, `size` experts each; scores (…, groups)."""
    chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, scores.topk(kept, dim=-1).indices, True)
    return chosen.repeat_interleave(size, dim=-1)


def capacity(tokens: int, experts: int, factor: float) -> int:
    """C = ⌈factor · tokens / N⌉."""
    return math.ceil(factor * tokens / experts)


def within_capacity(index: Tensor, experts: int, room: int) -> Tensor:
    """(…, n): True for the first `room` tokens of each expert, in the order of the text; index (…, n)."""
    queue = F.one_hot(index, experts).cumsum(-2)  # how many of each expert's tokens there are so far
    return queue.gather(-1, index[..., None]).squeeze(-1) <= room
