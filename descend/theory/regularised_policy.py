"""The best policy that stays near a reference: closed forms for responses that can be enumerated.

    J(π) = E_{y~π}[r(x, y)] − β KL(π ‖ π_ref)                  raised; KL = E_π[log (π(y|x) / π_ref(y|x))]
    π*(y|x) = π_ref(y|x) exp(r(x, y) / β) / Z(x)                Z(x) = Σ_y π_ref(y|x) exp(r(x, y) / β)
    J(π*) = β log Z                                            J(π) = β log Z − β KL(π ‖ π*) for every π
    r(x, y) = β log (π*(y|x) / π_ref(y|x)) + β log Z(x)         the reward that a policy is the best one for

    L(π) = KL(π ‖ π_ref) − λ E_π[R]                             MF 20.3.3, lowered: L = −J / β with β = 1 / λ

λ multiplies the reward, so a larger λ loosens the reference as a smaller β does. The limits: for β → ∞ the optimum is
π_ref and its value E_ref[r]; for β → 0 all probability goes to the best responses that the reference can give, in the
reference's own proportions, and the value is their reward. The sum over responses is over the last axis.

A response is sampled token by token, log π(y|x) = Σ_t log π(y_t | x, y_<t). Erratum: VOM 13.7.5 prints y_≤t there,
which would condition a token on itself.

Systems: kl-regularised-objective
"""

from __future__ import annotations

import torch
from torch import Tensor


def regularised_value(log_pi: Tensor, log_ref: Tensor, reward: Tensor, beta: float) -> Tensor:
    """J(π) = Σ_y π(y) (r(y) − β log (π(y) / π_ref(y)))"""
    return expect(log_pi, reward) - beta * kl_to_reference(log_pi, log_ref)


def rlhf_loss(log_pi: Tensor, log_ref: Tensor, reward: Tensor, lam: float) -> Tensor:
    """KL(π ‖ π_ref) − λ E_π[R]: MF's form, with λ on the reward."""
    return kl_to_reference(log_pi, log_ref) - lam * expect(log_pi, reward)


def expect(log_pi: Tensor, values: Tensor) -> Tensor:
    """E_π[values]; what has no probability does not count."""
    return torch.where(log_pi.isneginf(), 0.0, log_pi.exp() * values).sum(-1)


def kl_to_reference(log_pi: Tensor, log_ref: Tensor) -> Tensor:
    """KL(π ‖ π_ref) = Σ_y π(y) log (π(y) / π_ref(y)), 0 log 0 = 0."""
    return expect(log_pi, log_pi - log_ref)


def log_partition(log_ref: Tensor, reward: Tensor, beta: float) -> Tensor:
    """log Z = log Σ_y π_ref(y) exp(r(y) / β)"""
    return (log_ref + reward / beta).logsumexp(-1)


def best_policy(log_ref: Tensor, reward: Tensor, beta: float) -> Tensor:
    """log π* = log π_ref + r / β − log Z"""
    return log_ref + reward / beta - log_partition(log_ref, reward, beta).unsqueeze(-1)


def implied_reward(log_pi: Tensor, log_ref: Tensor, beta: float) -> Tensor:
    """β log (π / π_ref): the reward, up to a constant for each prompt, for which π is the best policy."""
    return beta * (log_pi - log_ref)


def sampled_value(reward: Tensor, log_ratio: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """Monte-Carlo estimates from responses of π itself: J ≈ mean(r − β log (π / π_ref)), KL ≈ mean(log (π / π_ref))."""
    return (reward - beta * log_ratio).mean(-1), log_ratio.mean(-1)
