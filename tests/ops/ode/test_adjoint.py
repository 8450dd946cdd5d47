"""The adjoint method: closed form, autograd through the solver, torchdiffeq, and memory that does not grow."""

from __future__ import annotations

import math

import pytest
import torch
import torchdiffeq  # type: ignore[import-untyped]
from torch import Tensor, nn

from descend.ops.ode.adjoint import odeint_adjoint
from descend.ops.ode.solve import odeint
from descend.ops.ode.solver import Solver
from tests.close import close

pytestmark = pytest.mark.system("adjoint-sensitivity")
DOUBLE = torch.float64


def field() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def start() -> Tensor:
    return torch.randn(5, 3, dtype=DOUBLE, generator=torch.Generator().manual_seed(1)).requires_grad_(True)


@pytest.mark.system("adjoint-sensitivity", "closed-form")
def test_linear_ode_in_closed_form() -> None:
    """z(T) = z_0 e^{θT}: dz(T)/dθ = T z_0 e^{θT}, dz(T)/dz_0 = e^{θT}."""
    theta = torch.tensor(0.7, dtype=DOUBLE, requires_grad=True)
    z0 = torch.tensor([1.3], dtype=DOUBLE, requires_grad=True)
    odeint_adjoint(lambda t, z: theta * z, z0, [0, 2], [theta], rtol=1e-9, atol=1e-12).last.sum().backward()
    close(theta.grad, torch.tensor(2 * 1.3 * math.exp(1.4)), loosen=10)
    close(z0.grad, torch.tensor([math.exp(1.4)]), loosen=10)


@pytest.mark.system("adjoint-sensitivity", "equals-autograd")
@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_agrees_with_autograd_within_the_tolerance(tolerance: float) -> None:
    """A loss that sees three times; a thousand times more strict is about a thousand times nearer."""
    net, found = field(), []
    for way in ("autograd", "adjoint"):
        z0, times = start(), [0, 0.5, 1.2, 2.0]
        net.zero_grad()
        slope = lambda t, z: net(z) * math.cos(t)
        settings = {"rtol": tolerance, "atol": tolerance}
        solution = (
            odeint(slope, z0, times, **settings)  # type: ignore[arg-type]
            if way == "autograd"
            else odeint_adjoint(slope, z0, times, list(net.parameters()), **settings)  # type: ignore[arg-type]
        )
        (solution.z[1:] * torch.linspace(1, 2, 3, dtype=DOUBLE).view(3, 1, 1)).square().sum().backward()
        assert z0.grad is not None
        found.append(torch.cat([z0.grad.flatten(), *(p.grad.flatten() for p in net.parameters())]))  # type: ignore
    error = (found[0] - found[1]).norm() / found[0].norm()
    assert 0 < error < 100 * tolerance


def test_agrees_with_torchdiffeq() -> None:
    net, ours, theirs = field(), start(), start()
    odeint_adjoint(
        lambda t, z: net(z), ours, [0, 1.5], list(net.parameters()), rtol=1e-9, atol=1e-10
    ).last.sum().backward()
    mine = [p.grad.clone() for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    times = torch.tensor([0, 1.5], dtype=DOUBLE)
    torchdiffeq.odeint_adjoint(
        lambda t, z: net(z), theirs, times, rtol=1e-9, atol=1e-10, adjoint_params=tuple(net.parameters())
    )[-1].sum().backward()
    close(ours.grad, theirs.grad, loosen=100)  # both are as near as their tolerance
    for a, p in zip(mine, net.parameters(), strict=True):
        close(a, p.grad, loosen=100)


@pytest.mark.system("adjoint-sensitivity", "constant-memory")
def test_what_is_kept_does_not_grow_with_the_steps() -> None:
    """Bytes that autograd keeps for the backward pass: the same for many evaluations as for few."""
    net = field()

    def count(way: str, steps: int) -> int:
        kept = []
        solver = Solver("rk4", steps=steps) if way == "autograd" else Solver("dopri5", rtol=10.0 ** -(steps // 10))
        with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.nbytes) or x, lambda x: x):  # type: ignore
            slope, parameters = (lambda t, z: net(z)), list(net.parameters())
            if way == "autograd":
                solver.solve(slope, start(), 0, 4)
            else:
                odeint_adjoint(slope, start(), [0, 4], parameters, rtol=solver.rtol, atol=solver.rtol)
        return sum(kept)

    assert count("adjoint", 100) == count("adjoint", 40) > 0
    assert count("autograd", 40) > 9 * count("autograd", 4)


def test_evaluations_on_the_way_back_are_told() -> None:
    told: list[int] = []
    net, z0 = field(), start()
    found = odeint_adjoint(lambda t, z: net(z), z0, [0, 1], list(net.parameters()), tell=told.append)
    assert not told
    found.last.sum().backward()
    assert len(told) == 1
    assert told[0] > 8
    assert found.points[-1] == 1
