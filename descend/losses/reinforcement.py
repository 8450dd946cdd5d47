"""Losses of deep reinforcement learning.

    y = r + γ max_a' Q(s', a'; θ⁻)                      the target, from the frozen copy θ⁻; y = r at a terminal s'
    L = E[(y − Q(s, a; θ))²]                            DQN, the squared form of S940 9.2
    L = −E[min(r_t A_t, clip(r_t, 1−ε, 1+ε) A_t)]       PPO, r_t = π_θ(a_t|s_t) / π_old(a_t|s_t)

The minimum makes the surrogate a lower bound: once the ratio has left [1−ε, 1+ε] in the direction that the advantage
rewards, the gradient is zero; in the other direction the step back stays open. At θ = θ_old the ratio is 1 and the
gradient is the plain policy gradient E[∇ log π A].
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


def value_loss(value: Tensor, target: Tensor) -> Tensor:
    """½ E[(V(s) − G)²]: the critic's regression."""
    return 0.5 * (value - target).square().mean()
