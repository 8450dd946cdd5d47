"""The theory of a GAN in numbers: the best discriminator, what it measures, and where the game goes.

    D*(x) = p(x) / (p(x) + q(x))                         p: data, q: generated; chooses the denser one
    accuracy of D*    ½ + ½ TV(p, q)                     TV = ½ Σ |p − q|; for N(0, 1) and N(m, 1) it is Φ(m/2)
    V(D)              Σ p log D + Σ q log(1 − D)
    V(D*)             2 JS(p ‖ q) − log 4                JS = ½ KL(p ‖ r) + ½ KL(q ‖ r),  r = ½ (p + q)
    equilibrium       p = q, D* = ½ everywhere, V = −log 4, L_D = 2 log 2

JS is log 2 for ALL pairs without common support, near or far: no gradient. The Wasserstein distance is how far mass has
to be carried, and goes on changing:

    W₁(p, q) = sup { E_p f − E_q f : |f(x) − f(y)| ≤ |x − y| } = ∫ |F_p − F_q| dx        on a line
             = mean |x₍ᵢ₎ − y₍ᵢ₎|                                                        of sorted samples

The simplest game is min_x max_y x y. Both players stepping at once multiply the distance from its solution (0, 0) by
√(1 + η²) at every step; taking turns, they circle it without end:

    at once      x ← x − η y,  y ← y + η x          eigenvalues 1 ± iη
    in turns     x ← x − η y,  y ← y + η x_new      x² + y² − η x y stays as it is, for η < 2

Systems: optimal-discriminator, js-versus-wasserstein, mode-collapse
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.math.information import kl

# The best discriminator


def optimal_discriminator(p: Tensor, q: Tensor) -> Tensor:
    """D* = p / (p + q) of each outcome; ½ where neither has any mass."""
    return torch.where(p + q > 0, p / (p + q).clamp(min=torch.finfo(p.dtype).tiny), 0.5)


def game_value(d: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """V(D) = Σ p log D + Σ q log(1 − D)"""
    return (p.xlogy(d) + q.xlogy(1 - d)).sum(-1)


def best_value(p: Tensor, q: Tensor) -> Tensor:
    """V(D*), exact where 1 − D* would round to 0: 1 − D*(p, q) = D*(q, p)"""
    return (p.xlogy(optimal_discriminator(p, q)) + q.xlogy(optimal_discriminator(q, p))).sum(-1)


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """JS(p ‖ q), from 0 for p = q to log 2 for distributions without a common outcome"""
    r = (p + q) / 2
    return (kl(p, r) + kl(q, r)) / 2


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """½ Σ |p − q|"""
    return (p - q).abs().sum(-1) / 2


def oracle_accuracy(p: Tensor, q: Tensor) -> Tensor:
    """½ Σ max(p, q) = ½ + ½ TV: how often the denser one is right when both are equally frequent."""
    return torch.maximum(p, q).sum(-1) / 2


# Wasserstein distance on a line


def wasserstein_of_samples(x: Tensor, y: Tensor) -> Tensor:
    """W₁ of as many samples x (n) and y (n): the i-th smallest of one goes to the i-th smallest of the other."""
    if x.shape != y.shape or x.dim() != 1:
        raise ValueError(f"samples of shapes {tuple(x.shape)} and {tuple(y.shape)}: give two rows of one length")
    return (x.sort().values - y.sort().values).abs().mean()


def wasserstein_on_line(places: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """∫ |F_p − F_q| of masses p (n) and q (n) at ascending places (n)."""
    gap = (p - q).cumsum(0)[:-1].abs()
    return (gap * places.diff()).sum()


# The bilinear game min_x max_y x y


def step_at_once(x: Tensor, y: Tensor, eta: float) -> tuple[Tensor, Tensor]:
    """Both players move by the gradient at the same point."""
    return x - eta * y, y + eta * x


def step_in_turns(x: Tensor, y: Tensor, eta: float) -> tuple[Tensor, Tensor]:
    """y moves by the gradient at the place to which x has just gone."""
    x = x - eta * y
    return x, y + eta * x
