"""Supervised classification: minimise the mean cross-entropy (1/b) Σ_i −log softmax(model(x_i))_{y_i}."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.losses.classification import cross_entropy
from descend.metrics.classification import correct


class Classify(nn.Module):
    """A batch is x and the classes y (b); the model makes logits (b, classes) of x."""

    players = ("model",)

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        yield "model", lambda: cross_entropy(self.model(batch["x"]), batch["y"]).mean()

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        logits = self.model(batch["x"])
        return {"accuracy": correct(logits, batch["y"]), "loss": cross_entropy(logits, batch["y"])}
