"""Distributions over actions: what a policy's numbers mean.

    discrete      π(a|s) = softmax(z)_a          log π = z_a − log Σ_j e^{z_j}        H = −Σ_a π log π
    continuous    π(a|s) = N(μ, diag σ²)         log π = −½ Σ_i [((a_i − μ_i)/σ_i)² + log 2πσ_i²]
                                                 H = ½ Σ_i log 2πe σ_i²
    divergence    KL(π‖q) = Σ_a π_a (log π_a − log q_a),   Σ_i log (s_i/σ_i) + (σ_i² + (μ_i − m_i)²) / 2s_i² − ½   for
                  q = N(m, diag s²); its Hessian at q = π is the Fisher matrix E[∇log π ∇log πᵀ]

Randomness comes only from the generator that the caller gives, so that a resumed run draws the same actions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Categorical:
    """One of n actions, from logits z (.., n); `sample` takes (b, n)."""

    logits: Tensor

    def log_prob(self, action: Tensor) -> Tensor:
        return self.logits.log_softmax(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        log_p = self.logits.log_softmax(-1)
        return -(log_p.exp() * log_p).sum(-1)

    def divergence(self, other: Categorical) -> Tensor:
        """KL(self ‖ other)"""
        log_p, log_q = self.logits.log_softmax(-1), other.logits.log_softmax(-1)
        return (log_p.exp() * (log_p - log_q)).sum(-1)

    def mode(self) -> Tensor:
        return self.logits.argmax(-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """argmax_a p_a / E_a with E_a exponential: the first of n clocks that run at rates p (as torch.multinomial)."""
        p = self.logits.softmax(-1)
        return (p / torch.empty_like(p).exponential_(generator=generator)).argmax(-1)


@dataclass(frozen=True)
class Gaussian:
    """A vector of n numbers, from μ and log σ side by side (.., 2n)."""

    parameters: Tensor

    def log_prob(self, action: Tensor) -> Tensor:
        mu, log_sigma = self.parameters.chunk(2, -1)
        z = (action - mu) * (-log_sigma).exp()
        return -0.5 * (z.square() + 2 * log_sigma + math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        log_sigma = self.parameters.chunk(2, -1)[1]
        return (log_sigma + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def divergence(self, other: Gaussian) -> Tensor:
        """KL(self ‖ other)"""
        (mu, log_sigma), (m, log_s) = self.parameters.chunk(2, -1), other.parameters.chunk(2, -1)
        spread = (2 * (log_sigma - log_s)).exp() + ((mu - m) * (-log_s).exp()).square()
        return (log_s - log_sigma + 0.5 * (spread - 1)).sum(-1)

    def mode(self) -> Tensor:
        return self.parameters.chunk(2, -1)[0]

    def sample(self, generator: torch.Generator) -> Tensor:
        mu, log_sigma = self.parameters.chunk(2, -1)
        return mu + log_sigma.exp() * torch.randn(mu.shape, generator=generator, dtype=mu.dtype)
