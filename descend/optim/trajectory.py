"""The path of an optimizer on a function of one vector: for plots, labs and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class Path(NamedTuple):
    """The iterates θ₀ … θ_T, and where the loss was evaluated with what value (once a step, or more)."""

    theta: Tensor
    seen: Tensor
    losses: Tensor


def trajectory(
    build: Callable[[list[nn.Parameter]], Optimizer], loss: Callable[[Tensor], Tensor], start: Tensor, steps: int
) -> Path:
    """Follow `build([θ])` for this many steps; it works for all optimizers, with a closure that keeps the graph."""
    theta = nn.Parameter(start.clone())
    optimizer = build([theta])
    iterates, seen, losses = [start.clone()], [], []

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(theta)
        seen.append(theta.detach().clone())
        losses.append(value.detach())
        value.backward(retain_graph=True)
        return value

    for _ in range(steps):
        optimizer.step(closure)  # type: ignore[arg-type]
        iterates.append(theta.detach().clone())
    return Path(torch.stack(iterates), torch.stack(seen), torch.stack(losses))


def quadratic(hessian: Tensor, b: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    """E(θ) = ½ θᵀ H θ − bᵀ θ."""
    return lambda theta: 0.5 * theta @ hessian @ theta - (0 if b is None else b @ theta)


def rosenbrock(theta: Tensor) -> Tensor:
    """Σ 100 (θ_{i+1} − θ_i²)² + (1 − θ_i)²: a curved valley with its minimum 0 at (1, …, 1)."""
    head, tail = theta[:-1], theta[1:]
    return (100 * (tail - head**2) ** 2 + (1 - head) ** 2).sum()
