"""Minimise a loss in memory: the steps of a run without its folder, for what is small and needs no resume.

    θ ← step(θ, ∇L(θ)),   L drawn anew each time: `loss()` takes its own batch

The step is `Training.advance`, as in every run. Float32, not compiled, and on the device that the model is on, so that
the outcome depends on the seed alone. What is random inside a step (dropout) follows a seed drawn from torch's
generator, which is otherwise left as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Rule, Schedule, Task
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.optim.schedules import Constant
from descend.weights.pretrained import Pretrained


class Closure(Task):
    """A task whose batch is drawn by the loss itself."""

    def __init__(self, model: nn.Module, loss: Callable[[], Tensor]):
        super().__init__()
        self.model, self.loss = model, loss

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", self.loss)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {}


class Count:
    """A stream of the numbers 0, 1, 2, …: all that such a task has to be given."""

    def __init__(self) -> None:
        self.next = 0

    def __next__(self) -> Batch:
        self.next += 1
        return {"ids": torch.tensor([self.next - 1])}

    def state_dict(self) -> dict[str, Any]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.next = state["next"]


CONSTANT = Constant()


def take_steps(
    model: nn.Module,
    loss: Callable[[], Tensor],
    steps: int,
    rule: Rule,
    schedule: Schedule = CONSTANT,
    clip: float = 0.0,
) -> Iterator[float]:
    """The loss before each step; the gradient of a step is still in the parameters when its loss is handed out."""
    seed = int(torch.randint(2**31, ()))
    loop = Loop(steps, clip=clip, seed=seed, precision="float32", compile="off")
    where = next(model.parameters()).device
    # Nothing is saved, so that any module will do as the model.
    parts = Parts(Closure(model, loss), cast(Pretrained, model), Count(), (), {"model": rule})
    training = Training(parts, loop, schedule, World())
    training.device = where
    training.task.to(where)
    for _ in range(steps):
        with torch.random.fork_rng(devices=[]):
            value = training.advance()["loss"]
        yield value


def minimise(
    model: nn.Module,
    loss: Callable[[], Tensor],
    steps: int,
    rule: Rule,
    schedule: Schedule = CONSTANT,
    clip: float = 0.0,
) -> list[float]:
    """Take all the steps; the losses on the way."""
    return list(take_steps(model, loss, steps, rule, schedule, clip))
