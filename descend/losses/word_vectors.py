"""Costs of learning word vectors.

    skip-gram, full softmax   −log P(o | c),  P(o | c) = exp(w'_o·w_c) / Σ_w exp(w'_w·w_c):  V dot products a pair.
                              It is `classification.cross_entropy` of the scores; at zero vectors it is log V
    negative sampling         −log σ(w'_o·w_c) − Σ_{i=1..k} log σ(−w'_{n_i}·w_c):  k + 1 dot products a pair
    GloVe, published          f(X_ij) (w_i·ŵ_j + b_i + b̂_j − log X_ij)²,   f(x) = min(1, (x / x_max)^α)
    GloVe, DLD's triples      ((w_i − w_s)·ŵ_g − log P(i|g) / P(s|g))²

VOM maximises the SUM of log P over all pairs; a mean over a batch has the same maximum and a step that does not depend
on the batch. VOM 7.3.3 says that negative sampling has the same outcome as the softmax; that is informal: at its
optimum w'_o·w_c = log (P(o, c) / (P(o) P(c))) − log k for noise from P(o), which is another matrix (shifted pointwise
mutual information, `shifted_pmi`). DLD's triples have no biases and no weights, and leave P(i|g) = 0 out.

Systems: skip-gram-negative-sampling, glove
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from descend.losses.checks import not_negative, same_shape


def negative_sampling(positive: Tensor, negative: Tensor) -> Tensor:
    """Scores w'_o·w_c (b) and those of the noise words (b, k) -> (b)."""
    return -logsigmoid(positive) - logsigmoid(-negative).sum(dim=-1)


def dot_products(negatives: int) -> int:
    """k + 1 for each pair, against V of the full softmax."""
    return negatives + 1


def shifted_pmi(joint: Tensor, negatives: int) -> Tensor:
    """log (P(c, o) / (P(c) P(o))) − log k of a table of P(c, o): what negative sampling's scores tend to."""
    c, o = joint.sum(dim=1, keepdim=True), joint.sum(dim=0, keepdim=True)
    return (joint / (c * o)).log() - math.log(negatives)


def glove_weight(count: Tensor, most: float = 100.0, alpha: float = 0.75) -> Tensor:
    """f(x) = min(1, (x / x_max)^α): rare pairs count less, and none more than 1."""
    return (count / most).pow(alpha).clamp_max(1)


def glove(score: Tensor, count: Tensor, most: float = 100.0, alpha: float = 0.75) -> Tensor:
    """f(X) (score − log X)² of counts above 0."""
    same_shape(score, count, "scores and counts")
    not_negative(count, "count")
    return glove_weight(count, most, alpha) * (score - count.log()).square()


def log_ratio(score: Tensor, ratio: Tensor) -> Tensor:
    """(r̂ − r)², r = log P(i|g) / P(s|g)."""
    same_shape(score, ratio, "scores and ratios")
    return (score - ratio).square()


def noise_weights(counts: Tensor, power: float = 0.75) -> Tensor:
    """P(w) ∝ count(w)^power: 0 for uniform, 1 for the frequencies, 3/4 as published (VOM gives no distribution)."""
    p = torch.where(counts > 0, counts.double().pow(power), 0.0)
    return p / p.sum()
