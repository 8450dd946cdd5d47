"""The window: K = 1 is gradient descent, and the stability limits hold in practice."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.optim.stability import window_limit
from descend.optim.trajectory import quadratic, trajectory
from descend.optim.window import GradientWindow
from tests.close import close

BOWL = quadratic(torch.diag(torch.tensor([4.0, 200.0], dtype=torch.float64)))
START = torch.ones(2, dtype=torch.float64)


@pytest.mark.system("gradient-window-averaging")
def test_a_window_of_one_is_gradient_descent() -> None:
    ours = trajectory(lambda p: GradientWindow(p, 0.004, 1), BOWL, START, 10).theta
    close(ours, trajectory(lambda p: torch.optim.SGD(p, 0.004), BOWL, START, 10).theta)


@pytest.mark.system("gradient-window-averaging")
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_the_limit_separates_convergence_from_divergence(k: int) -> None:
    for share, grows in ((0.97, False), (1.03, True)):
        alpha = share * window_limit(k) / 200
        end = trajectory(lambda p, a=alpha: GradientWindow(p, a, k), BOWL, START, 300).theta[-1, 1].abs()
        assert bool(end > 1) is grows


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(Mistake, match="at least 1"):
        GradientWindow([START], window=0)
