"""Spikes in a run: told, left out, or gone back from; with the bits of a run that was never interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Move, Task
from descend.data.streams.arrays import InOrder, Shuffled
from descend.engine import checkpoint
from descend.engine.distributed import World
from descend.engine.fit import fit
from descend.engine.loop import Loop
from descend.engine.monitor import LOGGED, MOST, Monitor
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.engine.training import Training
from descend.errors import Mistake
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import SGD, AdamW
from descend.optim.schedules import Constant
from tests.close import close

PLACE = 100  # the step whose batch is spoilt
LOOP = Loop(steps=160, batch=8, eval_every=40, save_every=40, seed=1, threads=1)


class Regression(Task):
    """y = X w, one batch of which is a thousand times too large."""

    players = ("model",)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = MLP(MLPConfig(inputs=3, hidden=(), outputs=1))

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        yield Move("model", lambda: (self.model(batch["x"]) - batch["y"]).square().mean())

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": (self.model(batch["x"]) - batch["y"]).square().mean(-1)}


class Spoilt:
    """A stream, the batches of which are spoilt at some places."""

    def __init__(self, places: tuple[int, ...] = (PLACE,)):
        chance = torch.Generator().manual_seed(3)
        x = torch.randn(64, 3, generator=chance)
        y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.1 * torch.randn(64, 1, generator=chance)
        self.inner = Shuffled({"x": x, "y": y}, 8, seed=0)
        self.valid = InOrder({"x": x, "y": y}, 64)
        self.at, self.places = 0, places

    def __iter__(self) -> Spoilt:
        return self

    def __next__(self) -> dict[str, Tensor]:
        batch, self.at = next(self.inner), self.at + 1
        return {**batch, "y": 1000 * batch["y"]} if self.at in self.places else batch

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
        self.at = state["at"]


def parts(places: tuple[int, ...] = (PLACE,), rule: Any = None) -> Parts:
    task, stream = Regression(), Spoilt(places)
    return Parts(task, task.model, stream, stream.valid, {"model": rule or SGD(lr=0.05)}, units_per_batch=8)


def train(folder: Path, places: tuple[int, ...] = (PLACE,), **changes: Any) -> tuple[Parts, Run]:
    made, run, loop = parts(places), Run.create(folder, {"name": "spoilt"}), replace(LOOP, **changes)
    fit(made, loop, Constant(), run, Quiet())
    return made, run


def spikes(run: Run) -> list[tuple[int, str]]:
    return [(line["step"], line["said"]) for line in run.lines() if line.get("finding") == "spike"]


def loss(made: Parts) -> float:
    with torch.no_grad():
        return float(next(iter(made.task.score(next(iter(made.valid))).values())).mean())


def weights(made: Parts) -> Tensor:
    return torch.cat([p.detach().flatten() for p in made.task.parameters()])


@pytest.mark.system("training-monitoring", "planted-spike")
def test_a_spike_is_logged_at_its_step(tmp_path: Path) -> None:
    _, run = train(tmp_path / "run")
    found = [said for step, said in spikes(run) if step == PLACE]
    assert len(found) == 2
    assert "step 100: the loss jumped to" in found[0]
    assert "step 100: the gradient norm jumped to" in found[1]
    assert all(said.endswith("; training went on") for said in found)
    assert all(step >= PLACE for step, _ in spikes(run))


@pytest.mark.system("training-monitoring", "no-false-alarm")
def test_sound_training_has_none(tmp_path: Path) -> None:
    assert spikes(train(tmp_path / "run", places=())[1]) == []


@pytest.mark.system("training-monitoring", "no-false-alarm")
@pytest.mark.parametrize("action", ["off", "tell", "skip", "rollback"])
def test_without_a_spike_nothing_changes(tmp_path: Path, action: str) -> None:
    assert torch.equal(weights(train(tmp_path / "a", (), spikes=action)[0]), weights(train(tmp_path / "b", ())[0]))


@pytest.mark.system("training-monitoring", "skip")
def test_a_step_that_is_left_out_is_that_of_a_run_that_never_saw_its_batch(tmp_path: Path) -> None:
    """A loop written out, without the batch."""
    made, run = train(tmp_path / "run", spikes="skip")
    plain, stream = Regression(), Spoilt()
    rule = torch.optim.SGD(plain.parameters(), 0.05, 0.9)
    for step in range(1, LOOP.steps + 1):
        batch = next(stream)
        if step != PLACE:
            rule.zero_grad()
            (plain.model(batch["x"]) - batch["y"]).square().mean().backward()
            rule.step()
    close(weights(made), torch.cat([p.detach().flatten() for p in plain.parameters()]))
    assert [step for step, _ in spikes(run)] == [PLACE, PLACE]
    assert spikes(run)[0][1].endswith("; this step was left out")


@pytest.mark.system("training-monitoring", "rollback")
def test_going_back_is_going_on_from_the_checkpoint_with_the_data_after_the_spike(tmp_path: Path) -> None:
    """Weights and moments are those of step 80 when step 101 begins: a training put together by hand."""
    made = parts(rule=AdamW(lr=0.05))
    run = Run.create(tmp_path / "run", {"name": "spoilt"})
    fit(made, replace(LOOP, spikes="rollback"), Constant(), run, Quiet())
    other = Training(parts((), rule=AdamW(lr=0.05)), LOOP, Constant(), World())
    for _ in range(80):
        other.advance()
    for _ in range(PLACE - 80):
        next(other.parts.stream)
    for _ in range(LOOP.steps - PLACE):
        other.advance()
    assert torch.equal(weights(made), weights(other.parts))
    assert spikes(run)[0][1].endswith("back to the weights of step-000080, on with the data after this step")


@pytest.mark.system("training-monitoring", "rollback")
def test_it_ends_better_for_it(tmp_path: Path) -> None:
    """The batch comes shortly before the end: who goes on has not recovered."""
    places, short = (150,), {"steps": 152}
    end = {action: loss(train(tmp_path / action, places, spikes=action, **short)[0]) for action in ("tell", "rollback")}
    undisturbed = loss(train(tmp_path / "sound", (), **short)[0])
    assert end["rollback"] < 2 * undisturbed
    assert end["tell"] > 100 * undisturbed


@pytest.mark.system("training-monitoring", "rollback")
@pytest.mark.parametrize("action", ["tell", "skip", "rollback"])
@pytest.mark.parametrize("cut", [95, 105])
def test_a_resume_has_the_same_bits(tmp_path: Path, action: str, cut: int) -> None:
    """Cut before and after the spike, and resumed from the last checkpoint (step 80)."""
    whole, run = train(tmp_path / "whole", spikes=action)
    folder, loop = tmp_path / "cut", replace(LOOP, spikes=action)
    Run.create(folder, {"name": "spoilt"})
    part = parts()
    part.stream.places = (PLACE,)  # type: ignore[attr-defined]

    class Stop(Exception):
        pass

    class Cutting(Quiet):
        def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None:
            if step == cut:
                raise Stop

    with pytest.raises(Stop):
        fit(part, loop, Constant(), Run(folder), Cutting())
    again = parts()
    fit(again, loop, Constant(), Run(folder), Quiet(), resume=True)
    assert torch.equal(weights(whole), weights(again))
    assert spikes(Run(folder)) == spikes(run)
    assert (
        checkpoint.load(folder / "checkpoints" / "last")[1]["monitor"]
        == checkpoint.load(tmp_path / "whole" / "checkpoints" / "last")[1]["monitor"]
    )


def test_before_the_first_checkpoint_the_step_is_left_out(tmp_path: Path) -> None:
    made, run = train(tmp_path / "a", (35,), spikes="rollback")
    assert torch.equal(weights(made), weights(train(tmp_path / "b", (35,), spikes="skip")[0]))
    assert spikes(run)[0][1].endswith("; there is no checkpoint to go back to yet")


def test_nobody_goes_back_for_ever() -> None:
    monitor = Monitor("rollback")
    assert [monitor.may_go_back(80) for _ in range(MOST + 2)] == [True] * MOST + [False] * 2
    assert monitor.may_go_back(120)


def test_not_all_of_very_many_are_logged() -> None:
    monitor = Monitor("tell")
    told = 0
    for i in range(40 * LOGGED):
        monitor.look("", 1.0 if i % 100 else 1000.0 ** (1 + i // 1000), 1.0)
        told += len(monitor.report(i, "x"))
    assert told <= LOGGED


def test_players_have_curves_of_their_own() -> None:
    monitor = Monitor("tell")
    for _ in range(40):
        monitor.look("d", 1.0, 1.0)
        monitor.look("g", 100.0, 1.0)
    assert monitor.look("d", 100.0, 1.0)
    assert [one.said for one in monitor.found] == ["the loss of d jumped to 100 from about 1"]


@pytest.mark.system("training-monitoring", "learning-curves")
def test_every_step_and_every_evaluation_is_recorded(tmp_path: Path) -> None:
    """As many losses as steps, as many scores as evaluations; 1,000 points of a long run."""
    _, run = train(tmp_path / "run", ())
    lines = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, LOOP.steps + 1))
    assert [line["step"] for line in lines if "valid" in line] == [40, 80, 120, 160]
    assert len(run.metrics()["loss"]) == LOOP.steps
    losses = np.array([line["loss"] for line in lines if "loss" in line])
    assert losses[-20:].mean() < 0.1 * losses[:5].mean()
    _, long = train(tmp_path / "long", (), steps=2000, eval_every=1000, save_every=1000)
    assert len([line for line in long.lines() if "loss" in line]) == 1000


def test_an_unknown_action_is_named() -> None:
    with pytest.raises(Mistake, match="--spikes jump: choose off, tell, skip, rollback"):
        Loop(spikes="jump")


def test_lbfgs_looks_once_a_step() -> None:
    """A line search evaluates the loss many times; only the first one of a step is a point of the curve."""
    from descend.optim.rules import LBFGS

    training = Training(parts((), rule=LBFGS()), LOOP, Constant(), World())
    for _ in range(5):
        training.advance()
    assert {len(series.values) for series in training.monitor.series.values()} == {5}
    assert isinstance(training.task, nn.Module)


@pytest.mark.system("training-monitoring", "doctor")
def test_the_display_names_a_spike_once(tmp_path: Path) -> None:
    """Its echoes in the steps after it are not told."""
    said: list[str] = []

    class Listening(Quiet):
        def message(self, text: str) -> None:
            said.append(text)

    made = parts()
    fit(made, LOOP, Constant(), Run.create(tmp_path / "run", {"name": "spoilt"}), Listening())
    assert len(said) == 2
    assert all(text.startswith("step 100: the ") for text in said)
    assert Run(tmp_path / "run").metrics()["loss"][PLACE]  # the table of metrics has no lines of warnings
