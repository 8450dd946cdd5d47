"""Small problems that the tests of the optimizers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from descend.optim import book_rules as book
from descend.optim import rules

TORCH = [
    rules.SGD(lr=0.05, weight_decay=0.1),
    rules.ShiftedNesterov(lr=0.05, weight_decay=0.1),
    rules.RMSprop(lr=0.01, weight_decay=0.1),
    rules.Adagrad(lr=0.05, weight_decay=0.1),
    rules.Adadelta(weight_decay=0.1),
    rules.Rprop(),
    rules.Adam(lr=0.01),
    rules.AdamL2(lr=0.01, weight_decay=0.1),
    rules.AdamW(lr=0.01, weight_decay=0.1),
    rules.UnscaledAdamW(lr=0.01, weight_decay=1e-3),
    rules.LBFGS(lr=0.5, inner=2),
]
OWN = [
    book.HeavyBall(lr=0.05, weight_decay=0.1),
    book.Nesterov(lr=0.05, weight_decay=0.1),
    book.IterateAveraging(lr=0.05, start=2, weight_decay=0.1),
    book.Subgradient(lr=0.05, weight_decay=0.1),
    book.GradientWindow(lr=0.05, window=3, weight_decay=0.1),
    book.LocalGains(lr=0.05, weight_decay=0.1),
    book.VelocityGains(lr=0.02, weight_decay=0.1),
    book.PlainRprop(),
    book.RMSPropInside(lr=0.01, weight_decay=0.1),
    book.AdagradInside(lr=0.05, weight_decay=0.1),
    book.AdamInside(lr=0.01, weight_decay=0.1),
    book.Lion(lr=0.005),
    book.FletcherReeves(inner=2),
    book.PolakRibiere(inner=2),
    book.HessianFree(inner=5),
]


def name(rule: object) -> str:
    return type(rule).__name__


def problem() -> tuple[nn.Module, Tensor, Tensor]:
    """A small network in float64 and its data."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    return model, torch.randn(8, 3).double(), torch.ones(8, 1, dtype=torch.float64)


def descend(optimizer: Optimizer, loss_fn: Callable[[], Tensor], steps: int) -> list[float]:
    """So many steps with a closure as the trainer passes it; the losses it returned."""

    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_fn()
        loss.backward()
        return loss.item()

    return [float(optimizer.step(closure)) for _ in range(steps)]


def train(rule: Any, steps: int) -> nn.Module:
    model, x, y = problem()
    descend(rule.build(model), lambda: (model(x) - y).square().mean(), steps)
    return model
