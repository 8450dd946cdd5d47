"""What naive Bayes says of a word: how much more often it stands in texts of one class than in those of the others.

    p(w | c) = (1 + n_wc) / Σ_v (1 + n_vc)              n_wc: texts of class c that have the word w
    e_wc = log p(w | c) − (1/C) Σ_k log p(w | k)        a text speaks for the class with the largest Σ_w e_wc

A classifier that sees few texts may begin with it: `begin_with` lays it into the first word vectors, where everything
else is random.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot


def word_evidence(x: Tensor, y: Tensor, vocab: int, classes: int, pad: int = 0) -> Tensor:
    """e (vocab, classes) of texts x (n, t) and their classes y (n); 0 for the padding."""
    has = torch.zeros(len(x), vocab).scatter_(1, x, 1.0)
    n = 1 + has.T @ one_hot(y, classes).float()
    log_p = (n / n.sum(dim=0)).log()
    e = log_p - log_p.mean(dim=1, keepdim=True)
    e[pad] = 0
    return e


@torch.no_grad()
def begin_with(vectors: Tensor, evidence: Tensor, scale: float) -> None:
    """Add scale · e_w to the vectors (vocab, d), a random direction for each class."""
    directions = normalize(torch.randn(evidence.shape[1], vectors.shape[1]), dim=1)
    vectors += scale * evidence.to(vectors) @ directions.to(vectors)
