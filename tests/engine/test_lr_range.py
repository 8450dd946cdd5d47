"""The learning-rate finder: the book's rates, a quadratic whose limit is known, and nothing left behind."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.lr_range import curve, rate, smooth, sweep
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.errors import Mistake
from descend.optim.rules import LBFGS, SGD, AdamW
from descend.optim.schedules import Constant
from tests.close import close
from tests.engine.small import small, training

pytestmark = pytest.mark.system("learning-rate-finder")


class Bowl(Task):
    """½ Λ θ²: gradient descent diverges above 2/Λ."""

    players = ("model",)

    def __init__(self, curvature: float):
        super().__init__()
        self.model = nn.Linear(1, 1, bias=False).double()
        nn.init.ones_(self.model.weight)
        self.curvature = curvature

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: 0.5 * self.curvature * self.model.weight.square().sum())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": batch["x"]}


class Nothing:
    """A stream of the same batch."""

    def __next__(self) -> Batch:
        return {"x": torch.zeros(1)}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def bowl(curvature: float, rule: Any = None) -> Training:
    task, rules = Bowl(curvature), {"model": rule or SGD(lr=0.1, momentum=0.0)}
    return Training(Parts(task, task.model, Nothing(), [], rules), Loop(threads=1), Constant(), World())


@pytest.mark.system("learning-rate-finder", "sweep")
def test_rates_of_the_book() -> None:
    close(torch.tensor([rate(t, 100, 1e-5, 1.0) for t in (0, 20, 50, 100)], dtype=torch.float64),
          torch.tensor([1e-5, 1e-4, 0.00316227766, 1.0], dtype=torch.float64), loosen=10)  # fmt: skip


@pytest.mark.system("learning-rate-finder", "quadratic")
@pytest.mark.parametrize("curvature", [0.5, 4.0, 30.0])
def test_a_quadratic_turns_near_two_over_its_curvature(curvature: float) -> None:
    limit = 2 / curvature
    found = sweep(bowl(curvature), low=limit / 1e4, high=limit * 1e2, points=160)
    assert found.turn is not None
    assert limit / 3 < found.turn < limit * 1.5
    assert found.suggestion is not None
    assert limit / 1e3 < found.suggestion <= found.turn / 10 < limit
    assert found.ended == "diverged"
    raw = min(range(len(found.losses)), key=found.losses.__getitem__)
    assert found.rates[raw] == pytest.approx(limit, rel=0.2)  # |1 − ηΛ| < 1 exactly below 2/Λ
    assert found.rates[0] == pytest.approx(limit / 1e4)


@pytest.mark.system("learning-rate-finder", "restored")
def test_everything_is_restored(tmp_path: Path) -> None:
    """Weights, optimizer, average, data position, step, random state: the next step is as if nothing had happened."""
    recipe = replace(small(tmp_path, ema=0.9), optim=AdamW(lr=1e-3))
    ours, twin = training(recipe), training(recipe)
    for _ in range(2):
        ours.advance(), twin.advance()
    before = copy.deepcopy(ours.state_dict())
    random = torch.get_rng_state()
    schedule = ours.schedule
    found = sweep(ours, low=1e-5, high=1.0, points=12)
    assert len(found.losses) > 3
    assert len(set(found.losses)) == len(found.losses)  # it did train
    assert ours.schedule is schedule
    assert torch.equal(torch.get_rng_state(), random)
    after = ours.state_dict()
    assert all(torch.equal(after["task"][k], v) for k, v in before["task"].items())
    assert all(torch.equal(a, b) for a, b in zip(after["ema"]["shadow"], before["ema"]["shadow"], strict=True))
    assert after["stream"] == before["stream"]
    assert after["step"] == 2
    for _ in range(2):
        assert ours.advance() == twin.advance()


def test_a_loss_that_is_not_finite_ends_the_sweep_and_is_restored() -> None:
    found = bowl(1e200)
    ended = sweep(found, low=1e-3, high=1e3, points=20)
    assert ended.ended in ("not finite", "diverged")
    assert ended.suggestion is None
    [weight] = found.task.parameters()
    assert torch.equal(weight, torch.ones(1, 1, dtype=torch.float64))


@pytest.mark.system("learning-rate-finder", "sweep")
def test_the_rule() -> None:
    rates = [rate(t, 99, 1e-6, 10.0) for t in range(100)]
    fall = [3.0 - 2.0 / (1 + (1e-3 / r) ** 2) + (0.0 if r < 0.1 else (r / 0.1 - 1) * 0.5) for r in rates]
    found = curve(rates, fall, 100, "range")
    assert found.steepest == pytest.approx(1e-3, rel=0.25)  # the logistic curve is steepest in its middle
    assert found.steepest is not None
    assert found.turn is not None
    assert 0.01 < found.turn < 0.15
    assert found.suggestion == min(found.steepest, found.turn / 10)
    assert curve(rates, [*range(100)], 100, "range").suggestion is None  # it only rose
    falling = curve(rates, [-t for t in range(100)], 100, "range")
    assert falling.turn is None  # it still falls at the end
    assert falling.suggestion == falling.steepest


def test_smoothing_does_not_lag() -> None:
    line = [3.0 - 0.1 * i for i in range(50)]
    close(torch.tensor(smooth(line, 4.0)), torch.tensor(line))
    noise = torch.randn(200, generator=torch.Generator().manual_seed(0)).tolist()
    assert torch.tensor(smooth(noise, 8.0))[20:-20].std() < 0.4


@pytest.mark.parametrize(
    ("change", "said"),
    [({"low": 0.0}, "--low above 0"), ({"low": 1.0, "high": 0.1}, "--high above"), ({"points": 5}, "at least 10")],
)
def test_mistakes(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Mistake, match=said):
        sweep(bowl(1.0), **change)


def test_what_has_no_rate_to_find() -> None:
    with pytest.raises(Mistake, match="line search"):
        sweep(bowl(1.0, LBFGS()))
