"""A vector for a whole text from the vectors of its tokens.

    mean    x̄ = Σ_t m_t x_t / Σ_t m_t                 m_t = 1 for real tokens, 0 for padding
    unit    x̄ / |x̄|                                  so that the dot product of two texts is their cosine

Sentence encoders on BERT (all-MiniLM) take the mean and make it a unit vector.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def mean_pool(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """(b, t, d) -> (b, d); `mask` (b, t) is true for real tokens. A text without any has the vector 0."""
    if mask is None:
        return x.mean(dim=1)
    m = mask.to(x.dtype)[:, :, None]
    return (x * m).sum(dim=1) / m.sum(dim=1).clamp(min=1)


def sentence_vector(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mean over real tokens, at length 1."""
    return F.normalize(mean_pool(x, mask), dim=-1)
