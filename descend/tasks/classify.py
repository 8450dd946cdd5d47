"""Supervised classification: minimise the mean cross-entropy (1/b) Σ_i −log softmax(model(x_i))_{y_i}.

`accuracy` and `loss` are means over examples. `f1` is the mean over the classes (macro F1), which only a whole set can
say: with 1 spam in 100 texts, always saying "no spam" is 99 % accurate and has an F1 of 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy
from descend.metrics.classification import correct, find_macro_f1

PREDICTED = ("predicted", "y")
"""What the F1 of a set is judged by."""


def score_classes(logits: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Scores of logits (n, classes) for classes y (n), and what F1 needs of them."""
    scores = {"accuracy": correct(logits, y), "loss": cross_entropy(logits, y)}
    return {**scores, "predicted": logits.argmax(dim=-1), "y": y}


def judge_classes(means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
    """The scores of a set, with its macro F1."""
    return {**means, "f1": find_macro_f1(evidence["predicted"], evidence["y"])}


class Classify(Task):
    """A batch is x and the classes y (b); the model makes logits (b, classes) of x."""

    evidence = PREDICTED

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def logits(self, batch: Batch) -> Tensor:
        """(b, classes)"""
        logits: Tensor = self.model(batch["x"])
        return logits

    def choices(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.logits(batch), batch["y"]

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: cross_entropy(self.logits(batch), batch["y"]).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return score_classes(*self.choices(batch))

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return judge_classes(means, evidence)
