"""Supervised classification: minimise the mean cross-entropy (1/b) Σ_i −log softmax(model(x_i))_{y_i}."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy
from descend.metrics.classification import correct


class Classify(Task):
    """A batch is x and the classes y (b); the model makes logits (b, classes) of x."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: cross_entropy(self.model(batch["x"]), batch["y"]).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits = self.model(batch["x"])
        return {"accuracy": correct(logits, batch["y"]), "loss": cross_entropy(logits, batch["y"])}
