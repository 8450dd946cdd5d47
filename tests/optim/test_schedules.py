"""Schedules: torch's schedulers as oracle, the books' closed forms, warmup around any decay, plateaus."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import lr_scheduler

from descend.errors import Mistake
from descend.optim.schedules import (
    Constant,
    Cosine,
    Exponential,
    Linear,
    Noam,
    Plateau,
    Polynomial,
    Step,
    WarmRestarts,
    Warmup,
    Watch,
    cosine,
    exponential,
    growing_periods,
    linear,
    noam,
    polynomial,
    step_decay,
    torch_scheduler,
    warm_restarts,
)
from tests.close import close

ETA = 0.1
DECAYS = [Constant(), Linear(), Cosine(), Polynomial(), Exponential(), Step(30), WarmRestarts((20, 40)), Noam()]


def sgd(lr: float = ETA) -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=lr)


def rates(
    make: Callable[[torch.optim.Optimizer], lr_scheduler.LRScheduler], steps: int, lr: float = ETA
) -> list[float]:
    """The rates of torch's scheduler, step by step."""
    optimizer = sgd(lr)
    scheduler, found = make(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def agree(ours: list[float], theirs: list[float]) -> None:
    close(torch.tensor(ours, dtype=torch.float64), torch.tensor(theirs, dtype=torch.float64))


@pytest.mark.system("elementary-decay-schedules")
@pytest.mark.system("elementary-decay-schedules", "closed-forms")
def test_elementary_decays_are_torchs() -> None:
    steps = range(60)
    agree([ETA * Constant()(t, 60) for t in steps], [ETA] * 60)
    theirs = rates(lambda o: lr_scheduler.LinearLR(o, 1.0, 0.25, total_iters=60), 60)
    agree([linear(t, 60, ETA, 0.25 * ETA) for t in steps], theirs)
    agree([ETA * Linear(floor=0.25)(t, 60) for t in steps], theirs)
    theirs = rates(lambda o: lr_scheduler.ExponentialLR(o, math.exp(-0.05)), 60)
    agree([exponential(t, 0.05, ETA) for t in steps], theirs)
    agree([ETA * Exponential(0.05)(t, 60) for t in steps], theirs)


@pytest.mark.system("elementary-decay-schedules")
@pytest.mark.system("elementary-decay-schedules", "polynomial")
def test_polynomial_is_the_inverse_power_and_not_torchs_polynomial() -> None:
    ours = [polynomial(t, 0.5, ETA) for t in range(60)]
    agree(ours, [ETA / math.sqrt(1 + t) for t in range(60)])
    agree([ETA * Polynomial(0.5)(t, 60) for t in range(60)], ours)
    theirs = rates(lambda o: lr_scheduler.PolynomialLR(o, total_iters=60, power=0.5), 60)
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) > 0.05


@pytest.mark.system("elementary-decay-schedules")
@pytest.mark.system("elementary-decay-schedules", "polynomial")
def test_robbins_and_monro() -> None:
    """MF-A.45 for α = 1: Σ η grows like log T without end, Σ η² stays below π²/6; for α = 0.3 it does not."""
    t = torch.arange(200_000, dtype=torch.float64)
    eta = torch.tensor([polynomial(x, 1.0) for x in range(2000)], dtype=torch.float64)
    close(eta, 1 / (1 + t[:2000]))
    total, squares = (1 / (1 + t)).cumsum(0), (1 / (1 + t)).square().cumsum(0)
    assert total[-1] - total[1999] == pytest.approx(math.log(100), abs=1e-2)
    assert squares[-1] < math.pi**2 / 6
    slow = sum(polynomial(x, 0.3) ** 2 for x in range(2000))
    assert sum(polynomial(x, 0.3) ** 2 for x in range(20_000)) > 2 * slow


@pytest.mark.system("step-decay")
@pytest.mark.system("step-decay", "closed-form", "period")
def test_step_decay_is_torchs() -> None:
    """In steps; a period of 3 epochs of 7 steps is one of 21."""
    theirs = rates(lambda o: lr_scheduler.StepLR(o, 21, gamma=0.1), 100)
    agree([step_decay(t, 3 * 7, 0.1, ETA) for t in range(100)], theirs)
    agree([ETA * Step(21, 0.1)(t, 100) for t in range(100)], theirs)


@pytest.mark.system("cosine-annealing")
@pytest.mark.system("cosine-annealing", "end-points")
def test_cosine_end_points_and_midpoint() -> None:
    assert [cosine(t, 100, 0.1, 0.001) for t in (0, 50, 100)] == pytest.approx([0.1, 0.0505, 0.001])
    assert cosine(130, 100, 0.1, 0.001) == pytest.approx(0.001)  # it stays at the floor


@pytest.mark.system("cosine-warm-restarts")
@pytest.mark.system("cosine-warm-restarts", "periods")
@pytest.mark.parametrize("times", [1, 2, 3])
def test_restarts_without_decay_are_torchs(times: int) -> None:
    theirs = rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 10, times, eta_min=0.001), 120)
    periods = growing_periods(10, times, restarts=4)
    agree([warm_restarts(t, periods, 1.0, ETA, 0.001) for t in range(120)], theirs)
    agree([ETA * WarmRestarts(periods, floor=0.01)(t, 120) for t in range(120)], theirs)


