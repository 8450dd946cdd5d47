"""Verification: a network that says of two images whether they show the same thing, also one that it never saw.

    d(a, b) = ‖e(a) − e(b)‖                                       the same weights read both: d(a, b) = d(b, a)
    L = (1/n) Σ y d² + (1 − y) max(0, m − d)²  +  λ CE            y = 1 for the same; CE: which identity each image is
    same(a, b)  ⇔  d(a, b) ≤ t                                    t fitted to pairs that are known

A batch has x1, x2, their identities y1, y2, and in evaluation `known` (b), true for the pairs that t is fitted to.

Systems: deepface-verification
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

from torch import Tensor

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.classification import cross_entropy
from descend.losses.metric_learning import distance
from descend.losses.self_supervised import contrastive_margin
from descend.metrics.verification import best_threshold, equal_error_rate, ranking_auc, verification_accuracy


class Identifier(Protocol):
    """Unit vectors of images, and logits of the identities that it was trained on."""

    def embed(self, x: Tensor) -> Tensor: ...

    def __call__(self, x: Tensor) -> Tensor: ...


class Verify(Task):
    """Pairs of images, the same or not."""

    evidence = ("distance", "same", "known")
    model: Identifier

    def __init__(self, model: Identifier, margin: float = 1.0, identity: float = 0.5):
        super().__init__()
        self.model, self.margin, self.identity = model, margin, identity

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch))

    def loss(self, batch: Batch) -> Loss:
        """Of the pairs, and of naming each image."""
        pairs = contrastive_margin(self.measure(batch), batch["y1"] == batch["y2"], self.margin)
        first, second = (cross_entropy(self.model(batch[f"x{i}"]), batch[f"y{i}"]).mean() for i in (1, 2))
        return Loss({"pairs": pairs.mean(), "identity": self.identity * (first + second) / 2})

    def measure(self, batch: Batch) -> Tensor:
        """d (b)"""
        return distance(self.model.embed(batch["x1"]), self.model.embed(batch["x2"]))

    def score(self, batch: Batch) -> dict[str, Tensor]:
        d, same = self.measure(batch), batch["y1"] == batch["y2"]
        return {"distance": d, "same": same, "known": batch["known"], "loss": contrastive_margin(d, same, self.margin)}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """Accuracy at the threshold of the known pairs, on the others; AUC and equal error rate."""
        d, same, known = (evidence[name] for name in self.evidence)
        kinds = [bool(same[part].any() and not same[part].all()) for part in (known, ~known)]
        if not all(kinds):  # two examples that only show which scores there are
            return means | dict.fromkeys(("accuracy", "threshold", "auc", "eer"), math.nan)
        threshold = best_threshold(d[known], same[known])
        d, same = d[~known], same[~known]
        return means | {
            "accuracy": verification_accuracy(d, same, threshold),
            "threshold": threshold,
            "auc": ranking_auc(d, same),
            "eer": equal_error_rate(d, same),
        }
