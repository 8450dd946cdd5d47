"""Hessian-free: one step on a quadratic, a loss that never rises, and structural damping of a recurrent net."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest
import torch
from torch import nn

from descend.optim.conjugate import cg_steps
from descend.optim.hessian_free import DifferenceHF, GaussNewton, HessianFree, Parts, solve
from descend.optim.trajectory import quadratic, rosenbrock, trajectory
from tests.close import close
from tests.optim.problems import descend, problem

SLUG = "hessian-free-optimization"


@pytest.mark.system("hessian-free-optimization", "quadratic")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("method", [HessianFree, DifferenceHF])
def test_one_step_without_damping_solves_a_quadratic(method: type) -> None:
    m = torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h, b = m @ m.T + torch.eye(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
    end = trajectory(lambda p: method(p, damping=0.0), quadratic(h, b), torch.zeros_like(b), 1).theta[-1]
    close(end, torch.linalg.solve(h, b), loosen=1e3)  # CG and differences round


@pytest.mark.system("hessian-free-optimization", "falls")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("method", [HessianFree, DifferenceHF])
def test_rosenbrock_falls_at_every_step(method: type) -> None:
    path = trajectory(method, rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64), 30)
    losses = [rosenbrock(theta).item() for theta in path.theta]
    assert all(after <= before for before, after in pairwise(losses))
    assert losses[-1] < 1e-8


class Recurrent(nn.Module):
    """h ← tanh(W h + U x), the last of which is read."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.w, self.u = nn.Parameter(torch.randn(4, 4).double() * 0.7), nn.Parameter(torch.randn(4, 1).double())
        self.v = nn.Parameter(torch.randn(1, 4).double())

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h, states = torch.zeros(len(x), 4, dtype=torch.float64), []
        for t in range(x.shape[1]):
            h = torch.tanh(h @ self.w.T + x[:, t : t + 1] @ self.u.T)
            states.append(h)
        return h @ self.v.T, torch.stack(states)


def recurrent(structural: float, steps: int) -> tuple[list[float], float]:
    """Losses, and how far the first step moved the hidden states, on the task of summing a sequence."""
    net = Recurrent()
    x = torch.randn(12, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 0.5
    y = x.sum(1, keepdim=True)

    def closure() -> Parts:
        outputs, hidden = net(x)
        return Parts((outputs - y).square().mean(), outputs, hidden)

    optimizer = GaussNewton(net.parameters(), damping=0.1, structural=structural)
    before = net(x)[1].detach()
    losses = [optimizer.step(closure)]
    change = (net(x)[1] - before).norm().item()
    return losses + [optimizer.step(closure) for _ in range(steps - 1)], change


@pytest.mark.system("hessian-free-optimization", "structural-damping")
@pytest.mark.system(SLUG)
def test_a_recurrent_net_learns_and_structural_damping_holds_its_states() -> None:
    """DLN-A.110: the larger the penalty, the smaller the change of the hidden activities."""
    changes = []
    for structural in (0.0, 1.0, 30.0):
        losses, change = recurrent(structural, 6 if structural < 2 else 2)
        assert all(after <= before for before, after in pairwise(losses))
        changes.append(change)
        if structural < 2:
            assert losses[-1] < 0.3 * losses[0]
    assert changes[0] > changes[1] > changes[2]


@pytest.mark.system("hessian-free-optimization", "against-sgd")
@pytest.mark.system(SLUG)
def test_it_needs_far_fewer_steps_than_sgd() -> None:
    model, x, y = problem()
    free = descend(DifferenceHF(model.parameters()), lambda: (model(x) - y).square().mean(), 8)
    other, _, _ = problem()
    plain = descend(torch.optim.SGD(other.parameters(), 0.1), lambda: (other(x) - y).square().mean(), 100)
    assert free[-1] < plain[-1]


@pytest.mark.system(SLUG)
def test_gauss_newton_resumes_to_the_bit() -> None:
    ends = []
    for cut in (False, True):
        model, x, y = problem()

        def closure(model: nn.Module = model) -> Parts:
            outputs = model(x)
            return Parts((outputs - y).square().mean(), outputs)

        optimizer = GaussNewton(model.parameters())
        for _ in range(3):
            optimizer.step(closure)
        if cut:
            state = optimizer.state_dict()
            optimizer = GaussNewton(model.parameters())
            optimizer.load_state_dict(state)
        optimizer.step(closure)
        ends.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


@pytest.mark.system("hessian-free-optimization", "falls")
@pytest.mark.system(SLUG)
def test_damping_grows_where_the_quadratic_lies() -> None:
    """On a loss that the quadratic fits exactly λ falls; where it promises too much, λ rises."""
    found = {}
    for name, loss in (("bowl", lambda t: (t**2).sum()), ("edge", lambda t: t.cosh().log().sum())):
        p = nn.Parameter(torch.tensor([3.0, -3.0], dtype=torch.float64))
        optimizer = DifferenceHF([p], damping=0.1)
        descend(optimizer, lambda p=p, loss=loss: loss(p), 1)
        found[name] = optimizer.memory["damping"]
    assert found["bowl"] < 0.1 < found["edge"]


@pytest.mark.system(SLUG)
def test_iterates_are_kept_at_growing_steps_and_each_once() -> None:
    """CG's iterates 1, 2, 3, 4, 5, 6, .. while marks grow by 1.3, then ever fewer, and the last one at the end."""
    a = torch.linspace(1, 30, 20, dtype=torch.float64)
    g = torch.ones_like(a)
    found = solve(lambda v: a * v, g, None, 17)
    every = [x for x, _, _ in islice(cg_steps(lambda v: a * v, -g, None), 17)]
    steps = [next(i for i, x in enumerate(every, 1) if torch.equal(x, at)) for at, _ in found]
    assert steps == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14, 17]
    for x, fall in found:
        close(torch.tensor(fall, dtype=torch.float64), 0.5 * x @ (a * x) + g @ x)