@pytest.mark.system("cosine-warm-restarts")
@pytest.mark.system("cosine-warm-restarts", "gamma")
def test_each_restart_is_lower_by_gamma_and_the_last_period_is_repeated() -> None:
    schedule = WarmRestarts((10, 20), gamma=0.5, floor=0.01)
    assert [schedule(t, 0) for t in (0, 10, 30, 50, 70)] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert [schedule(t, 0) for t in (5, 20, 40)] == pytest.approx([(top + 0.01) / 2 for top in (1, 0.5, 0.25)])
    found = [schedule(t, 0) for t in range(400)]
    assert min(found) >= 0.01  # also when γ^i has fallen below it
    assert [t for t, (a, b) in enumerate(pairwise(found), 1) if b > a + 1e-12][:4] == [10, 30, 50, 70]
    with pytest.raises(Mistake, match=r"floor 0\.5"):
        WarmRestarts((10, 20), gamma=0.5, floor=0.5)


@pytest.mark.system("inverse-sqrt-warmup")
@pytest.mark.system("inverse-sqrt-warmup", "peak", "scheduler")
def test_noam() -> None:
    """VOM 12.5: linear to the peak (d w)^−½ = 6.988e-4 at 4000, then t^−½; with torch's scheduler and lr = 1."""
    assert noam(4000, 512, 4000) == pytest.approx((512 * 4000) ** -0.5) == pytest.approx(6.98771243e-4)
    assert noam(3999, 512, 4000) < noam(4000, 512, 4000) > noam(4001, 512, 4000)
    assert noam(2000, 512, 4000) == pytest.approx(2 * noam(1000, 512, 4000))
    assert noam(16000, 512, 4000) == pytest.approx(noam(4000, 512, 4000) / 2)
    theirs = rates(lambda o: torch_scheduler(o, Noam(512, 50), 100), 100, lr=1.0)
    agree([noam(t, 512, 50) for t in range(1, 101)], theirs)
    assert max(theirs) == theirs[49]


@pytest.mark.system("linear-warmup")
@pytest.mark.system("linear-warmup", "wraps")
@pytest.mark.system("elementary-decay-schedules")
@pytest.mark.system("step-decay")
@pytest.mark.system("cosine-warm-restarts")
@pytest.mark.parametrize("decay", DECAYS, ids=lambda d: type(d).__name__)
def test_warmup_wraps_any_decay_without_a_jump(decay: Callable[[int, int], float]) -> None:
    """A straight rise to where the decay starts, then the decay itself over the steps that are left."""
    found = [Warmup(10, decay)(t, 100) for t in range(100)]
    start = decay(0, 90)
    agree(found[:10], [start * (t + 1) / 10 for t in range(10)])
    agree(found[10:], [decay(t, 90) for t in range(90)])
    assert found[9] == pytest.approx(found[10])
    assert Warmup(0, decay)(7, 100) == decay(7, 100)


@pytest.mark.system("linear-warmup")
@pytest.mark.system("linear-warmup", "cosine")
def test_warmup_in_the_schedule_is_the_wrapped_one() -> None:
    for own, wrapped in (
        (Cosine(10, 0.2), Cosine(0, 0.2)),
        (Linear(10, 0.2), Linear(0, 0.2)),
        (Constant(10), Constant()),
    ):
        agree([own(t, 60) for t in range(60)], [Warmup(10, wrapped)(t, 60) for t in range(60)])


@pytest.mark.system("plateau-decay-on-map")
@pytest.mark.system("plateau-decay-on-map", "patience")
@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5]), min_size=1, max_size=20),
    st.integers(1, 4),
    st.booleans(),
)
def test_plateau_is_torchs(scores: list[float], patience: int, higher: bool) -> None:
    """ReduceLROnPlateau counts one evaluation less; no threshold, no cooldown."""
    optimizer, rule, watch = sgd(1.0), Plateau(factor=0.5, patience=patience, floor=0.05), Watch()
    theirs = lr_scheduler.ReduceLROnPlateau(
        optimizer, "max" if higher else "min", factor=0.5, patience=patience - 1, threshold=0.0, min_lr=0.05
    )
    for score in scores:
        theirs.step(score)
        watch = rule.observe(watch, score, higher)
        assert watch.factor == pytest.approx(optimizer.param_groups[0]["lr"])


@pytest.mark.system("plateau-decay-on-map")
@pytest.mark.system("plateau-decay-on-map", "patience")
def test_a_cut_comes_after_the_patience_only() -> None:
    """MF-C.80 on mAP: larger is better; a gain of no more than the margin, and NaN, is no gain."""
    rule, watch, factors = Plateau(factor=0.1, patience=3), Watch(), []
    for score in (0.30, 0.31, 0.31, 0.25, 0.30, 0.31, 0.40, 0.1, 0.1):
        watch = rule.observe(watch, score, higher=True)
        factors.append(watch.factor)
    assert factors == [1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert rule.observe(Watch(0.3, 2), 0.35, True, margin=0.1).factor == 0.1
    assert rule.observe(Watch(0.3, 2), 0.35, True).factor == 1
    assert rule.observe(Watch(None, 0), math.nan, True) == Watch(None, 1)
    assert rule(5, 10) == Plateau(around=Cosine())(0, 10) == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Polynomial(0),
        lambda: Polynomial(1.5),
        lambda: Exponential(-1),
        lambda: Step(0),
        lambda: Step(10, 1.0),
        lambda: WarmRestarts(()),
        lambda: WarmRestarts((0,)),
        lambda: Noam(warmup=0),
        lambda: Warmup(-1),
        lambda: Warmup(5, Plateau()),
        lambda: Plateau(factor=1.0),
        lambda: Plateau(patience=0),
        lambda: Plateau(around=Plateau()),
    ],
)
def test_bad_values_are_refused_in_one_line(make: Callable[[], object]) -> None:
    with pytest.raises(Mistake) as caught:
        make()
    assert "\n" not in str(caught.value)
