"""The window: K = 1 is gradient descent, and the stability limits hold in practice."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.optim.stability import radius, window_limit, window_matrix
from descend.optim.trajectory import quadratic, trajectory
from descend.optim.window import GradientWindow
from tests.close import close

BOWL = quadratic(torch.diag(torch.tensor([4.0, 200.0], dtype=torch.float64)))
START = torch.ones(2, dtype=torch.float64)


@pytest.mark.system("gradient-window-averaging")
@pytest.mark.system("gradient-window-averaging", "window")
def test_a_window_of_one_is_gradient_descent() -> None:
    ours = trajectory(lambda p: GradientWindow(p, 0.004, 1), BOWL, START, 10).theta
    close(ours, trajectory(lambda p: torch.optim.SGD(p, 0.004), BOWL, START, 10).theta)


@pytest.mark.system("gradient-window-averaging")
@pytest.mark.system("gradient-window-averaging", "limits")
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_the_limit_separates_convergence_from_divergence(k: int) -> None:
    for share, grows in ((0.97, False), (1.03, True)):
        alpha = share * window_limit(k) / 200
        end = trajectory(lambda p, a=alpha: GradientWindow(p, a, k), BOWL, START, 300).theta[-1, 1].abs()
        assert bool(end > 1) is grows


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(Mistake, match="at least 1"):
        GradientWindow([START], window=0)


@pytest.mark.system("gradient-window-averaging", "compared")
def test_with_exact_gradients_no_window_beats_gradient_descent() -> None:
    """DLD 1.7 on its g (curvatures 4 and 200): the best worst-case factor of each K, and the race with Adam."""
    best = []
    for k in range(1, 6):
        shares = torch.linspace(0.02, 0.999, 200) * window_limit(k) / 200
        best.append(min(max(radius(window_matrix(float(a) * c, k)) for c in (4.0, 200.0)) for a in shares))
    assert best[0] == min(best)
    assert best[0] == pytest.approx(196 / 204, abs=1e-3)
    ends = {
        name: trajectory(build, BOWL, START, 200).losses[-1]
        for name, build in {
            "descent": lambda p: torch.optim.SGD(p, 2 / 204),
            "window": lambda p: GradientWindow(p, 0.9 * window_limit(3) / 200, 3),
            "adam": lambda p: torch.optim.Adam(p, 0.05),
        }.items()
    }
    assert ends["descent"] < ends["window"]
    assert ends["adam"] < ends["window"]
