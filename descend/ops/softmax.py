"""Softmax, softmin, log-softmax and log-sum-exp: along any axis, finite for logits of ±1e4.

    p_i = e^{z_i} / Σ_j e^{z_j}                       softmin(z) = softmax(−z)
    z' = z − max z                                    p, and log p, do not change under a shift of all z
    log Σ_j e^{z_j} = max z + log Σ_j e^{z'_j}        every e^{z'} is in 0..1, and one of them is 1
    log p_i = z'_i − log Σ_j e^{z'_j}
    J = ∂p/∂z = diag(p) − p pᵀ                        symmetric, its rows add to 0, no negative eigenvalue

Examples are rows here: the axis is the last one unless `dim` says otherwise (MF stacks examples as columns: dim = 0).
Errata: log p is bounded above by 0 and by nothing below (DLN calls it bounded). Softmax does not make differences
larger (VOM 3.8): |Δp| ≤ |Δz|/2. It is the ratios that grow: p_i / p_j = e^{z_i − z_j}.

Systems: softmax, stable-softmax-and-logsumexp
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def naive_softmax(z: Tensor, dim: int = -1) -> Tensor:
    """e^z / Σ e^z as printed: inf/inf once a logit is above 88 (float32) or 709 (float64)."""
    return z.exp() / z.exp().sum(dim, keepdim=True)


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """e^{z'} / Σ e^{z'},   z' = z − max z"""
    e = (z - z.amax(dim, keepdim=True).detach()).exp()
    return e / e.sum(dim, keepdim=True)


def softmin(z: Tensor, dim: int = -1) -> Tensor:
    """softmax(−z): the smallest gets the most."""
    return softmax(-z, dim)


def log_sum_exp(z: Tensor, dim: int = -1) -> Tensor:
    """max z + log Σ e^{z − max z}; −inf when every z is −inf (an empty sum)."""
    top = z.amax(dim, keepdim=True).detach()
    top = torch.where(top.isfinite(), top, 0.0)
    return (z - top).exp().sum(dim).log() + top.squeeze(dim)


def log_softmax(z: Tensor, dim: int = -1) -> Tensor:
    """z' − log Σ e^{z'}; the logarithm of a probability that is too small to be a number is still right."""
    shifted = z - z.amax(dim, keepdim=True).detach()
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def jacobian(p: Tensor) -> Tensor:
    """diag(p) − p pᵀ of each row: (.., k) -> (.., k, k)."""
    return p.diag_embed() - p[..., :, None] * p[..., None, :]


def jacobian_times(p: Tensor, v: Tensor) -> Tensor:
    """J v = p ⊙ (v − p·v), without building J; since J is symmetric it is also vᵀ J, the backward pass."""
    return p * (v - (p * v).sum(-1, keepdim=True))


def largest_exponent(dtype: torch.dtype) -> float:
    """The largest x of which eˣ is a finite number: 88.7 in float32, 709.8 in float64."""
    return math.log(torch.finfo(dtype).max)
