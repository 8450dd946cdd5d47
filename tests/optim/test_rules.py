"""Rules build torch's optimizers with decay on matrices only; schedules follow the books."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

from descend.optim import rules
from descend.optim.rules import LBFGS, SGD, Adam, AdamW
from descend.optim.schedules import Constant, Cosine, Linear, cosine, linear_warmup
from tests.close import close
from tests.optim.problems import TORCH, descend, name, problem, train

GROUPED = {
    SGD: lambda g: torch.optim.SGD(g, 0.05, momentum=0.9),
    rules.ShiftedNesterov: lambda g: torch.optim.SGD(g, 0.05, momentum=0.9, nesterov=True),
    rules.RMSprop: lambda g: torch.optim.RMSprop(g, 0.01, alpha=0.9, eps=1e-8),
    rules.Adagrad: lambda g: torch.optim.Adagrad(g, 0.05),
    rules.Adadelta: lambda g: torch.optim.Adadelta(g, 1.0, rho=0.95, eps=1e-6),
    rules.Rprop: lambda g: torch.optim.Rprop(one(g), 0.01),
    Adam: lambda g: torch.optim.Adam(one(g), 0.01),
    rules.AdamL2: lambda g: torch.optim.Adam(g, 0.01),
    AdamW: lambda g: torch.optim.AdamW(g, 0.01),
    rules.UnscaledAdamW: lambda g: torch.optim.AdamW(g, 0.01),
    LBFGS: lambda g: torch.optim.LBFGS(one(g), 0.5, 2, history_size=10, line_search_fn="strong_wolfe"),
}
SLUGS = {"RMSprop": "rmsprop", "Adagrad": "adagrad", "Adadelta": "adadelta", "Rprop": "rprop", "Adam": "adam"}
SLUGS |= {"AdamL2": "adamw", "AdamW": "adamw", "UnscaledAdamW": "adamw", "LBFGS": "lbfgs", "SGD": "momentum"}
SLUGS |= {"ShiftedNesterov": "nesterov-momentum"}


def one(groups: list[dict[str, Any]]) -> list[nn.Parameter]:
    return [p for group in groups for p in group["params"]]


@pytest.mark.system("lbfgs", "trajectory")
@pytest.mark.system("adamw", "two-forms")
@pytest.mark.system("adam", "both-places")
@pytest.mark.system("adadelta", "no-rate")
@pytest.mark.system("rmsprop", "both-places")
@pytest.mark.parametrize("rule", [pytest.param(r, id=name(r), marks=pytest.mark.system(SLUGS[name(r)])) for r in TORCH])
def test_ten_steps_are_those_of_torch(rule: Any) -> None:
    ours = train(rule, 10)
    theirs, x, y = problem()
    decay = getattr(rule, "weight_decay", 0.0) * (1 / rule.lr if isinstance(rule, rules.UnscaledAdamW) else 1)
    groups = [
        {"params": [p for p in theirs.parameters() if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in theirs.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    oracle = GROUPED[type(rule)]([{**g, "params": g["params"]} for g in groups])
    descend(oracle, lambda: (theirs(x) - y).square().mean(), 10)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(a, b)


@pytest.mark.system("adamw")
@pytest.mark.system("adamw", "two-forms")
def test_the_two_forms_of_adamw_shrink_differently() -> None:
    """DLN-A.101: without a gradient the weights shrink by 1 − λ in the first form and by 1 − η λ in the second."""
    for rule, factor in ((rules.UnscaledAdamW(0.01, weight_decay=0.1), 0.9), (AdamW(0.01, weight_decay=0.1), 0.999)):
        p = nn.Parameter(torch.ones(2, 2, dtype=torch.float64))
        p.grad = torch.zeros_like(p)
        rule.build(nn.ParameterList([p])).step()
        close(p, torch.full((2, 2), factor, dtype=torch.float64))


@pytest.mark.system("adamw")
@pytest.mark.system("adamw", "l2")
def test_l2_decays_less_where_gradients_are_large() -> None:
    """DLN-A.100, MF-A.52: one weight with gradients of ±1, one of ±0.01; AdamW shrinks both alike."""
    left = {}
    for rule in (rules.AdamL2(0.01, weight_decay=0.1), AdamW(0.01, weight_decay=0.1)):
        p = nn.Parameter(torch.ones(1, 2, dtype=torch.float64))
        optimizer = rule.build(nn.ParameterList([p]))
        for t in range(40):
            p.grad = (-1) ** t * torch.tensor([[1.0, 0.01]], dtype=torch.float64)
            optimizer.step()
        left[type(rule)] = p.detach()[0]
    assert left[rules.AdamL2][0] > left[rules.AdamL2][1] + 0.05
    close(left[AdamW][0], left[AdamW][1], loosen=1e6)  # ε beside the small gradient


@pytest.mark.system("adam")
@pytest.mark.system("adam", "generalization")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_adam_and_sgd_gaps_are_reported(seed: int) -> None:
    """DLN-A.99: the gap between test and training error of both; at this size the claim need not hold."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
    gaps = {}
    for rule in (Adam(lr=0.01), SGD(lr=0.3)):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(64, 24), nn.Tanh(), nn.Linear(24, 10))
        descend(rule.build(model), lambda model=model: nn.functional.cross_entropy(model(x[:300]), y[:300]), 60)
        wrong = [(model(x[part]).argmax(1) != y[part]).float().mean().item() for part in (slice(300), slice(300, None))]
        gaps[name(rule)] = wrong[1] - wrong[0]
        assert wrong[0] < 0.08, "it fits the training set"
    assert all(0 < gap < 0.2 for gap in gaps.values()), gaps


