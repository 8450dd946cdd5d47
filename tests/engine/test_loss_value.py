"""The loss over a set of batches is that of one batch with all of them, however they are cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.engine.loss_value import measure_loss
from descend.errors import Mistake
from tests.close import close


class Padded(Task):
    """A mean over tokens, where -1 is padding, and a second term that is a mean over examples."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.5)).double()

    def moves(self, batch: Batch) -> Iterator[Move]:
        x, y = batch["x"], batch["y"]
        kept = y >= 0

        def loss() -> Loss:
            token = ((self.model(x)[..., 0] - y).square() * kept).sum() / kept.sum()
            return Loss({"token": token, "size": 0.1 * x.square().mean((1, 2)).mean()})

        yield Move("model", loss, {"token": kept.sum()})
        raise AssertionError("nothing is to be stepped")

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {}


def test_any_cut_gives_the_same_loss() -> None:
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(10, 4, 3, generator=random).double(), torch.rand(10, 4, generator=random).double()
    y[torch.arange(4)[None] > torch.randint(4, (10, 1), generator=random)] = -1
    torch.manual_seed(0)
    task = Padded().train()
    whole = measure_loss(task, [{"x": x, "y": y}])
    cut = measure_loss(task, [{"x": x[a:b], "y": y[a:b]} for a, b in ((0, 3), (3, 4), (4, 10))])
    close(whole, cut)
    with torch.no_grad():
        task.eval()
        kept = y >= 0
        token = ((task.model(x)[..., 0] - y).square()[kept]).mean()
    close(whole, float(token + 0.1 * x.square().mean()))
    task.train()
    measure_loss(task, [{"x": x, "y": y}])
    assert task.training
    with pytest.raises(Mistake, match="no batch"):
        measure_loss(task, [])
