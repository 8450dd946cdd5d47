"""Localisation: the class of the one object, and its box.

    loss = −log softmax(z)_y + λ Σ_{i=1..4} smooth_l1(t̂_i − t_i)        t as shares of the image

A batch has x (b, c, h, w), y (b) and box (b, 4): x0, y0, x1, y1 in 0..1. Smooth L1 is quadratic below β, then linear.

Systems: transfer-learning
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy
from descend.losses.regression import smooth_l1
from descend.metrics.classification import correct
from descend.ops.boxes import box_iou

BETA = 0.1  # a tenth of the image: larger errors pull no harder


class Localise(Task):
    """The model makes logits (b, classes) and boxes (b, 4)."""

    def __init__(self, model: nn.Module, weight: float = 5.0):
        super().__init__()
        self.model, self.weight = model, weight

    def losses(self, found: Any, batch: Batch) -> Tensor:
        """One value an image (b)."""
        logits, box = found
        return cross_entropy(logits, batch["y"]) + self.weight * smooth_l1(box, batch["box"], BETA).sum(dim=-1)

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.losses(self.model(batch["x"]), batch).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        found = self.model(batch["x"])
        return {
            "accuracy": correct(found[0], batch["y"]),
            "iou": box_iou(found[1], batch["box"]),
            "loss": self.losses(found, batch),
        }
