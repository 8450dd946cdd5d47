"""float32 or bfloat16: what `auto` takes and from what, and that a run in bfloat16 learns, resumes and is judged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import nn

from descend import recipes
from descend.contracts import Batch, Move
from descend.engine import checkpoint, precision
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.precision import Products, choose_precision
from descend.engine.training import Training
from descend.models.gpt2 import GPT2
from descend.nn.mlp import MLP
from descend.optim.book_rules import FletcherReeves
from descend.optim.rules import LBFGS, SGD, AdamW
from descend.optim.schedules import Constant
from tests.engine.small import small, train, training, weights

CPU = torch.device("cpu")
FAST, SLOW = Products(100.0, 200.0), Products(100.0, 130.0)


class Numbers:
    """Batches of a fixed size, counted."""

    def __init__(self, examples: int, width: int) -> None:
        self.shape, self.at = (examples, width), 0

    def __next__(self) -> Batch:
        self.at += 1
        return {"x": torch.full(self.shape, float(self.at))}

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


class Squares(nn.Module):
    """Make a linear layer's output small."""

    players: tuple[str, ...] = ("model",)
    frozen: tuple[str, ...] = ()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.model = nn.Linear(width, width, bias=False)

    def moves(self, batch: Batch) -> Any:
        yield Move("model", lambda: self.model(batch["x"]).square().mean())


def parts(width: int = 1024, examples: int = 512, **changes: Any) -> Parts:
    """512 · 1024² = 5.4e8 multiply-adds."""
    values = {"optims": {"model": AdamW()}} | changes
    task = Squares(width)
    return Parts(task=task, model=task.model, stream=Numbers(examples, width), valid=[], **values)  # type: ignore[arg-type]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend that the products of this machine were measured so."""
    return lambda found: monkeypatch.setattr(precision, "measure_once", lambda threads: found)


def test_auto_takes_bfloat16_where_its_products_are_clearly_faster(measured: Any) -> None:
    measured(FAST)
    assert choose_precision(Loop(), parts(), CPU) == torch.bfloat16
    measured(SLOW)
    assert choose_precision(Loop(), parts(), CPU) == torch.float32


def test_a_choice_of_the_user_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "measure_once", None)  # calling it would fail
    assert choose_precision(Loop(precision="bfloat16"), parts(width=4), CPU) == torch.bfloat16
    assert choose_precision(Loop(precision="float32"), parts(), CPU) == torch.float32


@pytest.mark.parametrize(
    "built",
    [
        lambda: parts(width=300),  # 90,000 parameters
        lambda: parts(examples=400),  # 4.2e8 multiply-adds
        lambda: parts(optims={"model": LBFGS()}),
        lambda: parts(optims={"model": FletcherReeves()}),
        lambda: parts(optims={"d": SGD(), "g": SGD()}),
    ],
    ids=["small model", "small step", "L-BFGS", "conjugate gradients", "two players"],
)
def test_auto_stays_in_float32(built: Any, measured: Any) -> None:
    measured(FAST)
    assert choose_precision(Loop(), built(), CPU) == torch.float32


def test_auto_leaves_other_types_of_weights_alone(measured: Any) -> None:
    measured(FAST)
    made = parts()
    made.task.double()
    assert choose_precision(Loop(), made, CPU) == torch.float32


def test_work_is_counted_over_a_whole_step_and_the_stream_stands_where_it_stood() -> None:
    made = parts(width=64, examples=8)
    made.task.train()
    assert precision.count_work(Loop(), made, CPU) == 8 * 64**2
    assert precision.count_work(Loop(accumulate=3), made, CPU) == 3 * 8 * 64**2
    assert made.stream.state_dict() == {"at": 0}
    assert made.task.training


def test_the_lstm_counts() -> None:
    made = parts(width=64, examples=8)
    lstm = nn.LSTM(64, 32)
    made.task.moves = lambda batch: iter([Move("model", lambda: lstm(batch["x"][:, None])[0].mean())])  # type: ignore[method-assign]
    assert precision.count_work(Loop(), made, CPU) == 8 * 4 * 32 * (64 + 32)


