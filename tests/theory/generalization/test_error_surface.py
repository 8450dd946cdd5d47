"""The bowl of a linear neuron: angles, contours, and the rate of gradient descent."""

from __future__ import annotations

import math

import pytest
import torch

from descend.optim.stability import best_descent
from descend.optim.trajectory import quadratic, trajectory
from descend.theory.generalization.error_surface import angle, bowl_of, contour, worst_angle
from tests.close import close


@pytest.fixture
def data() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(30, 2, generator=random, dtype=torch.float64) * torch.tensor([3.0, 0.5])
    return x, x @ torch.tensor([1.0, -2.0]).double() + torch.randn(30, generator=random, dtype=torch.float64)


@pytest.mark.system("quadratic-error-surface")
@pytest.mark.system("quadratic-error-surface", "neuron")
@pytest.mark.system("loss-landscape", "grid")
def test_the_error_of_a_neuron_is_a_bowl(data: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Its minimum is that of torch's least squares and of a grid; an optimizer's path ends there, across contours."""
    x, y = data
    bowl = bowl_of(x, y)

    def loss(w: torch.Tensor) -> torch.Tensor:
        return 0.5 * (x @ w - y).square().mean()

    for w in torch.randn(4, 2, generator=torch.Generator().manual_seed(1)).double():
        close(bowl(w), loss(w))
        close(bowl.slope(w), torch.func.grad(loss)(w))
    close(bowl.minimum, torch.linalg.lstsq(x, y[:, None]).solution[:, 0])
    sides = [torch.linspace(-3, 3, 121, dtype=torch.float64)] * 2
    grid = torch.cartesian_prod(*sides)
    best = grid[bowl(grid).argmin()]
    assert (best - bowl.minimum).abs()[0] <= 0.05
    away = best - bowl.minimum  # no grid point is lower than the one nearest to the minimum along the ellipse
    assert float(away @ bowl.hessian @ away) <= 0.05**2 / 4 * float(bowl.hessian.abs().sum())
    ellipse = contour(bowl, float(bowl.least) + 2.0)
    close(bowl(ellipse), torch.full((100,), float(bowl.least) + 2.0, dtype=torch.float64))
    values = torch.linalg.eigvalsh(bowl.hessian)
    lr, _ = best_descent(float(values[0]), float(values[1]))
    path = trajectory(lambda p: torch.optim.SGD(p, lr), loss, torch.tensor([-2.0, 2.0]).double(), 2000)
    assert (path.losses.diff() <= 1e-12).all()
    close(path.theta[-1], bowl.minimum)


@pytest.mark.system("quadratic-error-surface", "worst", "angle")
def test_the_worst_angle() -> None:
    turn = torch.linspace(0, 2 * math.pi, 100_001, dtype=torch.float64)
    ring = torch.stack([turn.cos(), turn.sin()], -1)
    for condition in (1.0, 4.0, 100.0):
        found = angle(torch.diag(torch.tensor([1.0, condition]).double()), ring)
        assert float(found.max()) == pytest.approx(worst_angle(condition), abs=2e-4)
        assert float(found.min()) < 1e-3
    assert worst_angle(100.0) > 78


@pytest.mark.system("quadratic-error-surface", "rate")
@pytest.mark.parametrize("condition", [3.0, 30.0, 300.0])
def test_the_rate_is_set_by_the_condition_number(condition: float) -> None:
    """From a start that pulls along both axes alike, the error shrinks by (κ − 1)/(κ + 1) in every step."""
    h = torch.diag(torch.tensor([1.0, condition]).double())
    lr, factor = best_descent(1.0, condition)
    path = trajectory(lambda p: torch.optim.SGD(p, lr), quadratic(h), torch.ones(2).double(), 10).theta
    close(path.norm(dim=1)[1:] / path.norm(dim=1)[:-1], torch.full((10,), factor, dtype=torch.float64))
    assert factor == pytest.approx(math.sin(math.radians(worst_angle(condition))))
