"""The execution loop: increments need no inverse kinematics, poses do; chunks overlap and are averaged."""

from __future__ import annotations

import math

import pytest
import torch

from descend.errors import Mistake
from descend.ops.robotics.execution import apply_increment, ensemble, follow_pose, to_commands, to_increments
from descend.ops.robotics.kinematics import UR10E, tool_pose
from tests.close import close

HOME = torch.tensor([[0.0, -1.2, 1.6, -2.0, -1.5, 0.0]], dtype=torch.float64)


@pytest.mark.system("inverse-kinematics", "execution-loop")
def test_joint_increments_are_added_within_speed_and_limits() -> None:
    turn = torch.tensor([[0.1, -0.1, 9.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    close(apply_increment(UR10E, HOME, turn, 0.5), HOME + torch.tensor([[0.1, -0.1, 0.5, 0, 0, 0]]).double())
    ended = HOME
    for _ in range(20):
        ended = apply_increment(UR10E, ended, turn, 0.5)
    assert float(ended[0, 2]) == math.pi


@pytest.mark.system("inverse-kinematics", "execution-loop")
def test_cartesian_actions_go_through_inverse_kinematics_to_the_pose() -> None:
    """The loop of MF 30.3.5 with feedback: each step starts from the angles that were read back, with an error."""
    target = tool_pose(UR10E, HOME + torch.tensor([[0.5, 0.3, -0.4, 0.1, 0.2, -0.3]]).double())
    theta, random = HOME, torch.Generator().manual_seed(0)
    for _ in range(12):
        turn = follow_pose(UR10E, theta, target, 0.1)
        assert turn.abs().max() <= 0.1 + 1e-12
        theta = apply_increment(UR10E, theta, turn, 0.1) + 1e-4 * torch.randn(1, 6, generator=random).double()
    assert (tool_pose(UR10E, theta) - target).abs().max() < 2e-3
    with pytest.raises(Mistake, match="cannot be reached"):
        follow_pose(UR10E, HOME, target + torch.nn.functional.pad(torch.full((1, 3, 1), 3.0), (3, 0, 0, 1)), 0.1)


def test_the_short_way_round_is_taken() -> None:
    far = HOME.clone()
    far[:, 5] = 3.0
    target = tool_pose(UR10E, far)
    start = far.clone()
    start[:, 5] = -3.0
    turn = follow_pose(UR10E, start, target, 9.0)
    assert abs(float(turn[0, 5]) + (2 * math.pi - 6)) < 1e-6


@pytest.mark.system("act-policy", "ensembling")
def test_commands_are_sums_of_increments() -> None:
    random = torch.Generator().manual_seed(0)
    theta, chunk = torch.randn(2, 6, generator=random).double(), torch.randn(2, 5, 7, generator=random).double()
    commands = to_commands(theta, chunk)
    now = theta
    for i in range(5):
        now = now + chunk[:, i, :6]
        close(commands[:, i, :6], now)
    close(commands[..., 6], chunk[..., 6])
    close(to_increments(theta, commands), chunk)


@pytest.mark.system("act-policy", "ensembling")
def test_the_oldest_prediction_weighs_most() -> None:
    """w_i = exp(−m i), i = 0 the oldest: (1 · 2 + e^−½ · 4 + e^−1 · 8) / Σ w."""
    predicted, age = torch.tensor([[[2.0], [4.0], [8.0]]]).double(), torch.tensor([2, 1, 0])
    w = [1.0, math.exp(-0.5), math.exp(-1.0)]
    mean = (2 * w[0] + 4 * w[1] + 8 * w[2]) / sum(w)
    close(ensemble(predicted, age, 0.5), torch.tensor([[mean]], dtype=torch.float64))
    close(ensemble(predicted, age, 0.0), torch.tensor([[14 / 3]], dtype=torch.float64))
    close(ensemble(predicted[:, :1], age[:1], 0.5), predicted[:, 0])
