"""A categorical choice that gradients can pass: softmax of logits with Gumbel noise, at a temperature.

    g = −log(−log u)        y = softmax((a + g) / τ)        τ → 0: one-hot, argmax(a + g), with probability softmax(a)
    KL(softmax(a) ‖ uniform over V) = log V + Σ_v p_v log p_v        0: every code as likely as the others

u, uniform in 0..1, is given: randomness is data.

Systems: dall-e-1
"""

from __future__ import annotations

import math

from torch import Tensor

LEAST = 1e-6  # u is kept this far from 0 and 1


def relax(logits: Tensor, u: Tensor, temperature: float) -> Tensor:
    """y, nearly one-hot for a small temperature: (.., v), (.., v) -> (.., v)"""
    if not temperature > 0:
        raise ValueError(f"temperature {temperature}: above 0")
    noise = -(-u.clamp(LEAST, 1 - LEAST).log()).log()
    return ((logits + noise) / temperature).softmax(-1)


def kl_to_uniform(logits: Tensor) -> Tensor:
    """KL(softmax(a) ‖ uniform) in nats: (.., v) -> (..)"""
    log_p = logits.log_softmax(-1)
    return math.log(logits.shape[-1]) + (log_p.exp() * log_p).sum(-1)
