"""Distillation through a token (DeiT): the student's second head learns what a frozen teacher says.

    min_θ (1/b) Σ_i ½ CE(z_c(x_i), y_i) + ½ CE(z_d(x_i), argmax teacher(x_i))         `descend.losses.distillation`

The teacher sees the same, augmented images, and nothing of it changes: neither weights nor running averages.

Systems: deit
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Move, Task, TwoHeaded
from descend.losses.distillation import hard_distillation
from descend.metrics.classification import correct
from descend.tasks.classify import PREDICTED, judge_classes, score_classes


class Distill(Task):
    """A batch is images x and classes y (b); model.both(x) gives the logits of both heads."""

    evidence = PREDICTED
    frozen = ("teacher",)
    model: TwoHeaded

    def __init__(self, model: TwoHeaded, teacher: nn.Module):
        super().__init__()
        self.model, self.teacher = model, teacher.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """The student; the teacher stays as it is."""
        super().train(mode)
        self.teacher.eval()
        return self

    def moves(self, batch: Batch) -> Iterator[Move]:
        with torch.no_grad():
            says = self.teacher(batch["x"])
        yield Move("model", lambda: self.loss(batch, says))

    def loss(self, batch: Batch, says: Tensor) -> Tensor:
        """Of the student, when the teacher says `says` (b, classes)."""
        of_class, of_teacher = self.model.both(batch["x"])
        return hard_distillation(of_class, of_teacher, says, batch["y"]).mean()

    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits, says = self.model(batch["x"]), self.teacher(batch["x"])
        return {**score_classes(logits, batch["y"]), "teacher": correct(says, batch["y"])}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        return judge_classes(means, evidence)
