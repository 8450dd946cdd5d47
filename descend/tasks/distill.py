"""Distillation through a token (DeiT): the student's second head learns what a frozen teacher says.

    min_θ (1/b) Σ_i ½ CE(z_c(x_i), y_i) + ½ CE(z_d(x_i), argmax teacher(x_i))         `descend.losses.distillation`

The teacher sees the same, augmented images, and nothing of it changes: neither weights nor running averages.

Systems: deit
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn

from descend.losses.classification import cross_entropy
from descend.losses.distillation import hard_distillation
from descend.metrics.classification import correct


class Distill(nn.Module):
    """A batch is images x and classes y (b); model.both(x) gives the logits of both heads."""

    players = ("model",)

    def __init__(self, model: nn.Module, teacher: nn.Module):
        super().__init__()
        self.model, self.teacher = model, teacher.eval().requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """The student; the teacher stays as it is."""
        super().train(mode)
        self.teacher.eval()
        return self

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        with torch.no_grad():
            told = self.teacher(batch["x"])
        yield "model", lambda: self.loss(batch, told)

    def loss(self, batch: dict[str, Tensor], told: Tensor) -> Tensor:
        """Of the student, when the teacher said `told` (b, classes)."""
        student: Any = self.model
        of_class, of_teacher = student.both(batch["x"])
        return hard_distillation(of_class, of_teacher, told, batch["y"]).mean()

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        logits, told = self.model(batch["x"]), self.teacher(batch["x"])
        return {
            "accuracy": correct(logits, batch["y"]),
            "loss": cross_entropy(logits, batch["y"]),
            "teacher": correct(told, batch["y"]),
        }
