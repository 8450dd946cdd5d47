"""Early stopping on a scripted score: when it stops, what it keeps; on a real fit: smaller weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Move, Task
from descend.data.streams.arrays import InOrder, Shuffled
from descend.engine.fit import Result, fit
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.errors import Mistake
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import SGD

pytestmark = pytest.mark.system("early-stopping")


class Scripted(Task):
    """Each step adds 1 to every weight; the k-th evaluation gives the k-th score of the script."""

    players = ("model",)

    def __init__(self, script: list[float], name: str = "loss"):
        super().__init__()
        self.model = MLP(MLPConfig(inputs=2, hidden=(), outputs=1))
        self.script, self.name = iter(script), name
        for p in self.model.parameters():
            nn.init.zeros_(p)

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        yield Move("model", lambda: -sum((p.sum() for p in self.model.parameters()), torch.zeros(())))

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        train = torch.full((1,), 1.0)
        return {"train_loss": train, self.name: torch.tensor([next(self.script)])}


def stopped(folder: Path, script: list[float], name: str = "loss", **changes: object) -> tuple[Result, float, float]:
    """The result, and the weight in `best` and in `last`: the step at which it was saved."""
    torch.set_num_threads(1)
    task, x = Scripted(script, name), torch.zeros(1, 2)
    loop = Loop(steps=60, batch=1, eval_every=1, save_every=1000, threads=1, **changes)  # type: ignore[arg-type]
    parts = Parts(task, task.model, Shuffled({"x": x}, 1), InOrder({"x": x}), {"model": SGD(lr=1.0, momentum=0.0)})
    run = Run.create(folder / "run", {"name": "scripted"})
    result = fit(parts, loop, lambda step, steps: 1.0, run, Quiet())
    best, last = (MLP.from_pretrained(run.checkpoints / link) for link in ("best", "last"))
    return result, best.layers[0].weight[0, 0].item(), last.layers[0].weight[0, 0].item()


CURVE = [5.0, 4.0, 3.0, 3.5, 2.5, 2.6, 2.7, 2.5, 9.0, 1.0]


@pytest.mark.system("training-loop", "held-out")
@pytest.mark.system("early-stopping", "patience", "best-state")
@pytest.mark.parametrize(
    ("patience", "margin", "stop", "best"),
    [
        (1, 0.0, 4, 3),  # the first evaluation without improvement
        (3, 0.0, 8, 5),  # best + patience; an equal score is no improvement
        (4, 0.0, 9, 5),
        (2, 0.6, 5, 3),  # 2.5 gains only 0.5 on 3.0
        (3, 1.5, 6, 3),  # 4.0 gains too little on 5.0, 3.0 enough
    ],
)
def test_stops_at_best_plus_patience(tmp_path: Path, patience: int, margin: float, stop: int, best: int) -> None:
    result, kept, last = stopped(tmp_path, CURVE, patience=patience, margin=margin)
    assert (result.reason, result.step, result.best_step) == ("patience", stop, best)
    assert result.best == CURVE[best - 1]
    assert (kept, last) == (best, stop)  # the weights of the best step, not of the last


@pytest.mark.system("early-stopping", "best-state")
def test_without_patience_it_runs_on_and_still_keeps_the_best(tmp_path: Path) -> None:
    """The returned score is the least of all that were seen."""
    script = [3.0 + (k - 20) ** 2 for k in range(60)]
    result, kept, _ = stopped(tmp_path, script)
    assert (result.reason, result.step, result.best) == ("finished", 60, min(script))
    assert kept == script.index(min(script)) + 1


def test_a_score_to_maximise(tmp_path: Path) -> None:
    script = [0.1, 0.5, 0.4, 0.55, 0.5, 0.5]
    result, kept, _ = stopped(tmp_path, script, "accuracy", watch="max accuracy", patience=2)
    assert (result.step, result.best_step, kept) == (6, 4, 4)


@pytest.mark.system("early-stopping", "general-benchmark")
def test_a_general_benchmark_can_be_watched(tmp_path: Path) -> None:
    """VOM-B.83: the training loss does not matter; the general one at the stop is at most that of the full run."""
    script = [2.0, 1.8, 1.9, 2.1, 2.4, 2.9]
    result, kept, _ = stopped(tmp_path, script, "general", watch="min general", patience=3)
    assert (result.step, kept) == (5, 2)
    assert result.best is not None
    assert result.best <= script[-1]


@pytest.mark.parametrize("margin", [-0.1, float("nan"), float("inf")])
def test_margin_is_a_gain(margin: float) -> None:
    with pytest.raises(Mistake, match="--margin"):
        Loop(margin=margin)


class Regression(Task):
    """Squared error of a linear model."""

    players = ("model",)

    def __init__(self, inputs: int):
        super().__init__()
        self.model = MLP(MLPConfig(inputs=inputs, hidden=(), outputs=1))
        for p in self.model.parameters():
            nn.init.zeros_(p)

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        yield Move("model", lambda: self.errors(batch).mean())

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": self.errors(batch)}

    def errors(self, batch: dict[str, Tensor]) -> Tensor:
        return (self.model(batch["x"])[:, 0] - batch["y"]).square()


@pytest.mark.system("early-stopping", "smaller-weights")
def test_stopping_early_keeps_weights_small(tmp_path: Path) -> None:
    """Linear regression from 0 with as many weights as examples: it overfits, and the best weights are the smaller."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(120, 30, generator=random)
    y = x[:, 0] + 2 * torch.randn(120, generator=random)
    train, valid = {"x": x[:30], "y": y[:30]}, {"x": x[30:], "y": y[30:]}
    found = {}
    for name, patience, steps in (("early", 3, 200), ("full", 0, 200)):
        torch.set_num_threads(1)
        task = Regression(30)
        parts = Parts(task, task.model, Shuffled(train, 30), InOrder(valid), {"model": SGD(lr=0.05, momentum=0.0)})
        loop = Loop(steps=steps, batch=30, eval_every=2, save_every=1000, patience=patience, threads=1)
        run = Run.create(tmp_path / name, {"name": name})
        result = fit(parts, loop, lambda step, steps: 1.0, run, Quiet())
        found[name] = result, {k: MLP.from_pretrained(run.checkpoints / k) for k in ("best", "last")}
    (early, models), (full, longer) = found["early"], found["full"]
    assert early.reason == "patience"
    assert early.step == early.best_step + 2 * 3 < full.step
    with torch.no_grad():
        errors = [float((m(x[30:])[:, 0] - y[30:]).square().mean()) for m in (models["best"], longer["last"])]
    assert errors[0] < 0.8 * errors[1]
    assert abs(errors[0] - early.best) < 1e-4
    norms = [float(m.layers[0].weight.detach().norm()) for m in (models["best"], longer["last"])]
    assert norms[0] < 0.8 * norms[1]
