"""One step of the engine is what a hand-written loop does; accumulation, players, averages, faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Move, Task
from descend.engine.distributed import World
from descend.engine.evaluation import score_set
from descend.engine.faults import NotFinite
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.errors import Mistake
from descend.optim.rules import LBFGS, SGD, AdamW
from descend.optim.schedules import Constant, linear_warmup
from tests.close import close
from tests.engine.small import small, train, training


class Repeat:
    """The same batch again and again."""

    def __init__(self, batch: dict[str, Tensor]):
        self.batch = batch

    def __next__(self) -> dict[str, Tensor]:
        return self.batch

    def state_dict(self) -> dict[str, object]:
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        pass


class Game(Task):
    """Two players on one number each: d raises (d - g)^2, g lowers it; `log` tells the order of things."""

    players = ("d", "g")

    def __init__(self) -> None:
        super().__init__()
        self.d, self.g = nn.Linear(2, 1), nn.Linear(2, 1)
        self.log: list[str] = []

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        x = batch["x"]
        yield Move("d", lambda: -(self.d(x) - self.g(x)).square().mean())
        self.log.append("after d")
        yield Move("g", lambda: (self.d(x) - self.g(x)).square().mean())
        self.log.append("after g")

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": (self.d(batch["x"]) - self.g(batch["x"])).flatten()}


def engine(task: nn.Module, rules: dict[str, object], loop: Loop, batch: dict[str, Tensor]) -> Training:
    first = next(iter(task.children()))
    parts = Parts(task, first, Repeat(batch), [batch], rules)  # type: ignore[arg-type]
    return Training(parts, loop, Constant(), World())


@pytest.mark.system("training-loop")
@pytest.mark.system("training-loop", "plain-loop")
def test_a_step_is_that_of_a_plain_loop(tmp_path: Path) -> None:
    recipe = small(tmp_path, clip=0.0)
    ours, parts = training(recipe), recipe.build()
    model, stream = parts.model, parts.stream
    optimizer = AdamW(lr=1e-2).build(model)
    for step in range(5):
        ours.advance()
        batch = next(stream)
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * recipe.schedule(step, recipe.loop.steps)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch["x"]).flatten(0, 1), batch["y"].flatten()).backward()
        optimizer.step()
    for a, b in zip(ours.parts.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.system("gradient-accumulation")
@pytest.mark.system("gradient-accumulation", "large-batch")
def test_accumulated_is_the_full_batch(tmp_path: Path) -> None:
    # float64: Adam divides by the gradient's size, so a gradient of rounding errors only would become a step
    whole, split = (training(small(tmp_path, accumulate=k), torch.float64) for k in (1, 4))
    for _ in range(5):
        a, b = whole.advance(), split.advance()
        close(a["loss"], b["loss"])
    for a, b in zip(whole.parts.model.parameters(), split.parts.model.parameters(), strict=True):
        close(a, b)


@pytest.mark.system("gradient-accumulation")
@pytest.mark.system("gradient-accumulation", "warmup")
def test_accumulation_stretches_the_warmup(tmp_path: Path) -> None:
    """MF-A.93 counts mini-batches, a warmup over k T of them; over T steps here, the rate of a step is the same."""
    k, steps = 4, 3
    run = training(replace(small(tmp_path, accumulate=k), optim=SGD(lr=0.5), schedule=Constant(warmup=steps)))
    rates = []
    for _ in range(5):
        run.advance()
        rates += [group["lr"] for group in run.optims["model"].param_groups[:1]]
    close(torch.tensor(rates), torch.tensor([0.5 * linear_warmup(k * (s + 1), k * steps) for s in range(5)]))
    assert rates[0] < rates[1] < rates[2] == rates[3]


@pytest.mark.system("gradient-accumulation")
@pytest.mark.system("gradient-accumulation", "batch-norm")
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_batch_norm_sees_the_parts(norm: str) -> None:
    """Layer normalization treats examples one by one, so the parts add up; batch normalization does not."""
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    class Normalised(Task):
        players = ("model",)

        def __init__(self) -> None:
            super().__init__()
            made = nn.LayerNorm(3) if norm == "layer" else nn.BatchNorm1d(3)
            self.model = nn.Sequential(nn.Linear(2, 3), made, nn.Tanh(), nn.Linear(3, 1)).double()

        def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
            yield Move("model", lambda: (self.model(batch["x"])[:, 0] - batch["x"].prod(dim=1)).square().mean())

        def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
            return {}

    ends = []
    for pieces in (1, 2):
        torch.manual_seed(0)
        run = engine(Normalised(), {"model": SGD(0.1, 0.0)}, Loop(steps=1, accumulate=pieces), {"x": x})
        run.parts.stream = iter([{"x": piece} for piece in x.chunk(pieces)])  # type: ignore[assignment]
        run.advance()
        ends.append(run.parts.model[0].weight.detach())
    if norm == "layer":
        close(*ends)
    else:
        assert (ends[0] - ends[1]).abs().max() > 1e-4


@pytest.mark.system("training-loop")
@pytest.mark.system("training-loop", "deterministic")
def test_the_seed_decides_and_the_loss_falls(tmp_path: Path) -> None:
    """The same seed gives the same bits, whatever the global random state; another seed gives others."""
    runs = {}
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        torch.manual_seed(len(runs))
        run = training(small(tmp_path, seed=seed, steps=40))
        losses = [run.advance()["loss"] for _ in range(40)]
        assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
        runs[name] = losses, run.parts.model.wte.weight.detach()
    assert runs["one"][0] == runs["again"][0] != runs["other"][0]
    assert torch.equal(runs["one"][1], runs["again"][1])


def test_only_the_moving_player_gets_gradients_and_code_after_yield_runs_after_its_step() -> None:
    torch.manual_seed(0)
    task = Game()
    run = engine(task, {"d": SGD(0.1, 0.0), "g": SGD(0.1, 0.0)}, Loop(steps=1), {"x": torch.ones(4, 2)})
    before = {name: p.clone() for name, p in task.named_parameters()}
    with run.moving("g"):
        assert not any(p.requires_grad for p in task.d.parameters())
    seen = run.advance()
    assert task.log == ["after d", "after g"]
    gap = before["d.weight"].sum() + before["d.bias"] - before["g.weight"].sum() - before["g.bias"]
    close(seen["loss_d"], -gap.square().item())
    close(task.d.bias, before["d.bias"] + 0.1 * 2 * gap)  # d climbs; g had no say in its gradient
    wider = gap + 0.1 * 2 * gap * 3
    close(seen["loss_g"], wider.square().item())  # g's loss is evaluated after d has stepped
    close(task.g.bias, before["g.bias"] + 0.1 * 2 * wider)


def test_two_players_accumulate_in_lockstep() -> None:
    x = torch.arange(16.0).view(8, 2) / 10
    results = []
    for pieces in (1, 4):
        torch.manual_seed(0)
        task = Game()
        rules = {"d": SGD(0.01, 0.0), "g": SGD(0.01, 0.0)}
        run = engine(task, rules, Loop(steps=3, accumulate=pieces), {"x": x})
        parts = iter([{"x": piece} for _ in range(3) for piece in x.chunk(pieces)])
        run.parts.stream = parts  # type: ignore[assignment]
        for _ in range(3):
            run.advance()
        results.append([p.detach().clone() for p in task.parameters()])
    for a, b in zip(*results, strict=True):
        close(a, b)


def test_lbfgs_calls_the_closure_again() -> None:
    class Quadratic(Task):
        players = ("model",)

        def __init__(self) -> None:
            super().__init__()
            self.model, self.calls = nn.Linear(2, 1, bias=False), 0

        def loss(self) -> Tensor:
            self.calls += 1
            w = self.model.weight[0]
            return 50 * (w[0] - 1) ** 2 + (w[1] + 2) ** 2

        def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
            yield Move("model", self.loss)

        def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
            return {}

    task = Quadratic()
    engine(task, {"model": LBFGS(inner=25)}, Loop(steps=1), {}).advance()
    assert task.calls > 2
    close(task.model.weight[0], torch.tensor([1.0, -2.0]))


def test_a_loss_that_is_not_finite_stops_before_the_weights_are_spoilt(tmp_path: Path) -> None:
    run = training(small(tmp_path))
    with torch.no_grad():
        run.parts.model.h[1].mlp.up.bias[0] = float("inf")
    before = run.parts.model.wte.weight.clone()
    with pytest.raises(NotFinite, match=r"'model\.h\.1\.mlp\.up' are not finite.*examples of the batch: \d+, \d+"):
        run.advance()
    assert torch.equal(run.parts.model.wte.weight, before)


def test_the_first_module_of_a_diverging_run_is_named_with_the_last_checkpoint(tmp_path: Path) -> None:
    recipe = replace(small(tmp_path, steps=40, clip=0.0, save_every=1), optim=SGD(lr=1.0), schedule=lambda *_: 1e30)
    with pytest.raises(Mistake, match=r"step \d+: the loss of 'model' is (nan|inf).*checkpoint") as caught:
        train(recipe, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert "module 'model." in str(caught.value)


def test_the_average_follows_its_equation(tmp_path: Path) -> None:
    run = training(small(tmp_path, ema=0.9))
    shadow = run.parts.model.wte.weight.detach().clone()
    for _ in range(3):
        run.advance()
        shadow = torch.lerp(shadow, run.parts.model.wte.weight.detach(), 9 / (run.step + 8))
    live = run.parts.model.wte.weight.detach().clone()
    close(run.weights()["wte.weight"], shadow)
    assert torch.equal(run.parts.model.wte.weight, live)


def test_the_weights_without_the_average_are_scored_beside_it(tmp_path: Path) -> None:
    run = training(small(tmp_path, ema=0.9, raw=True))
    for _ in range(3):
        run.advance()
    scores = run.evaluate()
    assert scores["raw_loss"] == run.score_valid()["loss"] != scores["loss"]
    with run.ema.swap_in():
        assert scores["loss"] == run.score_valid()["loss"]
    with pytest.raises(Mistake, match="--raw compares the average"):
        Loop(raw=True)


@pytest.mark.system("training-loop", "held-out")
def test_scores_are_means_over_examples_whatever_the_batches() -> None:
    task, x = Game(), torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    whole = score_set(task, [{"x": x}])
    uneven = score_set(task, [{"x": x[:1]}, {"x": x[1:]}])
    close(whole["loss"], uneven["loss"])


def test_optimizers_must_be_those_of_the_players() -> None:
    with pytest.raises(ValueError, match="players are"):
        engine(Game(), {"d": SGD()}, Loop(), {"x": torch.ones(1, 2)})
