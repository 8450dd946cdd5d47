"""How often a model is right, for rare and for frequent tokens apart.

Frequent tokens can be guessed without reading. What a masked language model has learned shows where it beats the guess
"always the most frequent token", and in the rare ones (MF 20.8.2).

Systems: mlm
"""

from __future__ import annotations

import torch
from torch import Tensor


def accuracy_by_frequency(right: Tensor, tokens: Tensor, counts: Tensor, edges: list[int]) -> list[tuple[int, float]]:
    """(number of tokens, share that is right) for each class of frequency: below edges[0], .., from edges[-1] on.

    right (n) is 1 or 0, tokens (n) are the true tokens, counts (v) how often each token is in the training text.
    """
    kind = torch.bucketize(counts[tokens], torch.tensor(edges), right=True)
    number = torch.bincount(kind, minlength=len(edges) + 1)
    total = torch.bincount(kind, weights=right.double(), minlength=len(edges) + 1)
    return [(int(n), float(r) / max(int(n), 1)) for n, r in zip(number, total, strict=True)]
