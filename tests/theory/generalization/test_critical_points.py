"""Critical points by their Hessians: known signatures, small networks, random matrices, and leaving a saddle."""

from __future__ import annotations

import math

import pytest
import torch

from descend.autodiff.hessian import hessian
from descend.optim.trajectory import quadratic, trajectory
from descend.theory.generalization.critical_points import (
    classify,
    definite_share,
    random_symmetric,
    spread_on_saddle,
    steps_to_leave,
)
from tests.close import close


def at_zero(f: object, n: int = 2) -> str:
    return classify(hessian(f, torch.zeros(n, dtype=torch.float64)))  # type: ignore[arg-type]


@pytest.mark.system("critical-point-classification")
@pytest.mark.system("critical-point-classification", "signatures")
@pytest.mark.system("loss-landscape", "saddle")
def test_known_signatures() -> None:
    assert at_zero(lambda x: x[0] ** 2 - x[1] ** 2) == "saddle"
    assert at_zero(lambda x: x[0] * x[1]) == "saddle"
    assert at_zero(lambda x: x.square().sum()) == "minimum"
    assert at_zero(lambda x: -(x.square().sum())) == "maximum"
    turn = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(0)).double()).Q
    for signs, kind in (([1, 1, 2, 3, 9], "minimum"), ([-1, 1, 2, 3, 9], "saddle"), ([-1, -1, -2, -3, -9], "maximum")):
        assert classify(turn @ torch.diag(torch.tensor(signs).double()) @ turn.T) == kind


@pytest.mark.system("critical-point-classification", "necessary")
def test_semidefinite_is_necessary_only() -> None:
    """x⁴ + y² has a minimum at 0, x³ + y² none: the same Hessian, which is positive semidefinite."""
    for f in (lambda x: x[0] ** 4 + x[1] ** 2, lambda x: x[0] ** 3 + x[1] ** 2):
        h = hessian(f, torch.zeros(2, dtype=torch.float64))
        assert (torch.linalg.eigvalsh(h) >= 0).all()  # MF's test would say minimum for both
        assert classify(h) == "undecided"
    assert float(torch.tensor([-0.1, 0.0])[0] ** 3) < 0  # x³ falls below its value at 0


@pytest.mark.system("critical-point-classification", "linear-net")
def test_the_start_of_a_linear_net_is_a_saddle() -> None:
    """y = w₂ w₁ᵀ x at w = 0, with inputs that correlate with the answers; without, the Hessian says nothing."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(20, 2, generator=random, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -1.0]).double()

    def loss(theta: torch.Tensor, y: torch.Tensor = y) -> torch.Tensor:
        return (theta[4:] @ (theta[:4].view(2, 2) @ x.T) - y).square().mean()

    zero = torch.zeros(6, dtype=torch.float64)
    assert not torch.func.grad(loss)(zero).any()
    assert classify(hessian(loss, zero)) == "saddle"
    assert classify(hessian(lambda t: loss(t, 0 * y), zero)) == "undecided"


@pytest.mark.system("critical-point-classification", "small-net")
def test_the_point_that_training_finds() -> None:
    """A net of 2 tanh units with a weight penalty: L-BFGS ends at a point whose Hessian is definite."""
    random = torch.Generator().manual_seed(3)
    x = torch.randn(40, 2, generator=random, dtype=torch.float64)
    y = (x[:, 0] - x[:, 1]).tanh() + 0.5 * (x[:, 0] + x[:, 1])

    def loss(theta: torch.Tensor) -> torch.Tensor:
        w, v = theta[:4].view(2, 2), theta[4:]
        return ((x @ w.T).tanh() @ v - y).square().mean() + 1e-3 * theta.square().sum()

    slope = torch.func.grad(loss)
    start = torch.randn(6, generator=random, dtype=torch.float64)
    path = trajectory(lambda p: torch.optim.LBFGS(p, tolerance_grad=1e-12, tolerance_change=0), loss, start, 20)
    end = path.theta[-1]
    assert float(slope(end).norm()) < 1e-6
    h = hessian(loss, end)
    close(h, h.T)
    steps = 1e-5 * torch.eye(6, dtype=torch.float64)
    close(h, torch.stack([(slope(end + e) - slope(end - e)) / 2e-5 for e in steps]), loosen=1000)  # differences
    assert classify(h) == "minimum"
    assert classify(hessian(loss, torch.zeros(6, dtype=torch.float64))) == "saddle"


@pytest.mark.system("critical-point-classification", "definite-share")
@pytest.mark.parametrize("seed", range(3))
def test_definite_matrices_are_rare(seed: int) -> None:
    """1/2, (2 − √2)/4 = 0.146 and 1/4 − 1/(√2 π) = 0.0249 in closed form; none of 20,000 with n = 6."""
    random, draws = torch.Generator().manual_seed(seed), 20_000
    shares = [definite_share(random_symmetric(n, draws, random)) for n in (1, 2, 3, 6)]
    for share, expected in zip(
        shares, (0.5, (2 - math.sqrt(2)) / 4, 0.25 - 1 / (math.sqrt(2) * math.pi)), strict=False
    ):
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / draws)
    assert shares[3] < 1e-3


@pytest.mark.system("critical-point-classification", "escape")
@pytest.mark.parametrize("seed", range(3))
def test_noise_leaves_a_saddle(seed: int) -> None:
    """x² − y² from (1, 0), where no slope is along y: exact descent stays, noise leaves, strong noise first."""
    random, h = torch.Generator().manual_seed(seed), torch.diag(torch.tensor([2.0, -2.0]).double())
    lr, steps, walks = 0.05, 120, 400
    path = trajectory(lambda p: torch.optim.SGD(p, lr), quadratic(h), torch.tensor([1.0, 0.0]).double(), steps).theta
    assert path[-1, 1] == 0
    assert path[-1, 0] < 0.01
    times = []
    for noise in (0.001, 0.01, 0.1):
        theta, left = torch.tensor([1.0, 0.0]).double().repeat(walks, 1), torch.full((walks,), math.inf)
        for step in range(1, steps + 1):
            push = noise * torch.randn(walks, 2, generator=random, dtype=torch.float64)
            theta = theta - lr * (theta @ h + push)
            left[(theta[:, 1].abs() > 0.1) & left.isinf()] = step
        spread = float(theta[:, 1].square().mean().sqrt())
        assert spread == pytest.approx(spread_on_saddle(steps, lr, 2.0, noise), rel=0.2)
        times.append(float(left.median()))
        assert abs(times[-1] - steps_to_leave(0.1, lr, 2.0, noise)) < 8
    assert times[0] > times[1] > times[2]
    assert steps_to_leave(0.1, lr, 2.0, 0.0) == math.inf
