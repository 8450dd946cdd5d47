"""Rules build torch's optimizers with decay on matrices only; schedules and clipping follow the books."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from descend.optim.clip import clip_norm, clip_value
from descend.optim.rules import LBFGS, SGD, Adam, AdamW
from descend.optim.schedules import Constant, Cosine, Linear, cosine, linear_warmup
from tests.close import close

RULES = [SGD(lr=0.05), Adam(lr=0.01), AdamW(lr=0.01, weight_decay=0.1), LBFGS(lr=0.5, inner=2)]


def problem() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return (
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double(),
        torch.randn(8, 3).double(),
        torch.ones(8, 1),
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
def test_ten_steps_are_those_of_torch(rule: SGD) -> None:
    ours, x, y = problem()
    theirs, _, _ = problem()
    decay = getattr(rule, "weight_decay", 0.0)
    groups = [
        {"params": [p for p in theirs.parameters() if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in theirs.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    oracle = {
        SGD: lambda: torch.optim.SGD(groups, 0.05, momentum=0.9),
        Adam: lambda: torch.optim.Adam(theirs.parameters(), 0.01),
        AdamW: lambda: torch.optim.AdamW(groups, 0.01),
        LBFGS: lambda: torch.optim.LBFGS(theirs.parameters(), 0.5, 2, history_size=10, line_search_fn="strong_wolfe"),
    }[type(rule)]()
    for model, optimizer in ((ours, rule.build(ours)), (theirs, oracle)):
        for _ in range(10):

            def closure() -> float:
                optimizer.zero_grad()
                loss = (model(x) - y).square().mean()
                loss.backward()
                return loss.item()

            optimizer.step(closure)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(a, b)


def test_decay_spares_biases() -> None:
    model = nn.Linear(3, 2)
    nn.init.ones_(model.bias)
    optimizer = AdamW(lr=0.1, weight_decay=0.5).build(model)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    before = model.weight.detach().clone()
    optimizer.step()
    close(model.weight, before * (1 - 0.1 * 0.5))
    assert (model.bias == 1).all()


@pytest.mark.system("gradient-clipping")
def test_clipping() -> None:
    p, q = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    p.grad, q.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    close(clip_norm([p, q], 1.0), torch.tensor(5.0))
    close(p.grad, torch.tensor([0.6, 0.0]))
    close(q.grad, torch.tensor([0.8]))
    close(clip_norm([p, q], 2.0), torch.tensor(1.0))  # short gradients stay
    close(q.grad, torch.tensor([0.8]))
    clip_value([p, q], 0.7)
    close(torch.cat([p.grad, q.grad]), torch.tensor([0.6, 0.0, 0.7]))


def test_a_zero_gradient_is_left_alone() -> None:
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.zeros(2)
    clip_norm([p], 1.0)
    assert (p.grad == 0).all()


@pytest.mark.system("cosine-annealing")
def test_cosine_is_torchs_closed_form() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50, eta_min=0.001)
    for t in range(51):
        close(torch.tensor(cosine(t, 50, 0.1, 0.001)).double(), torch.tensor(theirs.get_last_lr()[0]).double())
        optimizer.step()
        theirs.step()


@pytest.mark.system("linear-warmup")
def test_warmup_joins_the_decay_without_a_jump() -> None:
    for schedule in (Cosine(warmup=10), Linear(warmup=10), Constant(warmup=10)):
        factors = [schedule(step, 100) for step in range(100)]
        assert factors[9] == factors[10] == 1.0
        assert max(abs(a - b) for a, b in pairwise(factors)) <= 0.1 + 1e-12
    assert linear_warmup(5, 10, 0.001, 0.1) == pytest.approx(0.0505)
    assert Cosine(floor=0.1)(99, 100) < 0.102
    assert Linear()(50, 100) == pytest.approx(0.5)
    assert math.isclose(Cosine(warmup=0, floor=0.0)(50, 100), 0.5)
