"""What a denoising network predicts: the noise ε, the image x_0, or v. Each is a linear function of another and x_t.

    x_t = √ᾱ x_0 + √(1 − ᾱ) ε                         v = √ᾱ ε − √(1 − ᾱ) x_0
    x_0 = (x_t − √(1 − ᾱ) ε) / √ᾱ                     x_0 = √ᾱ x_t − √(1 − ᾱ) v
    ε   = (x_t − √ᾱ x_0) / √(1 − ᾱ)                   ε   = √(1 − ᾱ) x_t + √ᾱ v
    score ∇ log p(x_t) = −ε / √(1 − ᾱ)

(x_t, v) is (x_0, ε) turned by an angle φ with cos φ = √ᾱ, so v is finite and informative at both ends: at ᾱ = 0, where
ε cannot tell x_0, v = −x_0. DLN-C.148 names the v-objective without a formula; it is that of progressive distillation.

Systems: prediction-parametrisation
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch import Tensor

Predicts = Literal["eps", "x0", "v"]
Number = Tensor | float


class Estimate(NamedTuple):
    """What a prediction means at x_t: the image and the noise that make it up."""

    x0: Tensor
    eps: Tensor


def v_of(x0: Tensor, eps: Tensor, abar: Number) -> Tensor:
    """√ᾱ ε − √(1 − ᾱ) x_0"""
    return abar**0.5 * eps - (1 - abar) ** 0.5 * x0


def target_of(predicts: Predicts, x0: Tensor, eps: Tensor, abar: Number) -> Tensor:
    """What the network should say."""
    if predicts == "eps":
        return eps
    return x0 if predicts == "x0" else v_of(x0, eps, abar)


def x0_from_eps(x: Tensor, eps: Tensor, abar: Number) -> Tensor:
    return (x - (1 - abar) ** 0.5 * eps) / abar**0.5


def eps_from_x0(x: Tensor, x0: Tensor, abar: Number) -> Tensor:
    return (x - abar**0.5 * x0) / (1 - abar) ** 0.5


def estimate(predicts: Predicts, out: Tensor, x: Tensor, abar: Number) -> Estimate:
    """x_0 and ε from what the network said at x_t."""
    if predicts == "eps":
        return Estimate(x0_from_eps(x, out, abar), out)
    if predicts == "x0":
        return Estimate(out, eps_from_x0(x, out, abar))
    a, s = abar**0.5, (1 - abar) ** 0.5
    return Estimate(a * x - s * out, s * x + a * out)


def score_from_eps(eps: Tensor, abar: Number) -> Tensor:
    """∇ log p(x_t) = −ε / √(1 − ᾱ)"""
    return -eps / (1 - abar) ** 0.5


def eps_from_score(score: Tensor, abar: Number) -> Tensor:
    return -score * (1 - abar) ** 0.5
