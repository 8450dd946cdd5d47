"""The forms with ε inside the root: against torch where ε does not matter, and where it does."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from descend.optim.adaptive import AdagradInside, AdamInside, RMSPropInside, UncorrectedAdam, step_ratios
from descend.optim.trajectory import quadratic, trajectory
from tests.close import close

BOWL = quadratic(torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64))
START = torch.tensor([4.0, -3.0], dtype=torch.float64)
PAIRS = {
    "rmsprop": (lambda p: RMSPropInside(p, 0.1, 0.9, 1e-30), lambda p: torch.optim.RMSprop(p, 0.1, 0.9, 1e-30)),
    "adagrad": (lambda p: AdagradInside(p, 0.1, 1e-30), lambda p: torch.optim.Adagrad(p, 0.1, eps=1e-30)),
    "adam": (lambda p: AdamInside(p, 0.1, eps=1e-30), lambda p: torch.optim.Adam(p, 0.1, eps=1e-30)),
    "adamw": (
        lambda p: AdamInside(p, 0.1, eps=1e-30, weight_decay=0.2),
        lambda p: torch.optim.AdamW(p, 0.1, eps=1e-30, weight_decay=0.2),
    ),
}


@pytest.mark.system("adamw", "inside")
@pytest.mark.system("adagrad", "inside")
@pytest.mark.parametrize("slug", [pytest.param(s, id=s, marks=pytest.mark.system(s)) for s in PAIRS])
def test_with_a_vanishing_epsilon_they_are_torchs(slug: str) -> None:
    ours, theirs = PAIRS[slug]
    close(trajectory(ours, BOWL, START, 10).theta, trajectory(theirs, BOWL, START, 10).theta)


def first_step(optimizer: type, g: float, **settings: float) -> float:
    p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    p.grad = torch.full_like(p, g)
    optimizer([p], lr=1.0, **settings).step()
    return -p.item()


@pytest.mark.system("rmsprop")
@pytest.mark.system("rmsprop", "sign")
def test_first_step_of_rmsprop_is_the_sign() -> None:
    """MF-A.50: η sign(g) / √(1 − β₂) as ε → 0; constant gradients then become sign updates."""
    for g in (0.3, -7.0):
        close(first_step(RMSPropInside, g, gamma=0.9, eps=0.0), math.copysign(1 / math.sqrt(0.1), g))
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = RMSPropInside([p], lr=0.01)
    for _ in range(300):
        before = p.detach().clone()
        p.grad = torch.tensor([3.0, -0.2], dtype=torch.float64)
        optimizer.step()
    close((p - before).detach(), torch.tensor([-0.01, 0.01], dtype=torch.float64), loosen=1e3)  # ε beside 0.04


@pytest.mark.system("adadelta")
@pytest.mark.system("adadelta", "rmsprop")
def test_rmsprop_has_adadeltas_denominator() -> None:
    """DLN-A.95: the first Adadelta update is RMSProp's with the rate √ε."""
    p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    p.grad = torch.full_like(p, 0.7)
    torch.optim.Adadelta([p], lr=1.0, rho=0.9, eps=1e-6).step()
    close(-p.item() / math.sqrt(1e-6), first_step(RMSPropInside, 0.7, gamma=0.9, eps=1e-6))


@pytest.mark.system("adam")
@pytest.mark.system("adam", "both-places")
def test_the_place_of_epsilon_matters_for_small_gradients() -> None:
    """MF 8.3.2: at |g| = 1e-4 and ε = 1e-8 the first step is 1/√2 inside, 0.9999 outside."""
    close(first_step(AdamInside, 1e-4), 1 / math.sqrt(2))
    close(first_step(torch.optim.Adam, 1e-4), 1e-4 / (1e-4 + 1e-8))


@pytest.mark.system("adam")
@pytest.mark.system("adam", "uncorrected")
def test_without_correction_the_first_step_is_too_long() -> None:
    close(first_step(UncorrectedAdam, 2.0, eps=0.0) / first_step(torch.optim.Adam, 2.0, eps=0.0), math.sqrt(10))


@pytest.mark.system("adam")
@pytest.mark.system("adam", "uncorrected")
def test_the_correction_vanishes_in_the_long_run() -> None:
    """The corrections tend to 1, so after many steps the two move alike."""
    found = []
    for build in (UncorrectedAdam, torch.optim.Adam):
        p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        optimizer = build([p], lr=0.01, betas=(0.9, 0.95))
        for _ in range(600):
            before = p.item()
            p.grad = torch.ones_like(p)
            optimizer.step()
        found.append(before - p.item())
    close(found[0], found[1])


@pytest.mark.system("adagrad")
@pytest.mark.system("adagrad", "sparse")
def test_rare_features_keep_large_steps() -> None:
    """DLN-A.96: a feature seen once in ten steps moves further at its next gradient than one seen always."""
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = AdagradInside([p], lr=0.1)
    for t in range(51):
        before = p.detach().clone()
        p.grad = torch.tensor([1.0, float(t % 10 == 0)], dtype=torch.float64)
        optimizer.step()
    often, rare = (before - p.detach()).tolist()
    close(rare / often, math.sqrt(51 / 6))


@pytest.mark.system("adam")
@pytest.mark.system("adam", "step-ratio")
def test_the_step_ratio_is_the_step_in_units_of_the_rate() -> None:
    """DLN-A.98: 1 where the gradients agree, about 0.23 where they are noise, 0 where they are 0."""
    torch.manual_seed(0)
    p, unused = (nn.Parameter(torch.zeros(3, 4000, dtype=torch.float64)) for _ in range(2))
    optimizer = torch.optim.Adam([p, unused], lr=0.01)
    assert step_ratios(optimizer) == []
    for _ in range(300):
        before = p.detach().clone()
        noise = torch.randn(4000, dtype=torch.float64)
        p.grad = torch.stack([torch.full_like(noise, -7.0), noise, torch.zeros_like(noise)])
        optimizer.step()
    [ratio] = step_ratios(optimizer)
    close(ratio * -0.01 + 1, p.detach() - before + 1)
    close(ratio[0], torch.full((4000,), -1.0, dtype=torch.float64), loosen=10)  # ε beside 7
    assert abs(ratio[1].square().mean().sqrt() - math.sqrt(0.1 / 1.9)) < 0.02
    assert not ratio[2].any()
