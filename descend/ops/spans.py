"""The best span of a text: from the logits of its start and of its end.

    P(i, j) = softmax(s)_i · softmax(e)_j         (i, j) = argmax s_i + e_j,  i ≤ j < i + longest, both in the text

Systems: encoder-fine-tuning-heads
"""

from __future__ import annotations

import torch
from torch import Tensor


def best_span(start: Tensor, end: Tensor, mask: Tensor, longest: int) -> Tensor:
    """First and last position of the answer (b, 2): start, end and mask (b, t); `mask` is true where it may lie."""
    t = start.shape[1]
    far = torch.arange(t, device=start.device)[None, :] - torch.arange(t, device=start.device)[:, None]
    may = (far >= 0) & (far < longest) & mask[:, :, None] & mask[:, None, :]
    scores = (start[:, :, None] + end[:, None, :]).masked_fill(~may, -torch.inf)
    best = scores.flatten(1).argmax(dim=1)
    return torch.stack([best // t, best % t], dim=1)
