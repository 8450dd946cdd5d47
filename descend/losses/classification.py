"""Losses of classifiers, from logits, in the log domain; one value for each example, never reduced (see `risk`).

    p = softmax(z)          ℓ = −log p_y = −z_y + log Σ_j exp z_j                 ∂ℓ/∂z = p − y
    soft targets q          ℓ = −Σ_k q_k log p_k = H(q) + KL(q ‖ p)               ∂ℓ/∂z = p − q
    label smoothing         q_k = 1 − ε + ε/V for k = y, else ε/V                 least loss H(q), not 0
    two classes, one logit  ℓ = −y log σ(z) − (1−y) log σ(−z) = softplus(z) − y z        ∂ℓ/∂z = σ(z) − y
    focal                   ℓ = −(1 − p_y)^γ log p_y                              γ = 0: cross-entropy
    class weights w         mean = Σ_i w_{y_i} ℓ_i / Σ_i w_{y_i}                  (the weights' sum, not the count)

log Σ exp is taken after the largest logit is subtracted, so losses and gradients are finite for logits of ±1e4.
The α of other texts on the focal loss is a class weight: α[y] · focal. Padding has weight 0. With ε > 0 torch also
weighs the classes inside q; here a weight belongs to the example.
Errata: the middle term of MF (4.17) is 2(p − y), its result p − y is right. VOM 3.10 calls p − y the gradient "for each
probability"; it is that of the logits (in the probabilities: −y/p). It points from target to prediction (VOM 12.4.2
has the direction reversed); descending goes the other way. The smoothed target 0.05, 0.9, 0.05 of VOM's glossary has
ε = 0.15, not the usual 0.1.

Systems: cross-entropy, nll-loss, binary-cross-entropy, focal-loss, label-smoothing
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.checks import label_range, label_shape, not_negative, same_shape, shares
from descend.losses.risk import weighted_risk

NO_LABEL = -(2**63)  # torch leaves out the label −100 in silence; no label is left out here


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−log softmax(z)_y of each example: logits (.., k), classes y (..) -> (..)."""
    return by_row(lambda z, y: F.cross_entropy(z, y, reduction="none", ignore_index=NO_LABEL), logits, y)


def smoothed_cross_entropy(logits: Tensor, y: Tensor, eps: float) -> Tensor:
    """−Σ_k q_k log softmax(z)_k against the smoothed target: logits (.., k), classes y (..) -> (..)."""
    return by_row(
        lambda z, y: F.cross_entropy(z, y, reduction="none", ignore_index=NO_LABEL, label_smoothing=eps), logits, y
    )


def by_row(loss: Callable[[Tensor, Tensor], Tensor], z: Tensor, y: Tensor) -> Tensor:
    """A loss of rows (n, k) and labels (n), taken to (.., k) and (..); a label out of range is named."""
    label_shape(z, y)
    y = y.long()
    try:
        if z.dim() == 2:
            return loss(z, y)
        return loss(z.reshape(-1, z.shape[-1]), y.reshape(-1)).view(y.shape)
    except (IndexError, RuntimeError):
        label_range(y, z.shape[-1])
        raise


def smooth_targets(y: Tensor, classes: int, eps: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """q: 1 − ε + ε/V for the class y, ε/V for the others; y (..) -> (.., V)."""
    label_range(y, classes)
    hot = y[..., None] == torch.arange(classes, device=y.device)
    return hot.to(dtype) * (1 - eps) + eps / classes


def soft_cross_entropy(logits: Tensor, q: Tensor) -> Tensor:
    """−Σ_k q_k log softmax(z)_k for targets that are distributions (.., k); one-hot q gives `cross_entropy`."""
    same_shape(logits, q, "logits and target distributions")
    not_negative(q)
    return -(q * logits.log_softmax(dim=-1)).sum(dim=-1)


def nll(log_p: Tensor, y: Tensor) -> Tensor:
    """−log p_y from log-probabilities (.., k); after log_softmax it is `cross_entropy`."""
    return by_row(lambda log_p, y: F.nll_loss(log_p, y, reduction="none", ignore_index=NO_LABEL), log_p, y)


def class_weighted_mean(losses: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    """Σ_i w_{y_i} ℓ_i / Σ_i w_{y_i}; a class of weight 0 (padding) is left out."""
    return weighted_risk(losses, weight[y])


def binary_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """−y log σ(z) − (1−y) log(1 − σ(z)) of each element, y in 0..1."""
    same_shape(logits, y, "logits and labels")
    shares(y, "label")
    y = y if y.dtype == logits.dtype else y.to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, y, reduction="none")


def binary_cross_entropy_of_probabilities(p: Tensor, y: Tensor) -> Tensor:
    """−y log p − (1−y) log(1−p) of each element; only for p that is not a saturated σ(z): use the logits there."""
    same_shape(p, y, "probabilities and labels")
    shares(y, "label")
    if shares(p):
        return -(-p).log1p().lerp(p.log(), y.to(p.dtype))
    # 0 log 0 = 0, and its derivative 0/0 is 0: a term without weight takes the logarithm of 1.
    hit, miss = torch.where(y == 0, 1.0, p), torch.where(y == 1, 0.0, p)
    return -(y * hit.log() + (1 - y) * (-miss).log1p())


def focal(losses: Tensor, gamma: float) -> Tensor:
    """(1 − p)^γ ℓ, where ℓ = −log p is the loss of each example's true class."""
    if gamma < 0:
        raise Mistake(f"gamma {gamma}: the focal loss needs 0 or more")
    if gamma >= 1:
        return (1 - (-losses).exp()) ** gamma * losses
    # The slope of (1 − p)^γ is infinite at 1 − p = 0, though that of the loss is 0: stay above it, to the last digit.
    return (-(-losses).expm1()).clamp_min(torch.finfo(losses.dtype).tiny) ** gamma * losses


def focal_cross_entropy(logits: Tensor, y: Tensor, gamma: float = 2.0) -> Tensor:
    """−(1 − p_y)^γ log p_y with p = softmax(z): logits (.., k), classes y (..) -> (..)."""
    return focal(cross_entropy(logits, y), gamma)


def focal_binary_cross_entropy(logits: Tensor, y: Tensor, gamma: float = 2.0) -> Tensor:
    """The same with p = σ(z) for y = 1 and 1 − σ(z) for y = 0, of each element."""
    return focal(binary_cross_entropy(logits, y), gamma)
