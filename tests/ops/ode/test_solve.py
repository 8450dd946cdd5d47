"""ODE solvers: the books' numbers, closed forms, scipy's solve_ivp step by step, torchdiffeq."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
import torchdiffeq  # type: ignore[import-untyped]
from scipy.integrate import solve_ivp
from torch import Tensor

from descend.errors import Mistake
from descend.ops.ode.solve import odeint
from descend.ops.ode.solver import Solver
from tests.close import close

pytestmark = pytest.mark.system("ode-solvers")
DOUBLE = torch.float64
ONE = torch.ones(1, dtype=DOUBLE)


def bump(t: float, z: Tensor) -> Tensor:
    """DLN-NeuralODE-adaptive: decay with a sharp burst at 0.3."""
    return -z * (1 + 20 * math.exp(-(((t - 0.3) / 0.05) ** 2)))


def swing(t: float, z: Tensor) -> Tensor:
    """A pendulum with a drive."""
    return torch.stack([z[1], -z[0].sin() + 0.3 * math.cos(2 * t)])


@pytest.mark.system("ode-solvers", "euler")
def test_euler_halves_its_error_with_the_step() -> None:
    errors = []
    for n in (10, 20, 40, 80):
        found = odeint(lambda t, z: -z, ONE, [i / n for i in range(n + 1)], "euler")
        errors.append(abs(found.last.item() - math.exp(-1)))
        assert (found.evaluations, len(found.points)) == (n, n + 1)
    close(torch.tensor(errors), torch.tensor([0.01920100107, 0.009393518763, 0.004647001284, 0.002311297124]))
    halved = [a / b for a, b in pairwise(errors)]
    close(torch.tensor(halved), torch.tensor([2.04406906, 2.021415143, 2.010559886]))


@pytest.mark.system("ode-solvers", "uneven-steps", "counted")
def test_dormand_prince_takes_uneven_steps_and_beats_euler_at_equal_cost() -> None:
    """Evaluations, shortest and longest step as recomputed for the books; the errors against a finer solution."""
    found = odeint(bump, ONE, [0, 1], rtol=1e-6, atol=1e-9)
    lengths = np.diff(found.points)
    assert found.evaluations == 194
    close(torch.tensor([lengths.min(), lengths.max()]), torch.tensor([0.01218835736, 0.2345171745]).double(), loosen=10)
    exact = odeint(bump, ONE, [0, 1], rtol=1e-12, atol=1e-14).last.item()
    euler = odeint(bump, ONE, [i / 194 for i in range(195)], "euler").last.item()
    assert abs(found.last.item() - exact) < 2e-8
    assert abs(abs(euler - exact) - 0.004863245158) < 1e-8
    assert min(found.points[1:], key=lambda t: abs(t - 0.3)) - 0.3 < lengths.max()
    assert found.points[0] == 0
    assert found.points[-1] == 1
    # Steps are shortest where the burst is.
    assert 0.1 < found.points[int(lengths.argmin())] < 0.5


@pytest.mark.system("ode-solvers", "counted")
@pytest.mark.parametrize("end", [5.0, -3.0])
def test_every_step_is_scipys(end: float) -> None:
    """The same points, rejections and values as solve_ivp's RK45, also backwards in time."""
    start = torch.tensor([0.4, -1.1], dtype=DOUBLE)
    ours = odeint(swing, start, [0, end], rtol=1e-7, atol=1e-9)
    theirs = solve_ivp(
        lambda t, z: swing(t, torch.tensor(z)).numpy(), (0, end), start.numpy(), "RK45", rtol=1e-7, atol=1e-9
    )
    close(
        torch.tensor(ours.points, dtype=DOUBLE), torch.tensor(theirs.t), loosen=100
    )  # a step's error is a difference of near numbers
    close(ours.last, torch.tensor(theirs.y[:, -1]))
    assert ours.evaluations == theirs.nfev


