"""Random features of the softmax kernel (FAVOR+): φ(q)·φ(k) is exp(q·k) on average.

    positive    φ(x)_i = m^(−1/2) exp(w_i·x − ‖x‖²/2)                              E[φ(q)·φ(k)] = exp(q·k)
    sin/cos     φ(x)   = m^(−1/2) exp(‖x‖²/2) [sin w_i·x, cos w_i·x]               the same mean, may be negative
    w_i ~ N(0, I), independent; or orthogonal in blocks of d with norms of the same law: less variance

    variance of one feature, s = ‖q − k‖²:
    positive    exp(2‖q + k‖² − ‖q‖² − ‖k‖²) − exp(2 q·k)                          0 at q = −k
    sin/cos     exp(‖q‖² + ‖k‖²) ((1 + e^(−2s))/2 − e^(−s))                        0 at q = k

Errata of S940 6.2, and the form taken here: the features as printed estimate exp(q·k); for exp(q·k/√d) feed q d^(−1/4)
and k d^(−1/4) (`scale_by_root`). The printed output Φ(Q)(Φ(K)ᵀV) lacks the row normaliser. The mean is equal, not
approximate; the average over m features approximates it. Positive features have the smaller variance only where the
kernel is small; where q is near k, sin/cos have. The w_i are printed independent; the O of the name stands for
orthogonal.

Systems: performer
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def scale_by_root(x: Tensor) -> Tensor:
    """x d^(−1/4), for queries and keys alike: then q·k is divided by √d."""
    return x * x.shape[-1] ** -0.25


def softmax_kernel(q: Tensor, k: Tensor) -> Tensor:
    """exp(q·k) of every pair: (.., t, d), (.., s, d) -> (.., t, s)"""
    return (q @ k.transpose(-2, -1)).exp()


def positive_features(x: Tensor, w: Tensor) -> Tensor:
    """m^(−1/2) exp(w_i·x − ‖x‖²/2): x (.., d), w (m, d) -> (.., m)"""
    return (x @ w.T - x.square().sum(-1, keepdim=True) / 2).exp() / math.sqrt(len(w))


def trigonometric_features(x: Tensor, w: Tensor) -> Tensor:
    """m^(−1/2) exp(‖x‖²/2) [sin w_i·x, cos w_i·x]: x (.., d), w (m, d) -> (.., 2m)"""
    turn = x @ w.T
    length = (x.square().sum(-1, keepdim=True) / 2).exp()
    return length * torch.cat([turn.sin(), turn.cos()], dim=-1) / math.sqrt(len(w))


def independent_rows(m: int, d: int, random: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """w_i ~ N(0, I): (m, d)"""
    return torch.randn(m, d, generator=random, dtype=dtype)


def orthogonal_rows(m: int, d: int, random: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    """Blocks of d orthogonal directions, uniform, with the norms of independent normal vectors: (m, d)"""
    blocks = math.ceil(m / d)
    q, r = torch.linalg.qr(torch.randn(blocks, d, d, generator=random, dtype=dtype))
    q = q * torch.diagonal(r, dim1=-2, dim2=-1).sign()[:, None, :]  # otherwise the directions are not uniform
    norms = torch.randn(m, d, generator=random, dtype=dtype).norm(dim=-1, keepdim=True)
    return q.transpose(-2, -1).reshape(-1, d)[:m] * norms


def positive_variance(q: Tensor, k: Tensor) -> Tensor:
    """exp(2‖q + k‖² − ‖q‖² − ‖k‖²) − exp(2 q·k): of one positive feature; with m independent ones, 1/m of it."""
    lengths = q.square().sum(-1) + k.square().sum(-1)
    return (2 * (q + k).square().sum(-1) - lengths).exp() - (2 * (q * k).sum(-1)).exp()


def trigonometric_variance(q: Tensor, k: Tensor) -> Tensor:
    """exp(‖q‖² + ‖k‖²) ((1 + e^(−2s))/2 − e^(−s)), s = ‖q − k‖²: of one pair of sin and cos."""
    s = (q - k).square().sum(-1)
    lengths = q.square().sum(-1) + k.square().sum(-1)
    return lengths.exp() * ((1 + (-2 * s).exp()) / 2 - (-s).exp())
