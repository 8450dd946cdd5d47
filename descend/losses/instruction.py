"""The loss of instruction tuning: how surprising each response is, given its instruction.

    x: n tokens of an instruction,  r: m tokens of the response,  token = x r
    L = − Σ_{t=1..m} log P(r_t | x, r_<t)  =  − Σ_{t=1..n+m} mask_t log P(token_t | token_<t)

mask is 0 on the instruction and 1 on the response. It is a SUM over the response (VOM 13.5), so a long answer counts
for more than a short one; a mean over tokens, as trl takes it, weighs every token of a batch alike:

    L̄ = Σ_i L_i / Σ_i m_i          for one response L = m L̄, and their gradients are parallel

What the labels of the instruction are makes no difference: their losses are never taken.

Systems: instruction-tuning
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy


def response_losses(logits: Tensor, tokens: Tensor, said: Tensor) -> Tensor:
    """L of each row (b): logits (b, t − 1, v) of the tokens that follow, tokens (b, t), and which were said (b, t)."""
    at = said[:, 1:]
    losses = cross_entropy(logits[at], tokens[:, 1:][at].long(), reduction="none")
    rows = at.nonzero()[:, 0]
    return torch.zeros(len(tokens), dtype=losses.dtype, device=losses.device).index_add(0, rows, losses)


def response_mean(logits: Tensor, tokens: Tensor, said: Tensor) -> Tensor:
    """L̄: the mean over the response tokens of all rows."""
    at = said[:, 1:]
    return cross_entropy(logits[at], tokens[:, 1:][at].long())


def sequence_losses(logits: Tensor, tokens: Tensor, said: Tensor) -> Tensor:
    """The same L (b) in its second form, Σ_t mask_t (−log P): every position is computed, and masked afterwards."""
    real = tokens[:, 1:].clamp_min(0).long()
    losses = cross_entropy(logits.flatten(0, 1), real.flatten(), reduction="none").view_as(real)
    return (said[:, 1:].to(losses.dtype) * losses).sum(dim=1)
