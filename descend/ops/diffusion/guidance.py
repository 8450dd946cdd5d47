"""Guidance: a stronger pull towards what was asked for than the data alone would give.

    classifier         ∇ log p(x) + γ ∇ log p(y | x)          in ε:  ε − γ √(1 − ᾱ_t) ∇ log p(y | x_t)
    classifier-free    (1 − γ) ∇ log p(x) + γ ∇ log p(x | y)   in ε:  u + γ (c − u)

Both sample p(x) p(y | x)^γ up to a constant: γ = 0 ignores y, γ = 1 is p(x | y), γ > 1 sharpens it: better aligned
with y, less diverse. Erratum: DLN-C.134 prints that γ = 1 gives p(y | x); it is p(x | y).
The classifier-free paper writes (1 + w) c − w u: γ = w + 1. S940's w is this γ.

Systems: classifier-guidance, classifier-free-guidance
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.ops.diffusion.prediction import Predicts

Number = Tensor | float


def combine(u: Tensor, c: Tensor, gamma: Number) -> Tensor:
    """u + γ (c − u): from the unconditional through the conditional prediction and beyond."""
    return u + gamma * (c - u)


def combine_as_in_the_paper(u: Tensor, c: Tensor, w: Number) -> Tensor:
    """(1 + w) c − w u, w = γ − 1"""
    return (1 + w) * c - w * u


def guide_score(score: Tensor, classifier_gradient: Tensor, gamma: Number) -> Tensor:
    """∇ log p(x) + γ ∇ log p(y | x)"""
    return score + gamma * classifier_gradient


def guide_noise(eps: Tensor, classifier_gradient: Tensor, gamma: Number, abar: Number) -> Tensor:
    """ε − γ √(1 − ᾱ) ∇ log p(y | x_t)"""
    return eps - gamma * (1 - abar) ** 0.5 * classifier_gradient


def guide_prediction(
    predicts: Predicts, out: Tensor, classifier_gradient: Tensor, gamma: Number, abar: Number
) -> Tensor:
    """The same for a network that predicts ε, x_0 or v: all are linear in ε at one x_t."""
    if predicts == "eps":
        return guide_noise(out, classifier_gradient, gamma, abar)
    step = gamma * (1 - abar) ** 0.5 / abar**0.5 * classifier_gradient
    return out - step if predicts == "v" else out + (1 - abar) ** 0.5 * step


def classifier_gradient(classifier: Callable[[Tensor, Tensor], Tensor], x: Tensor, t: Tensor, y: Tensor) -> Tensor:
    """∇_x log p(y | x, t) of a classifier(x, t) -> logits (b, classes); works where gradients are switched off."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        chosen = classifier(x, t).log_softmax(-1).gather(1, y[:, None]).sum()
        return torch.autograd.grad(chosen, x)[0]
