"""The closed forms of stability, against the paths themselves."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.optim.momentum import HeavyBall
from descend.optim.stability import (
    best_descent,
    best_heavy_ball,
    contraction,
    heavy_ball_matrix,
    radius,
    rate_limit,
    window_limit,
    window_matrix,
    zone,
)
from descend.optim.trajectory import quadratic, trajectory
from tests.close import close


@pytest.mark.system("gradient-descent")
@pytest.mark.system("gradient-descent", "trajectory")
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.floats(0.1, 10), st.floats(0.01, 0.5))
def test_gradient_descent_is_a_power_of_the_contraction(c: float, lr: float) -> None:
    start = torch.ones(1, dtype=torch.float64)
    path = trajectory(lambda p: torch.optim.SGD(p, lr), quadratic(torch.tensor([[c]]).double()), start, 6).theta
    c = float(torch.tensor(c))
    assert path[-1].item() == pytest.approx(contraction(lr, c) ** 6, abs=1e-6)


@pytest.mark.system("gradient-descent")
@pytest.mark.system("gradient-descent", "trajectory")
def test_on_a_quadratic_the_iterate_is_a_matrix_power() -> None:
    """DLN-A.10: (I − α H)ᵗ θ₀."""
    h = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    start = torch.tensor([1.0, -2.0], dtype=torch.float64)
    path = trajectory(lambda p: torch.optim.SGD(p, 0.1), quadratic(h), start, 7).theta
    close(path[-1], torch.linalg.matrix_power(torch.eye(2, dtype=torch.float64) - 0.1 * h, 7) @ start)


@pytest.mark.system("gradient-descent")
@pytest.mark.system("gradient-descent", "zones")
def test_zones() -> None:
    names = {0.0: "still", 0.1: "slow", 0.5: "one step", 0.9: "oscillating", 1.0: "alternating", 1.1: "diverging"}
    assert {lr: zone(lr, 2.0) for lr in names} == names
    assert zone(-0.1, 2.0) == "diverging"
    assert rate_limit(2.0) == 1.0


@pytest.mark.system("gradient-descent")
@pytest.mark.system("gradient-descent", "limit")
def test_at_the_limit_the_iterates_alternate() -> None:
    one = torch.ones(1, dtype=torch.float64)
    path = trajectory(lambda p: torch.optim.SGD(p, 1.0), lambda t: (t**2).sum(), one, 6).theta[:, 0]
    assert path.tolist() == [1, -1, 1, -1, 1, -1, 1]


@pytest.mark.system("gradient-window-averaging")
@pytest.mark.system("gradient-window-averaging", "limits")
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 10])
def test_the_limit_of_the_window_has_radius_one(k: int) -> None:
    close(radius(window_matrix(window_limit(k), k)), 1.0)
    assert radius(window_matrix(1.02 * window_limit(k), k)) > 1 > radius(window_matrix(0.98 * window_limit(k), k))


@pytest.mark.system("momentum")
@pytest.mark.system("momentum", "acceleration")
def test_the_best_rates_are_the_radii() -> None:
    low, high = 4.0, 200.0
    lr, factor = best_descent(low, high)
    close([abs(contraction(lr, c)) for c in (low, high)], [factor, factor])
    lr, beta, factor = best_heavy_ball(low, high)
    for c in (low, 50.0, high):
        assert radius(heavy_ball_matrix(lr * c, beta)) == pytest.approx(factor, abs=1e-6)
    bowl = quadratic(torch.diag(torch.tensor([low, high], dtype=torch.float64)))
    start = torch.ones(2, dtype=torch.float64)
    path = trajectory(lambda p: HeavyBall(p, lr, beta), bowl, start, 140).theta.norm(dim=1)
    measured = (path[140] / path[70]).item() ** (1 / 70)
    assert math.isclose(measured, factor, rel_tol=0.03)  # a double eigenvalue: t factorᵗ
