"""Dropout: in training each unit is silenced at random, so that none relies on another; at test all of them speak.

    m ~ Bernoulli(1 − p), one for each unit and example, fresh at every presentation; p is the probability to DROP
    inverted (MF 8.4.3, S940)     training  h̃ = m ⊙ h / (1 − p)        test  h             `torch.nn.Dropout(p)`
    plain (MF 7.5, DLN)           training  h̃ = m ⊙ h                  test  (1 − p) h     `PlainDropout(p)`

Both have E[h̃] = what the test uses; inverted has Var[h̃] = h² p/(1 − p). DLN's p is the probability to KEEP (0.5 for
hidden units, 0.8 for inputs, 1 for outputs), and it scales the outgoing weights at test, which is the same as scaling
h: `keeping(0.8)`. VOM drops attention weights and the FFN's activations at 0.1; the rows then no longer sum to 1.

The n units make 2ⁿ networks with shared weights. One presentation trains one of them, and the test network stands for
the geometric mean of all, renormalised: exactly when a softmax (or logistic) layer follows, since its logits are
linear in m,

    softmax(Σ_m P(m) log p_m) = softmax(W E[h̃] + b),

and only roughly when nonlinear layers do.

Systems: dropout
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def dropout(h: Tensor, p: float = 0.5) -> Tensor:
    """Inverted dropout in training; at test h is left as it is."""
    m = torch.empty_like(h).bernoulli_(1 - p)
    return m * h / (1 - p)


def drop(h: Tensor, m: Tensor) -> Tensor:
    """m ⊙ h"""
    return m * h


def inverted_drop(h: Tensor, m: Tensor, p: float) -> Tensor:
    """m ⊙ h / (1 − p): what torch does in training, for a given mask."""
    return m * h / (1 - p)


def drop_variance(h: Tensor, p: float) -> Tensor:
    """Var[m ⊙ h / (1 − p)] = h² p/(1 − p)"""
    return h.square() * p / (1 - p)


class PlainDropout(nn.Module):
    """Units dropped with probability p in training, multiplied by 1 − p at test."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"p = {p}: the probability to drop is between 0 and 1")
        self.p = p

    def forward(self, h: Tensor, m: Tensor | None = None) -> Tensor:
        """h of any shape; a mask m can be given, otherwise it is drawn."""
        if not self.training:
            return (1 - self.p) * h
        return drop(h, torch.empty_like(h).bernoulli_(1 - self.p) if m is None else m)


def keeping(p: float) -> PlainDropout:
    """DLN's dropout, whose p is the probability to keep a unit."""
    return PlainDropout(1 - p)


def all_masks(n: int) -> Tensor:
    """Every mask of n units: (2ⁿ, n) of 0 and 1."""
    return (torch.arange(2**n)[:, None] >> torch.arange(n)).bitwise_and(1).double()


def mask_probabilities(masks: Tensor, keep: float) -> Tensor:
    """P(m) = keep^(ones) (1 − keep)^(zeros) for masks (.., n)."""
    ones = masks.sum(-1)
    return keep**ones * (1 - keep) ** (masks.shape[-1] - ones)


def geometric_mean(logits: Tensor, weights: Tensor) -> Tensor:
    """∏_m p_m^{P(m)}, renormalised: softmax(Σ_m P(m) log p_m), for logits (m, .., k) of networks of weight P(m)."""
    return torch.einsum("m...,m->...", logits.log_softmax(-1), weights).softmax(-1)
