"""The symmetric contrastive loss of CLIP (multi-class N-pair): of N images and N texts, which belong together?

    s_ij = cos(I_i, T_j) / τ                                            N² scores, N pairs, N² − N implicit negatives
    ℓ_i = ½ (−log softmax_j(s_ij)_i − log softmax_j(s_ji)_i)            the text of image i, the image of text i
    L = (1/N) Σ_i ℓ_i

Orthonormal pairs that match give L = log(1 + (N − 1) e^(−1/τ)) (N = 3, τ = 1: 0.5514), equal scores log N. Swapping
images and texts changes nothing. DLN names no temperature; the original learns log 1/τ, from 1/τ = 14.3 up to 100.

When two pairs of a batch have the same text, neither is a negative for the other: `grouped_n_pair` shares the target
among them, q_ij = [i and j alike] / (how many are like i). With all texts different it is the loss above.

Systems: clip-contrastive-loss
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from descend.errors import Mistake
from descend.losses.classification import cross_entropy, soft_cross_entropy


def similarity(images: Tensor, texts: Tensor, tau: float = 1.0) -> Tensor:
    """s_ij = cos(I_i, T_j) / τ: (n, d), (m, d) -> (n, m)."""
    if tau <= 0:
        raise Mistake(f"temperature {tau}: it must be greater than 0")
    if images.dim() != 2 or texts.dim() != 2 or images.shape[1] != texts.shape[1]:
        shapes = f"{tuple(images.shape)} and {tuple(texts.shape)}"
        raise Mistake(f"embeddings of shapes {shapes}; both are (number, width) with the same width")
    return normalize(images, dim=-1) @ normalize(texts, dim=-1).T / tau


def n_pair(scores: Tensor) -> Tensor:
    """ℓ_i of each pair, which stands on the diagonal: (n, n) -> (n)."""
    square(scores)
    here = torch.arange(len(scores), device=scores.device)
    return (cross_entropy(scores, here) + cross_entropy(scores.T, here)) / 2


def grouped_n_pair(scores: Tensor, group: Tensor) -> Tensor:
    """The same where pairs with the same number in `group` (n) match each other too."""
    square(scores)
    alike = (group[:, None] == group).to(scores.dtype)
    q = alike / alike.sum(1, keepdim=True)
    return (soft_cross_entropy(scores, q) + soft_cross_entropy(scores.T, q)) / 2


def square(scores: Tensor) -> None:
    """As many images as texts."""
    if scores.dim() != 2 or scores.shape[0] != scores.shape[1]:
        raise Mistake(f"scores of shape {tuple(scores.shape)}: a batch has as many images as texts, (n, n)")
