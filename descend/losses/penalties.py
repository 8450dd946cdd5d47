"""Penalties on the weights, to be added to any loss. Biases and gains are never penalised.

    L2 (MF 7.2)                  λ Σ_l ‖W_l‖²                      gradient 2 λ W
    L2 (MF 8.4.1, S940, DLD)     λ/2 Σ_l ‖W_l‖²                    gradient λ W         half of the first
    L1                           λ Σ_l Σ_ij |W_ij|                 subgradient λ sign W, any of [−λ, λ] at 0
    elastic net                  λ (α ‖w‖₁ + (1 − α)/2 ‖w‖²)       α = 1: L1, α = 0: the half L2

A plain gradient step on loss + λ/2 ‖W‖² is weight decay: W ← (1 − ηλ) W − η g (torch's SGD with `weight_decay=λ`).
With Adam the two differ: AdamW decays beside the step. L1 by its subgradient rarely gives an exact 0;
`optim/proximal.py` does.

MAP: with independent weights W_ij ~ N(0, τ²), −log p(W) = ‖W‖²/(2τ²) + a constant. Beside the summed negative
log-likelihood of N examples the half L2 is this prior for λ = 1/τ², beside the mean for λ = 1/(N τ²). (MF 8.4.1 says
only "proportional".)

Systems: l2-weight-decay, l1-penalty
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn


def weights(module: nn.Module) -> list[Tensor]:
    """The trained matrices of a model: what is penalised. Vectors (biases, gains) are left out."""
    return [p for p in module.parameters() if p.requires_grad and p.dim() > 1]


def square_sum(ws: Iterable[Tensor]) -> Tensor:
    """Σ_l ‖W_l‖²"""
    return torch.stack([w.square().sum() for w in ws]).sum()


def l2(ws: Iterable[Tensor], lam: float) -> Tensor:
    """λ Σ_l ‖W_l‖², chapter 7 of MF."""
    return lam * square_sum(ws)


def half_l2(ws: Iterable[Tensor], lam: float) -> Tensor:
    """λ/2 Σ_l ‖W_l‖², everywhere else: its λ is the weight decay of an optimizer."""
    return lam / 2 * square_sum(ws)


def l1(ws: Iterable[Tensor], lam: float) -> Tensor:
    """λ Σ_l Σ_ij |W_ij|; torch takes 0 as the subgradient at 0."""
    return lam * torch.stack([w.abs().sum() for w in ws]).sum()


def elastic_net(ws: Iterable[Tensor], lam: float, alpha: float) -> Tensor:
    """λ (α ‖w‖₁ + (1 − α)/2 ‖w‖²)"""
    ws = list(ws)
    return l1(ws, lam * alpha) + half_l2(ws, lam * (1 - alpha))


def gaussian_prior(ws: Iterable[Tensor], tau: float) -> Tensor:
    """−log p(W) for independent entries N(0, τ²), constants included."""
    ws = list(ws)
    return square_sum(ws) / (2 * tau**2) + sum(w.numel() for w in ws) * math.log(tau * math.sqrt(2 * math.pi))


def decay_of_prior(tau: float, examples: int) -> float:
    """λ = 1/(N τ²): the half L2 that makes the minimum of a mean loss over N examples the MAP estimate."""
    return 1 / (examples * tau**2)


def zero_share(ws: Iterable[Tensor]) -> float:
    """The share of weights that are exactly 0."""
    ws = list(ws)
    return sum(int((w == 0).sum()) for w in ws) / sum(w.numel() for w in ws)
