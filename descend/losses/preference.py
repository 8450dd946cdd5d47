"""Losses of comparisons: which of two responses y_w and y_l to a prompt x is the better one?

    P(y_w ≻ y_l | x) = σ(r(x, y_w) − r(x, y_l))                                      Bradley-Terry
    L = −E log σ(r(x, y_w) − r(x, y_l))                                              a reward model
    L = −1 / C(K, 2) Σ_{i<j} log σ(r(x, y_(i)) − r(x, y_(j)))                         K responses, best to worst
    L = −E log σ(β log (π(y_w|x) / π_ref(y_w|x)) − β log (π(y_l|x) / π_ref(y_l|x)))   DPO

−log σ(z) = log(1 + e^−z), computed without overflow. Nothing changes when a constant (for each prompt) is added to all
rewards; at equal rewards the loss is log 2. DPO puts β log (π / π_ref) in the place of the reward: with π = π_ref its
loss is log 2, and Z(x) cancels. A sequence's log-probability is the SUM over the response's tokens.

DLN describes the rankings of K responses and gives no formula; the form is InstructGPT's. S940 12.1 names DPO only.

Systems: dpo, reward-model
"""

from __future__ import annotations

from itertools import combinations

from torch import Tensor
from torch.nn import functional as F


def pairwise_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """−log σ(r_w − r_l), element by element."""
    return F.softplus(rejected - chosen)


def ranking_loss(reward: Tensor, real: Tensor | None = None) -> Tensor:
    """Rewards (.., K) of responses from best to worst -> the mean of −log σ over the C(K, 2) pairs (..)

    `real` (.., K) says which of the K there are, where some prompts have fewer responses.
    """
    better, worse = choose_pairs(reward)
    return mean_over_pairs(pairwise_loss(better, worse), real)


def choose_pairs(values: Tensor) -> tuple[Tensor, Tensor]:
    """(.., K) -> the better and the worse of each of the C(K, 2) pairs, (.., C(K, 2)) each"""
    pairs = list(combinations(range(values.shape[-1]), 2))
    return values[..., [i for i, _ in pairs]], values[..., [j for _, j in pairs]]


def mean_over_pairs(values: Tensor, real: Tensor | None = None) -> Tensor:
    """(.., C(K, 2)) -> the mean over the pairs of which both are there (..)"""
    if real is None:
        return values.mean(-1)
    first, second = choose_pairs(real)
    there = (first & second).to(values.dtype)
    return (values * there).sum(-1) / there.sum(-1).clamp_min(1.0)


def dpo_margin(chosen: Tensor, rejected: Tensor, beta: float) -> Tensor:
    """β (log (π/π_ref)(y_w) − log (π/π_ref)(y_l)): the difference of the rewards that the policy implies."""
    return beta * (chosen - rejected)


def dpo_loss(chosen: Tensor, rejected: Tensor, beta: float) -> Tensor:
    """−log σ(β (chosen − rejected)) for the log-ratios log π(y|x) − log π_ref(y|x) of both responses."""
    return F.softplus(-dpo_margin(chosen, rejected, beta))


def response_log_prob(logits: Tensor, tokens: Tensor, written: Tensor) -> Tensor:
    """log π(y|x) = Σ_t log π(y_t | x, y_<t) over the written tokens; logits (b, t−1, v) of tokens (b, t)"""
    log_p = -F.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
    return (log_p * written[:, 1:]).sum(-1)
