"""The proximal step: exact zeros, the argmin that defines it, matrices only."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from descend.classic.lasso import lasso
from descend.losses.penalties import l1, weights, zero_share
from descend.optim.proximal import ProximalGradient, ProximalSGD, proximal, soft_threshold
from descend.optim.rules import SGD
from tests.close import close


@pytest.mark.system("l1-penalty")
@pytest.mark.system("lasso")
@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.floats(0, 1e3))
def test_soft_threshold_is_that_of_torch(values: list[float], a: float) -> None:
    z = torch.tensor(values, dtype=torch.float64)
    assert torch.equal(soft_threshold(z, a), F.softshrink(z, a) + 0.0)


@pytest.mark.system("l1-penalty")
@pytest.mark.system("l1-penalty", "proximal")
@pytest.mark.system("elastic-net")
@pytest.mark.parametrize(("alpha", "lam"), [(1.0, 0.8), (0.3, 0.8), (0.0, 0.8), (1.0, 0.0)])
def test_proximal_is_the_argmin(alpha: float, lam: float) -> None:
    """Over a fine grid; DLD 9.3: of a‖w‖₁, where a = ηλ, not of ‖w‖₁."""
    grid = torch.linspace(-4, 4, 80_001, dtype=torch.float64)
    for z in (-3.0, -0.1, 0.0, 0.3, 2.5):
        value = (grid - z).square() / 2 + 0.5 * lam * (alpha * grid.abs() + (1 - alpha) / 2 * grid.square())
        best = grid[value.argmin()]
        assert abs(proximal(torch.tensor(z, dtype=torch.float64), 0.5, lam, alpha) - best) <= 1e-4


def sparse_problem() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(60, 10, dtype=torch.float64, generator=random)
    w = torch.tensor([2.0, -1.5, 1.0] + [0.0] * 7, dtype=torch.float64)
    return x, x @ w + 0.3 * torch.randn(60, dtype=torch.float64, generator=random)


def descended(proximally: bool, lam: float) -> nn.Linear:
    """Half the mean squared error and λ‖w‖₁, 400 steps."""
    x, y = sparse_problem()
    model = nn.Linear(10, 1).double()
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = (ProximalGradient(0.1, lam) if proximally else SGD(0.1, momentum=0.0)).build(model)
    for _ in range(400):
        optimizer.zero_grad()
        loss = (model(x)[:, 0] - y).square().mean() / 2
        (loss if proximally else loss + l1(weights(model), lam)).backward()
        optimizer.step()
    return model


@pytest.mark.system("l1-penalty")
@pytest.mark.system("l1-penalty", "subgradient", "proximal")
@pytest.mark.system("lasso")
def test_proximal_gives_zeros_and_subgradients_do_not() -> None:
    """MF-A.53: the limit is the lasso of the centred data, seven weights exactly 0."""
    x, y = sparse_problem()
    model = descended(proximally=True, lam=0.2)
    exact = lasso(x - x.mean(0), y - y.mean(), len(x) * 0.2)
    close(model.weight[0], exact)
    assert zero_share(weights(model)) == 0.7 == float((exact == 0).double().mean())
    close(model.bias[0], y.mean() - x.mean(0) @ exact)  # the bias is not penalised
    jumping = descended(proximally=False, lam=0.2)
    assert zero_share(weights(jumping)) == 0.0
    assert (jumping.weight[0] - exact).abs().max() < 0.05  # near, but never on it


@pytest.mark.system("l1-penalty")
def test_without_penalty_it_is_gradient_descent() -> None:
    ends = []
    for rule in (ProximalGradient(0.1, 0.0), SGD(0.1, momentum=0.0)):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = rule.build(model)
        for _ in range(3):

            def closure() -> float:
                optimizer.zero_grad()
                loss = model(torch.eye(3)).square().sum()
                loss.backward()
                return loss.item()

            assert optimizer.step(closure) > 0
        ends.append(model.weight)
    close(ends[0], ends[1])


def test_bad_values_are_refused() -> None:
    w = [nn.Parameter(torch.zeros(2))]
    for lr, lam, alpha in ((-1.0, 0.0, 1.0), (0.1, -1.0, 1.0), (0.1, 0.0, 1.1)):
        with pytest.raises(ValueError, match="alpha"):
            ProximalSGD(w, lr, lam, alpha)