class TestCache:
    """The measurement is kept in the user's cache folder."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        self.path, self.times = tmp_path / "descend" / "products.json", 0
        monkeypatch.setattr(precision, "measure_products", self.measure)
        precision.measure_once.cache_clear()
        yield
        precision.measure_once.cache_clear()

    def measure(self) -> Products:
        self.times += 1
        return FAST

    def again(self, threads: int = 2) -> Products:
        """As another process would ask."""
        precision.measure_once.cache_clear()
        return precision.measure_once(threads)

    def test_it_is_measured_once_for_each_number_of_threads(self) -> None:
        assert [self.again(), self.again(), self.again(1), self.again()] == [FAST] * 4
        assert self.times == 2
        (first, second) = json.loads(self.path.read_text())
        assert torch.__version__ in first
        assert first.endswith("2 threads")
        assert second.endswith("1 threads")

    @pytest.mark.parametrize("content", ["", "{", "[1, 2]", '{"a": 3}', '{"a": [1]}', '{"a": ["x", "y"]}', "null"])
    def test_a_damaged_file_is_measured_again_and_replaced(self, content: str) -> None:
        self.path.parent.mkdir()
        self.path.write_text(content)
        assert self.again() == FAST
        assert list(json.loads(self.path.read_text()).values()) == [list(FAST)]

    def test_a_folder_that_cannot_be_written_costs_the_measurement_only(self) -> None:
        self.path.parent.write_text("a file where the folder should be")
        assert [self.again(), self.again()] == [FAST] * 2
        assert self.times == 2


def test_products_are_measured() -> None:
    found = precision.measure_products(1)
    assert all(1e6 < speed < 1e15 for speed in found)


def test_a_run_goes_on_in_the_precision_it_began_with(measured: Any) -> None:
    """Also on a machine that would choose otherwise."""
    measured(FAST)
    first = Training(parts(), Loop(), Constant(), World())
    assert first.state_dict()["precision"] == "bfloat16"
    measured(SLOW)
    second = Training(parts(), Loop(), Constant(), World())
    assert second.dtype == torch.float32
    second.load_state_dict(first.state_dict())
    assert second.dtype == torch.bfloat16


@pytest.mark.parametrize("changes", [{}, {"accumulate": 2}], ids=["plain", "accumulate"])
def test_resumed_is_uninterrupted_in_bfloat16(changes: dict[str, object], tmp_path: Path) -> None:
    recipe = small(tmp_path, precision="bfloat16", **changes)
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.2))
    whole, half = train(recipe, tmp_path / "whole"), train(recipe, tmp_path / "half")
    for name in checkpoint.names(half.checkpoints)[1:]:  # as if the process had died after an earlier checkpoint
        (half.checkpoints / name).rename(tmp_path / name)
    train(recipe, tmp_path / "half", resume=True)
    assert weights(half) == weights(whole)


def test_a_split_batch_has_the_gradient_of_the_whole(tmp_path: Path) -> None:
    whole, split = (training(small(tmp_path, precision="bfloat16", accumulate=n), torch.float32) for n in (1, 2))
    seen = [t.advance()["loss"] for t in (whole, split)]
    assert seen[0] == pytest.approx(seen[1], rel=1e-2)
    for a, b in zip(whole.task.parameters(), split.task.parameters(), strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert (a.grad - b.grad).norm() <= 0.03 * a.grad.norm()


@pytest.mark.system("mixed-precision", "engine")
def test_weights_gradients_and_scores_are_float32(tmp_path: Path) -> None:
    run = training(small(tmp_path, precision="bfloat16"))
    exact = training(small(tmp_path, precision="float32"))
    assert run.evaluate() == exact.evaluate()  # judged in float32, whatever it is trained in
    run.advance()
    assert {p.dtype for p in run.task.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in run.task.parameters() if p.grad is not None} == {torch.float32}


def test_the_loss_gets_float32(tmp_path: Path) -> None:
    run = training(small(tmp_path, precision="bfloat16"))
    batch, model = next(run.parts.stream), cast("GPT2", run.parts.model)
    with run.autocast():
        assert model(batch["x"]).dtype == torch.float32
        assert cast("MLP", model.h[0].mlp)(torch.zeros(1, 16)).dtype == torch.bfloat16


@pytest.mark.system("mixed-precision", "engine")
@pytest.mark.parametrize("name", ["small", "gru-chars", "vit-digits", "resnet-digits", "lstm-sentiment"])
def test_recipes_learn_alike(name: str, tmp_path: Path) -> None:
    """The losses of a few steps as the recipe takes them, with batch norm, dropout and all."""
    recipe, losses = small(tmp_path) if name == "small" else recipes.get(name), {}
    for kind in ("float32", "bfloat16"):
        run = training(replace(recipe, loop=replace(recipe.loop, precision=kind, batch=16)))
        losses[kind] = [run.advance()["loss"] for _ in range(3)]
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.01)
