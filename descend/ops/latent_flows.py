"""Invertible maps that bend a Gaussian posterior, with the logarithm of how much each of them stretches space.

    planar   f(z) = z + û tanh(wᵀz + b)                  log|det| = log|1 + ûᵀw (1 − tanh²(wᵀz + b))|
             û = u + (m(wᵀu) − wᵀu) w/‖w‖²,  m(a) = −1 + softplus(a)     so that wᵀû ≥ −1: invertible for every u
    radial   f(z) = z + β h (z − z₀),  h = 1/(α + r), r = ‖z − z₀‖
             log|det| = (k − 1) log(1 + β h) + log(1 + β h − β r h²)
             α = softplus(a),  β = −α + softplus(b)                      so that β ≥ −α: invertible

    log q_K(z_K) = log q_0(z_0) − Σ log|det|

Each example has parameters of its own, from the encoder. The book names flow posteriors and prints no formula; these
are Rezende and Mohamed's (2015).

Systems: flow-posterior-vae
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus


def planar_flow(z: Tensor, u: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """f(z) and log|det|: z, u, w (.., k), b (..) -> (.., k), (..)"""
    inner = (w * u).sum(-1, keepdim=True)
    u = u + (softplus(inner) - 1 - inner) * w / w.square().sum(-1, keepdim=True).clamp(min=1e-12)
    bent = ((w * z).sum(-1) + b).tanh()
    stretch = 1 + (u * w).sum(-1) * (1 - bent.square())
    return z + u * bent[..., None], stretch.abs().clamp(min=1e-12).log()


def radial_flow(z: Tensor, centre: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """f(z) and log|det|: z, centre (.., k), a, b (..) -> (.., k), (..)"""
    alpha = softplus(a)
    beta = softplus(b) - alpha
    away = z - centre
    r = away.norm(dim=-1)
    h = 1 / (alpha + r)
    stretch = 1 + beta * h
    log_det = (z.shape[-1] - 1) * stretch.log() + (stretch - beta * r * h.square()).log()
    return z + (beta * h)[..., None] * away, log_det
