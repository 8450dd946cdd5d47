"""Losses of classifiers, from logits, in the log domain; one value for each example unless a mean is asked for.

    p = softmax(z)          ℓ = −log p_y = −z_y + log Σ_j exp z_j                 ∂ℓ/∂z = p − y
    soft targets q          ℓ = −Σ_k q_k log p_k = H(q) + KL(q ‖ p)               ∂ℓ/∂z = p − q
    two classes, one logit  ℓ = −y log σ(z) − (1−y) log σ(−z) = softplus(z) − y z        ∂ℓ/∂z = σ(z) − y
    class weights w         mean = Σ_i w_{y_i} ℓ_i / Σ_i w_{y_i}                  (the weights' sum, not the count)

log Σ exp is taken after the largest logit is subtracted, so the losses are finite for logits of ±1e4.
Errata: the middle term of MF (4.17) is 2(p − y), its result p − y is right. VOM 3.10 calls p − y the gradient "for each
probability"; it is that of the logits (in the probabilities: −y/p). It points from target to prediction (VOM 12.4.2
has the direction reversed); descending goes the other way.

Systems: cross-entropy, nll-loss, binary-cross-entropy
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−log softmax(z)_y of each example: logits (.., k), classes y (..) -> (..)."""
    return F.cross_entropy(logits.flatten(0, -2), y.flatten(), reduction="none").view(y.shape)


def soft_cross_entropy(logits: Tensor, q: Tensor) -> Tensor:
    """−Σ_k q_k log softmax(z)_k for targets that are distributions (.., k); one-hot q gives `cross_entropy`."""
    return -(q * logits.log_softmax(dim=-1)).sum(dim=-1)


def nll(log_p: Tensor, y: Tensor) -> Tensor:
    """−log p_y from log-probabilities (.., k); after log_softmax it is `cross_entropy`."""
    return -log_p.gather(-1, y[..., None]).squeeze(-1)


def class_weighted_mean(losses: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Σ_i w_{y_i} ℓ_i / Σ_i w_{y_i}; a class of weight 0 (padding) is left out."""
    w = weight[y]
    return (w * losses).sum() / w.sum()


def binary_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−y log σ(z) − (1−y) log(1 − σ(z)) of each element, y in 0..1."""
    return F.binary_cross_entropy_with_logits(logits, y, reduction="none")


def binary_cross_entropy_of_probabilities(p: Tensor, y: Tensor) -> Tensor:
    """−y log p − (1−y) log(1−p) of each element; only for p that is not a saturated σ(z): use the logits there."""
    return -(y.xlogy(p) + (1 - y).xlogy(1 - p))
