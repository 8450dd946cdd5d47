"""NaN and infinity are found before they are kept: in a loss, in a gradient, in the weights that a step made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from descend.contracts import Move, Task
from descend.data.streams.arrays import InOrder, Shuffled
from descend.engine import checkpoint
from descend.engine.faults import NotFinite, find_spoilt
from descend.engine.fit import fit
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.progress import Quiet
from descend.engine.run import Run
from descend.errors import Mistake
from descend.models.mlp import MLP, MLPConfig
from descend.optim.rules import SGD
from tests.engine.small import small, training

NAN, INF = float("nan"), float("inf")


class Spoil(torch.autograd.Function):
    """The identity; its gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx, x: Tensor, factor: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        return g * ctx.factor, None


class Regression(Task):
    """From the third step on, the gradient that reaches the first layer is spoilt; the loss stays finite."""

    players = ("model",)

    def __init__(self, factor: float):
        super().__init__()
        torch.manual_seed(0)
        self.model = MLP(MLPConfig(inputs=2, hidden=(4,), outputs=1))
        self.taken, self.factor = 0, factor

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        self.taken += 1
        yield Move("model", lambda: self.loss(batch, self.factor if self.taken > 2 else 1.0))

    def loss(self, batch: dict[str, Tensor], factor: float) -> Tensor:
        first, *rest = self.model.layers
        x = Spoil.apply(first(batch["x"]), factor)
        for layer in rest:
            x = layer(x)
        return x.square().mean()

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": self.model(batch["x"])[:, 0]}


def train(folder: Path, factor: float = 1.0, clip: float = 0.0, lr: float = 0.01) -> Run:
    torch.set_num_threads(1)
    task, x = Regression(factor), torch.ones(4, 2)
    loop = Loop(steps=6, batch=4, eval_every=100, save_every=1, clip=clip, threads=1)
    parts = Parts(task, task.model, Shuffled({"x": x}, 4), InOrder({"x": x}), {"model": SGD(lr=lr, momentum=0.0)})
    run = Run.create(folder / "run", {"name": "spoilt"})
    fit(parts, loop, lambda step, steps: 1.0, run, Quiet())
    return run


@pytest.mark.parametrize("clip", [0.0, 1.0], ids=["plain", "clipped"])
@pytest.mark.parametrize("factor", [NAN, INF])
def test_a_gradient_that_is_not_finite_is_found_before_the_step(factor: float, clip: float, tmp_path: Path) -> None:
    with pytest.raises(Mistake) as caught:
        train(tmp_path, factor, clip)
    said = str(caught.value)
    assert "step 3: the gradient of 'model' is not finite, though its loss is" in said
    assert "module 'model.layers.0' (Linear, " in said
    assert "2 of 4 tensors" in said
    assert re.search(r"examples of the batch: (\d, ){3}\d;", said)
    run = Run(tmp_path / "run")
    assert said.count(f"the last good checkpoint is {run.checkpoints / 'step-000002'}") == 1
    _, step, state = checkpoint.newest(run.checkpoints, print)
    assert step == 2
    assert all(torch.isfinite(tensor).all() for tensor in state["task"].values())
    assert run.lines()[-1]["event"] == "failed"


def test_weights_that_a_step_made_infinite_are_not_saved(tmp_path: Path) -> None:
    """The gradient is finite, the step is too long: what it made never becomes the last good checkpoint."""
    with pytest.raises(Mistake, match=r"the step before was too long; it made model\.layers\.\d\.\w+ infinite or NaN"):
        train(tmp_path, lr=1e39)
    assert checkpoint.names(tmp_path / "run" / "checkpoints") == []


def test_moments_are_looked_at_too(tmp_path: Path) -> None:
    run = training(small(tmp_path))
    run.advance()
    run.check_finite()
    state = next(iter(run.optims["model"].state.values()))
    state["exp_avg"].view(-1)[0] = INF
    with pytest.raises(NotFinite, match="the optimizer's exp_avg of 'model'"):
        run.check_finite()


def test_large_numbers_are_finite() -> None:
    """Their squares overflow; they are no fault."""
    large = torch.full((4,), 1e30)
    assert find_spoilt({"a": large, "b": torch.arange(3), "c": torch.empty(0)}) == ""
    assert find_spoilt({"a": large, "b": torch.tensor([1.0, NAN])}) == "b"
    assert find_spoilt({"a": torch.tensor(-INF)}) == "a"


def test_a_gradient_whose_norm_overflows_is_told(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="every entry of it is finite, but their squares overflow"):
        train(tmp_path, factor=1e25)


def test_the_check_changes_no_bits(tmp_path: Path) -> None:
    """The clipped step is the one that `clip_norm` makes."""
    recipe = small(tmp_path)
    plain, free = training(recipe), training(replace(recipe, loop=replace(recipe.loop, clip=0.0)))
    norm = plain.advance()["grad_norm"]
    assert norm > 1.0  # so it was clipped
    free.advance()
    scale = torch.tensor(1.0) / torch.tensor(norm)
    for mine, whole in zip(plain.task.parameters(), free.task.parameters(), strict=True):
        assert mine.grad is not None
        assert whole.grad is not None
        assert torch.equal(mine.grad, whole.grad * scale)
