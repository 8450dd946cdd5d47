"""Fine-tuning of encoders: a small head, all parameters trained (DLN, S940 5.5).

    a class for a text or a pair     −log softmax(z)_y                                  ClassifyText
    a tag for every token            mean of −log softmax(z_t)_{y_t} over real tokens    TagTokens
    an answer in a text              −½ (log softmax(s)_i + log softmax(e)_j)            FindSpan

A batch has x (b, t), mask (b, t) and, for pairs, segments (b, t).

Systems: encoder-fine-tuning-heads
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy
from descend.losses.masked import mean_or_zero
from descend.metrics.spans import exact, overlap_f1
from descend.ops.spans import best_span
from descend.tasks.classify import PREDICTED, Classify, judge_classes, score_classes


def run_encoder(model: nn.Module, batch: Batch) -> Any:
    """What the model makes of a batch, with segments where it has them."""
    given = (batch["x"], batch.get("mask"))
    return model(*given, batch["segments"]) if "segments" in batch else model(*given)


class ClassifyText(Classify):
    """y (b) are classes; the model makes logits (b, classes)."""

    def logits(self, batch: Batch) -> Tensor:
        logits: Tensor = run_encoder(self.model, batch)
        return logits


class TagTokens(Task):
    """y (b, t) are tags, counted where `at` (b, t) is true; the model makes logits (b, t, tags)."""

    evidence = PREDICTED

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def choices(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits (n, tags) and tags (n) of the tokens that count."""
        return run_encoder(self.model, batch)[batch["at"]], batch["y"][batch["at"]]

    def moves(self, batch: Batch) -> Iterator[Move]:
        loss = lambda: mean_or_zero(cross_entropy(*self.choices(batch)))
        yield Move("model", loss, {"loss": batch["at"].sum()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return score_classes(*self.choices(batch))

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return judge_classes(means, evidence)


class FindSpan(Task):
    """y (b, 2) are the first and the last token of the answer, which lies where `at` (b, t) is true."""

    def __init__(self, model: nn.Module, longest: int = 30):
        super().__init__()
        self.model, self.longest = model, longest

    def losses(self, start: Tensor, end: Tensor, y: Tensor) -> Tensor:
        """One value a text (b)."""
        return (cross_entropy(start, y[:, 0]) + cross_entropy(end, y[:, 1])) / 2

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.losses(*self.logits(batch), y=batch["y"]).mean())

    def logits(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Of the start and of the end (b, t)."""
        start, end = run_encoder(self.model, batch)
        return start, end

    def score(self, batch: Batch) -> dict[str, Tensor]:
        start, end = self.logits(batch)
        found, y = best_span(start, end, batch["at"], self.longest), batch["y"]
        return {"exact": exact(found, y), "f1": overlap_f1(found, y), "loss": self.losses(start, end, y)}
