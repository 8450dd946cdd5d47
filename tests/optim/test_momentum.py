"""Momentum: both forms, the look-ahead point, terminal velocity, and acceleration."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from descend.optim.momentum import HeavyBall, Nesterov
from descend.optim.trajectory import quadratic, trajectory
from tests.close import close

BOWL = quadratic(torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64))
START = torch.tensor([4.0, -3.0], dtype=torch.float64)


@pytest.mark.system("momentum")
@pytest.mark.system("momentum", "two-forms")
@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.floats(0.01, 0.3), st.floats(0.0, 0.95))
def test_both_forms_are_one_path_for_a_constant_rate(lr: float, beta: float) -> None:
    ours = trajectory(lambda p: HeavyBall(p, lr, beta), BOWL, START, 10).theta
    theirs = trajectory(lambda p: torch.optim.SGD(p, lr, momentum=beta), BOWL, START, 10).theta
    assert (ours - theirs).abs().max() < 1e-12
    close(ours, theirs)


@pytest.mark.system("momentum")
@pytest.mark.system("momentum", "two-forms")
def test_the_forms_differ_under_a_schedule() -> None:
    """Here old velocity keeps the rate it was made with: halving α does not halve what is already under way."""
    found = []
    for build in (HeavyBall, torch.optim.SGD):
        p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        optimizer = build([p], lr=1.0, momentum=0.5)
        for lr in (1.0, 0.5):
            optimizer.param_groups[0]["lr"] = lr
            p.grad = torch.ones_like(p)
            optimizer.step()
        found.append(p.item())
    close(found, [-1 - (0.5 + 0.5), -1 - 0.5 * 1.5])


@pytest.mark.system("momentum")
@pytest.mark.system("momentum", "terminal-velocity")
def test_terminal_velocity_and_no_momentum() -> None:
    p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = HeavyBall([p], lr=0.1, momentum=0.9)
    for _ in range(400):
        p.grad = torch.full_like(p, 2.0)
        optimizer.step()
    close(optimizer.state[p]["velocity"], torch.tensor([-0.1 * 2 / (1 - 0.9)], dtype=torch.float64))
    plain = trajectory(lambda p: HeavyBall(p, 0.1, 0.0), BOWL, START, 5).theta
    close(plain, trajectory(lambda p: torch.optim.SGD(p, 0.1), BOWL, START, 5).theta)


@pytest.mark.system("nesterov-momentum")
@pytest.mark.system("nesterov-momentum", "look-ahead")
def test_torchs_iterates_are_the_look_ahead_points() -> None:
    path = trajectory(lambda p: Nesterov(p, 0.05, 0.9), BOWL, START, 12)
    shifted = trajectory(lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True), BOWL, START, 11).theta
    assert (path.seen - shifted).abs().max() < 1e-12
    close(path.seen, shifted)
    assert not torch.allclose(path.theta[1:-1], shifted[1:])


@pytest.mark.system("nesterov-momentum")
@pytest.mark.system("nesterov-momentum", "against-heavy-ball")
def test_nesterov_oscillates_less_in_a_narrow_valley() -> None:
    """MF-A.49: across the valley (curvature 200) the path crosses the floor less far than the heavy ball's."""
    valley = quadratic(torch.diag(torch.tensor([4.0, 200.0], dtype=torch.float64)))
    start = torch.ones(2, dtype=torch.float64)
    across = [
        trajectory(lambda p, b=b: b(p, 0.0015, 0.9), valley, start, 60).theta[10:, 1] for b in (HeavyBall, Nesterov)
    ]
    assert across[1].abs().max() < 0.2 * across[0].abs().max()


@pytest.mark.system("momentum")
@pytest.mark.system("momentum", "ravine")
def test_momentum_is_faster_in_a_ravine() -> None:
    """VOM-A.52: condition number 100, tuned rates; plain descent is behind by orders of magnitude."""
    ravine = quadratic(torch.diag(torch.tensor([1.0, 100.0], dtype=torch.float64)))
    start = torch.ones(2, dtype=torch.float64)
    plain = trajectory(lambda p: torch.optim.SGD(p, 2 / 101), ravine, start, 100).theta[-1].norm()
    ball = trajectory(lambda p: HeavyBall(p, (2 / 11) ** 2, (9 / 11) ** 2), ravine, start, 100).theta[-1].norm()
    assert ball < 1e-4 * plain
    assert math.isclose(plain, math.sqrt(2) * (99 / 101) ** 100, rel_tol=1e-6)