@pytest.mark.system("adamw", "sgd-coincides")
def test_for_plain_descent_l2_and_decoupled_decay_are_one() -> None:
    """MF-A.52: θ − η (g + λ θ) is (1 − η λ) θ − η g; and without decay AdamW is Adam."""
    start, g = (torch.randn(5, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1))
    p = nn.Parameter(start.clone())
    p.grad = g
    torch.optim.SGD([p], lr=0.1, weight_decay=0.3).step()
    close(p, (1 - 0.1 * 0.3) * start - 0.1 * g)
    ends = []
    for build in (lambda q: torch.optim.AdamW(q, 0.1, weight_decay=0.0), lambda q: torch.optim.Adam(q, 0.1)):
        q = nn.Parameter(start.clone())
        optimizer = build([q])
        for _ in range(4):
            q.grad = g + q.detach()
            optimizer.step()
        ends.append(q.detach())
    close(*ends)


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


@pytest.mark.system("cosine-annealing")
@pytest.mark.system("cosine-annealing", "any-t")
def test_cosine_is_torchs_closed_form() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50, eta_min=0.001)
    for t in range(51):
        close(torch.tensor(cosine(t, 50, 0.1, 0.001)).double(), torch.tensor(theirs.get_last_lr()[0]).double())
        optimizer.step()
        theirs.step()


@pytest.mark.system("linear-warmup")
@pytest.mark.system("linear-warmup", "wraps", "cosine")
def test_warmup_joins_the_decay_without_a_jump() -> None:
    for schedule in (Cosine(warmup=10), Linear(warmup=10), Constant(warmup=10)):
        factors = [schedule(step, 100) for step in range(100)]
        assert factors[9] == factors[10] == 1.0
        assert max(abs(a - b) for a, b in pairwise(factors)) <= 0.1 + 1e-12
    assert linear_warmup(5, 10, 0.001, 0.1) == pytest.approx(0.0505)
    assert Cosine(floor=0.1)(99, 100) < 0.102
    assert Linear()(50, 100) == pytest.approx(0.5)
    assert math.isclose(Cosine(warmup=0, floor=0.0)(50, 100), 0.5)
