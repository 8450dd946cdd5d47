"""Every rule runs in the trainer, lowers the loss, and resumes from a checkpoint on disk to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Move, Task
from descend.engine import checkpoint
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.optim.schedules import Cosine
from tests.optim.problems import OWN, TORCH, name


class Whole:
    """The same batch again and again, as the methods that search along lines want it."""

    def __next__(self) -> dict[str, Tensor]:
        random = torch.Generator().manual_seed(0)
        return {"x": torch.randn(16, 3, generator=random)}

    def state_dict(self) -> dict[str, object]:
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        pass


class Regression(Task):
    players = ("model",)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def moves(self, batch: dict[str, Tensor]) -> Iterator[Move]:
        x = batch["x"]
        yield Move("model", lambda: (self.model(x) - x.sum(1, keepdim=True)).square().mean())

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {}


def engine(rule: Any) -> Training:
    task = Regression()
    parts = Parts(task, task.model, Whole(), [], {"model": rule})  # type: ignore[arg-type]
    return Training(parts, Loop(steps=8, clip=0.0), Cosine(), World())


@pytest.mark.parametrize("rule", [*TORCH, *OWN], ids=name)
def test_trains_and_resumes(rule: Any, tmp_path: Path) -> None:
    whole = engine(rule)
    losses = []
    for step in range(8):
        losses.append(whole.advance()["loss"])
        if step == 3:
            checkpoint.save(tmp_path, 4, lambda folder: None, whole.state_dict())
    again = engine(rule)
    step, state = checkpoint.load(tmp_path / "step-000004")
    assert step == 4
    again.load_state_dict(state)
    assert [again.advance()["loss"] for _ in range(4)] == losses[4:]
    for a, b in zip(whole.task.parameters(), again.task.parameters(), strict=True):
        assert torch.equal(a, b)
    assert losses[-1] < losses[0]
