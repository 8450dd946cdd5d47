"""The execution loop: an action becomes joint angles, they are sent, the arm answers with where it is.

    joint increments (MF's a ∈ ℝ⁷)    θ ← clip(θ + clip(a_1..6, ±v), low, high)       no inverse kinematics
    Cartesian poses                    θ ← θ + clip(IK(T*; start θ) − θ, ±v)           with it
    both                               gripper ← a_7

v is the most that a joint turns in one step. What is read back is the start of the next step, so an error does not add
up. A policy that plans a chunk a_1..a_T may be asked again before it is used up; predictions for the same time are then
averaged (temporal ensembling of ACT):

    q̂_t = Σ_i w_i q_t^(i) / Σ_i w_i,     w_i = exp(−m i)        i = 0 is the OLDEST prediction that speaks about t

Increments of different chunks begin at different angles; they are added up to the angles that they mean, and those are
averaged. m is 0.01 in the original.

Systems: inverse-kinematics, act-policy
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.robotics.inverse_kinematics import POSE, inverse_kinematics, require_reached
from descend.ops.robotics.kinematics import Chain


def apply_increment(chain: Chain, theta: Tensor, turn: Tensor, speed: float) -> Tensor:
    """Angles after one step: θ (b, n) and increments (b, n)."""
    low, high = chain.limits(theta)
    return (theta + turn.clamp(-speed, speed)).clamp(low, high)


def follow_pose(chain: Chain, theta: Tensor, target: Tensor, speed: float, rows: tuple[int, ...] = POSE) -> Tensor:
    """The increments (b, n) of one step towards poses (b, 4, 4), by inverse kinematics from where the arm is."""
    solved = require_reached(inverse_kinematics(chain, target, theta, rows), target, chain)
    low, high = chain.limits(theta)
    whole = torch.pi * 2
    turn = torch.remainder(solved - theta + torch.pi, whole) - torch.pi  # the short way round
    turn = torch.where((theta + turn < low) | (theta + turn > high), solved - theta, turn)
    largest = turn.abs().amax(dim=-1, keepdim=True).clamp_min(speed)
    return turn * (speed / largest)


def to_commands(theta: Tensor, chunk: Tensor) -> Tensor:
    """The angles that increments mean: θ (b, n) where the chunk (b, T, n + 1) begins -> commands (b, T, n + 1)."""
    joints = theta.shape[-1]
    return torch.cat([theta[:, None] + chunk[..., :joints].cumsum(dim=1), chunk[..., joints:]], dim=-1)


def to_increments(theta: Tensor, commands: Tensor) -> Tensor:
    """Back again: commands (b, T, n + 1) -> the chunk of increments from θ (b, n) on."""
    joints = theta.shape[-1]
    before = torch.cat([theta[:, None], commands[:, :-1, :joints]], dim=1)
    return torch.cat([commands[..., :joints] - before, commands[..., joints:]], dim=-1)


def ensemble(predicted: Tensor, age: Tensor, m: float) -> Tensor:
    """Σ w q / Σ w of k predictions for one time: (b, k, d), `age` (k) counts from 0, the newest, upwards.

    The oldest has weight 1, each younger one exp(−m) times that of the one before.
    """
    w = torch.exp(-m * (age.max() - age).to(predicted))
    return (predicted * w[:, None]).sum(dim=1) / w.sum()
