"""Losses of deep reinforcement learning.

    y = r + γ max_a' Q(s', a'; θ⁻)                      the target, from the frozen copy θ⁻; y = r at a terminal s'
    L = E[(y − Q(s, a; θ))²]                            DQN, the squared form of S940 9.2
    L = −E[Σ_t w_t (G_t − b(s_t)) log π(a_t|s_t)]       REINFORCE, over episodes; w_t = γ^t, or 1 as printed
    L = −E[A_t log π(a_t|s_t)]                          actor-critic, over steps
    L = −E[r_t A_t]                                     TRPO's surrogate, r_t = π_θ(a_t|s_t) / π_old(a_t|s_t)
    L = −E[min(r_t A_t, clip(r_t, 1−ε, 1+ε) A_t)]       PPO

Erratum (S940 9.3): ∇J = E[Σ_t ∇log π(a_t|s_t) G_t] with a discounted G_t lacks the factor γ^t; without it it is exact
for γ = 1 only. A baseline b(s) changes no mean: E[∇log π(a|s) b(s)] = b(s) ∇Σ_a π(a|s) = 0.

The minimum makes PPO's surrogate a lower bound: once the ratio has left [1−ε, 1+ε] in the direction that the advantage
rewards, the gradient is zero; in the other direction the step back stays open. At θ = θ_old the ratio is 1 and the
gradient is the plain policy gradient E[∇ log π A], for both surrogates.

Where the actions are tokens, the reward of a whole text comes with its last token, and every token pays for leaving the
reference: r_t = −β log (π(y_t|y_<t) / π_ref(y_t|y_<t)), plus R(y) at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor


def td_target(reward: Tensor, next_q: Tensor, terminated: Tensor, gamma: float) -> Tensor:
    """y = r + γ max_a' Q(s', a'), and y = r where the episode terminated; next_q is (b, actions)."""
    return reward + gamma * next_q.amax(-1).masked_fill(terminated, 0.0)


def td_loss(q: Tensor, action: Tensor, target: Tensor) -> Tensor:
    """E[(y − Q(s, a))²] for q (b, actions) and the actions taken (b)."""
    taken = q.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return (target - taken).square().mean()


def clipped_surrogate(ratio: Tensor, advantage: Tensor, eps: float) -> Tensor:
    """min(r A, clip(r, 1−ε, 1+ε) A), element by element: the quantity that PPO raises."""
    return torch.minimum(ratio * advantage, ratio.clamp(1 - eps, 1 + eps) * advantage)


def ppo_loss(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, eps: float) -> Tensor:
    """−E[min(r A, clip(r, 1−ε, 1+ε) A)] with r = exp(log π − log π_old); steps or tokens alike, any shape."""
    return -clipped_surrogate((log_prob - old_log_prob).exp(), advantage, eps).mean()


def policy_gradient_loss(log_prob: Tensor, advantage: Tensor) -> Tensor:
    """−E[A log π]: steps of any shape."""
    return -(advantage * log_prob).mean()


def episode_loss(log_prob: Tensor, weight: Tensor, advantage: Tensor) -> Tensor:
    """−E[Σ_t w_t A_t log π_t] for episodes (b, t): a mean over episodes of sums over steps; w = 0 after the end."""
    return -(weight * advantage * log_prob).sum(-1).mean()


def surrogate_loss(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor) -> Tensor:
    """−E[r A] with r = exp(log π − log π_old)."""
    return -((log_prob - old_log_prob).exp() * advantage).mean()


def value_loss(value: Tensor, target: Tensor) -> Tensor:
    """½ E[(V(s) − G)²]: the critic's regression."""
    return 0.5 * (value - target).square().mean()


def token_rewards(reward: Tensor, log_ratio: Tensor, written: Tensor, last: Tensor, beta: float) -> Tensor:
    """−β log (π / π_ref) for each token that was written, and R (b) of the text at its last; (b, t), 0 elsewhere."""
    cost = (-beta * log_ratio).masked_fill(~written, 0.0)
    return cost + reward[:, None] * last
