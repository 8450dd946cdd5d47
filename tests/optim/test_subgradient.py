"""Subgradients: the inequality, and convergence where a constant step fails."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.optim.subgradient import Subgradient
from descend.optim.trajectory import trajectory


@pytest.mark.system("subgradient-descent")
@pytest.mark.system("subgradient-descent", "inequality")
@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.floats(-5, 5) | st.just(0.0), st.floats(-5, 5), st.sampled_from([torch.abs, torch.relu]))
def test_autograd_returns_a_subgradient_also_at_the_kink(x: float, y: float, f: object) -> None:
    at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    value = f(at)  # type: ignore[operator]
    (g,) = torch.autograd.grad(value, at)
    assert f(torch.tensor(y, dtype=torch.float64)) >= value + g * (y - x) - 1e-12  # type: ignore[operator]


@pytest.mark.system("subgradient-descent")
@pytest.mark.system("subgradient-descent", "schedule")
def test_the_best_value_converges_where_a_constant_step_bounces() -> None:
    start = torch.tensor([0.95], dtype=torch.float64)
    found = {}
    for name, build in (("shrinking", lambda p: Subgradient(p, 0.1)), ("constant", lambda p: torch.optim.SGD(p, 0.1))):
        found[name] = trajectory(build, lambda t: t.abs().sum(), start, 500).losses
    assert found["shrinking"].min() < 3e-3
    assert found["shrinking"][-5:].max() < 0.01
    assert found["constant"][10:].min() > 0.04  # 0.05 forever


@pytest.mark.system("subgradient-descent")
@pytest.mark.system("subgradient-descent", "l1")
def test_an_l1_loss_finds_its_sparse_minimum() -> None:
    """½‖x − a‖² + ‖x‖₁ has its minimum at the soft threshold of a."""
    a = torch.tensor([3.0, 0.5, -2.0], dtype=torch.float64)
    path = trajectory(
        lambda p: Subgradient(p, 0.5), lambda x: 0.5 * (x - a).square().sum() + x.abs().sum(), torch.zeros_like(a), 500
    )
    assert (path.theta[-1] - torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64)).abs().max() < 0.03
