"""The optimizers as everybody writes them are torch's, step by step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from descend.ops import updates
from tests.close import close

STEPS = 12
A = torch.tensor([[3.0, 1.0, 0.0], [1.0, 2.0, -0.5], [0.0, -0.5, 1.0]], dtype=torch.float64)
START = torch.tensor([4.0, -3.0, 0.7], dtype=torch.float64)
ZERO = torch.zeros_like(START)


def slope(theta: Tensor) -> Tensor:
    """The gradient of ½ θᵀAθ + Σ cos θ: not the same from step to step in any coordinate."""
    return A @ theta - theta.sin()


def walk_torch(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer]) -> Tensor:
    """The weights after every step of torch's optimizer."""
    theta = nn.Parameter(START.clone())
    optimizer, path = make([theta]), []
    for _ in range(STEPS):
        theta.grad = slope(theta.detach())
        optimizer.step()
        path.append(theta.detach().clone())
    return torch.stack(path)


def walk(step: Callable[..., tuple[Tensor, object]], memory: object, **settings: object) -> Tensor:
    """The weights after every step of ours."""
    theta, path = START, []
    for _ in range(STEPS):
        theta, memory = step(theta, slope(theta), memory, **settings)
        path.append(theta)
    return torch.stack(path)


@pytest.mark.system("gradient-descent")
def test_descent_is_torchs() -> None:
    theta, path = START, []
    for _ in range(STEPS):
        theta = updates.descent_step(theta, slope(theta), 0.1)
        path.append(theta)
    close(torch.stack(path), walk_torch(lambda p: torch.optim.SGD(p, 0.1)))


RULES = {
    "momentum": (
        lambda: walk(updates.momentum_step, ZERO, lr=0.05),
        lambda p: torch.optim.SGD(p, 0.05, 0.9),
    ),
    "adagrad": (
        lambda: walk(updates.adagrad_step, ZERO, lr=0.3),
        lambda p: torch.optim.Adagrad(p, 0.3),
    ),
    "rmsprop": (
        lambda: walk(updates.rmsprop_step, ZERO, lr=0.1),
        lambda p: torch.optim.RMSprop(p, 0.1),
    ),
    "adadelta": (
        lambda: walk(updates.adadelta_step, (ZERO, ZERO)),
        lambda p: torch.optim.Adadelta(p),
    ),
}


@pytest.mark.parametrize("slug", [pytest.param(s, id=s, marks=pytest.mark.system(s)) for s in RULES])
def test_rules_with_a_memory_are_torchs(slug: str) -> None:
    ours, theirs = RULES[slug]
    close(ours(), walk_torch(theirs))


@pytest.mark.system("adam")
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.8)])
def test_adam_is_torchs(betas: tuple[float, float]) -> None:
    theta, moments, path = START, (ZERO, ZERO), []
    for t in range(1, STEPS + 1):
        theta, moments = updates.adam_step(theta, slope(theta), moments, t, 0.1, betas)
        path.append(theta)
    close(torch.stack(path), walk_torch(lambda p: torch.optim.Adam(p, 0.1, betas)))


@pytest.mark.system("adamw")
def test_adamw_is_torchs() -> None:
    theta, moments, path = START, (ZERO, ZERO), []
    for t in range(1, STEPS + 1):
        theta, moments = updates.adamw_step(theta, slope(theta), moments, t, 0.1, weight_decay=0.3)
        path.append(theta)
    close(torch.stack(path), walk_torch(lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3)))


@pytest.mark.system("nesterov-momentum")
def test_torchs_nesterov_walks_through_the_look_ahead_points() -> None:
    theta, v, ahead = START, ZERO, []
    for _ in range(STEPS):
        theta, v = updates.nesterov_momentum_step(theta, slope, v, 0.05)
        ahead.append(theta + 0.9 * v)
    close(torch.stack(ahead), walk_torch(lambda p: torch.optim.SGD(p, 0.05, 0.9, nesterov=True)))
