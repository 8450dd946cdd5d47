"""Obstacles of non-convex surfaces: what descent, momentum and an adaptive method do at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.autodiff.hessian import condition_number, hessian
from descend.optim.momentum import HeavyBall
from descend.optim.trajectory import Path, rosenbrock, trajectory
from descend.theory.generalization.critical_points import classify

RULES: dict[str, Callable[[float], Any]] = {
    "descent": lambda lr: lambda p: torch.optim.SGD(p, lr),
    "momentum": lambda lr: lambda p: HeavyBall(p, lr, 0.9),
    "adaptive": lambda lr: lambda p: torch.optim.Adam(p, lr),
}


def two_minima(t: Tensor) -> Tensor:
    """A shallow minimum near x = 0.96 and a deep one near x = −1.04."""
    return (t[0] ** 2 - 1) ** 2 + 0.3 * t[0] + t[1] ** 2


def saddle(t: Tensor) -> Tensor:
    """Minima at y = ±1, a saddle between them at 0."""
    return t[0] ** 2 - t[1] ** 2 + t[1] ** 4 / 2


def plateau(t: Tensor) -> Tensor:
    """Almost flat away from the pit at 0: a slope of 0.02 for x > 3."""
    return -torch.exp(-2 * t[0] ** 2) + 0.02 * t[0].abs() + t[1] ** 2


def follow(rule: str, f: Callable[[Tensor], Tensor], start: list[float], lr: float, steps: int) -> Path:
    return trajectory(RULES[rule](lr), f, torch.tensor(start, dtype=torch.float64), steps)


def curvatures(f: Callable[[Tensor], Tensor], at: list[float]) -> Tensor:
    return hessian(f, torch.tensor(at, dtype=torch.float64))


@pytest.mark.system("loss-landscape", "obstacles")
@pytest.mark.parametrize("rule", RULES)
def test_a_local_minimum_keeps_what_starts_beside_it(rule: str) -> None:
    """The start decides: from 2 into the shallow minimum, from −2 into the deep one."""
    lr = 0.005 if rule == "momentum" else 0.02
    ends = [follow(rule, two_minima, [x, 0.5], lr, 500).theta[-1] for x in (1.2, -1.2)]
    assert all(torch.func.grad(two_minima)(end).norm() < 1e-3 for end in ends)
    assert ends[0][0] > 0.9
    assert ends[1][0] < -0.9
    assert two_minima(ends[1]) < two_minima(ends[0]) - 0.5
    assert all(classify(hessian(two_minima, end)) == "minimum" for end in ends)


@pytest.mark.system("loss-landscape", "obstacles", "saddle")
def test_a_saddle_slows_descent_and_holds_it_on_its_ridge() -> None:
    assert classify(curvatures(saddle, [0.0, 0.0])) == "saddle"
    assert classify(curvatures(saddle, [0.0, 1.0])) == "minimum"
    signs = torch.linalg.eigvalsh(curvatures(saddle, [0.0, 0.0])).sign()
    assert signs.tolist() == [-1, 1]
    for rule in RULES:
        held = follow(rule, saddle, [1.0, 0.0], 0.02, 400).theta[-1]
        assert held.abs().max() < 0.02
    steps = {}
    for rule in RULES:
        path = follow(rule, saddle, [1.0, 1e-4], 0.02, 400).theta
        steps[rule] = int((path[:, 1].abs() < 0.5).sum())
        assert float(path[-1, 1]) == pytest.approx(1, abs=0.05)
    assert steps["descent"] > 2 * steps["momentum"] > 0
    assert steps["descent"] > 2 * steps["adaptive"]


@pytest.mark.system("loss-landscape", "obstacles", "plateau")
def test_descent_stalls_on_a_plateau_and_momentum_passes() -> None:
    """In the same 400 steps at the same rate, from x = 4."""
    ends = {rule: float(follow(rule, plateau, [4.0, 0.5], 0.05, 400).theta[-1, 0]) for rule in RULES}
    assert ends["descent"] > 3.5
    assert abs(ends["momentum"]) < 0.3
    assert abs(ends["adaptive"]) < 0.3


@pytest.mark.system("loss-landscape", "obstacles")
def test_a_ravine_makes_descent_zigzag() -> None:
    """κ = 200: at a rate near its limit plain descent changes sides in every step; momentum gets farther along."""
    h = torch.diag(torch.tensor([1.0, 200.0]).double())
    assert float(condition_number(h)) == 200

    def ravine(t: Tensor) -> Tensor:
        return 0.5 * t @ h @ t

    path = follow("descent", ravine, [10.0, 1.0], 0.0099, 100).theta
    assert (path[1:20, 1] * path[:19, 1] < 0).all()
    farther = follow("momentum", ravine, [10.0, 1.0], 0.0099, 100).theta
    assert farther[-1, 0].abs() < 0.3 * path[-1, 0].abs()
    valley = {rule: float(follow(rule, rosenbrock, [-1.0, 1.0], 1e-3, 500).losses[-1]) for rule in RULES}
    assert valley["momentum"] < valley["descent"]