@pytest.mark.system("ode-solvers", "rkf45")
@pytest.mark.parametrize("method", ["rkf45", "dopri5"])
def test_adaptive_methods_agree_with_a_finer_peer(method: str) -> None:
    """torchdiffeq at a tolerance a thousand times as strict; the error follows the tolerance."""
    start, times = torch.tensor([0.4, -1.1], dtype=DOUBLE), torch.tensor([0.0, 0.7, 2.0, 3.5], dtype=DOUBLE)
    theirs = torchdiffeq.odeint(lambda t, z: swing(float(t), z), start, times, method="dopri8", rtol=1e-11, atol=1e-12)
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        ours = odeint(swing, start, times.tolist(), method, rtol=tolerance, atol=tolerance)
        errors.append((ours.z - theirs).abs().max().item())
        assert errors[-1] < 30 * tolerance
        assert set(times.tolist()) <= set(ours.points)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("heun", 2), ("rk4", 4)])
def test_fixed_methods_have_their_order(method: str, order: int) -> None:
    start = torch.tensor([0.4, -1.1], dtype=DOUBLE)
    exact = odeint(swing, start, [0, 2], rtol=1e-12, atol=1e-13).last
    errors = [
        (odeint(swing, start, torch.linspace(0, 2, n + 1, dtype=DOUBLE).tolist(), method).last - exact).norm().item()
        for n in (40, 80)
    ]
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.15


@pytest.mark.parametrize("method", ["euler", "midpoint"])
def test_fixed_methods_are_torchdiffeqs(method: str) -> None:
    start, times = torch.tensor([0.4, -1.1], dtype=DOUBLE), torch.linspace(0, 2, 9, dtype=DOUBLE)
    theirs = torchdiffeq.odeint(lambda t, z: swing(float(t), z), start, times, method=method)
    close(odeint(swing, start, times.tolist(), method).z, theirs)


def test_gradients_pass_through_the_steps() -> None:
    """d z(T)/d z(0) and d/dθ of dz/dt = θ z, through an adaptive solver."""
    theta = torch.tensor(0.7, dtype=DOUBLE, requires_grad=True)
    z0 = torch.tensor([1.3], dtype=DOUBLE, requires_grad=True)
    odeint(lambda t, z: theta * z, z0, [0, 2], rtol=1e-9, atol=1e-12).last.sum().backward()
    assert theta.grad is not None
    close(theta.grad, torch.tensor(2 * 1.3 * math.exp(1.4)), loosen=10)
    close(z0.grad, torch.tensor([math.exp(1.4)]), loosen=10)


@pytest.mark.system("ode-solvers", "bounded")
@pytest.mark.parametrize(
    ("f", "told"),
    [
        (lambda t, z: -1e6 * (z - math.cos(t)), r"has not ended after 500 evaluations, at t = 0\.0"),
        (lambda t, z: z.square(), r"from t = 0 to 2 has not ended|not finite at t = 1\."),
        (lambda t, z: z * math.nan, r"not finite at its start, t = 0"),
    ],
)
def test_an_ode_that_does_not_end_is_given_up_and_says_where(f: object, told: str) -> None:
    with pytest.raises(Mistake, match=told):
        odeint(f, ONE, [0, 2], most=500)  # type: ignore[arg-type]


def test_mistakes() -> None:
    with pytest.raises(Mistake, match=r"method 'dopri' is unknown\. Did you mean 'dopri5'"):
        odeint(bump, ONE, [0, 1], "dopri")
    with pytest.raises(Mistake, match="times of an ODE must all rise or all fall"):
        odeint(bump, ONE, [0, 1, 0.5])
    with pytest.raises(Mistake, match="times of an ODE must all rise or all fall"):
        odeint(bump, ONE, [0, 0])


def test_a_solver_passes_all_steps_of_a_fixed_method() -> None:
    assert Solver("euler", steps=4).times(1, 0) == [1, 0.75, 0.5, 0.25, 0]
    assert Solver("dopri5").times(0, 1) == [0, 1]
    assert Solver("rk4", steps=3).solve(bump, ONE, 0, 1).evaluations == 12
