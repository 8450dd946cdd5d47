"""Knowledge distillation: a student learns from the labels and from all that a frozen teacher thinks of them.

    min_θ (1/n) Σ_i α L_i + (1 − α) τ² KL(p_teacher ‖ p_student)_i          `descend.losses.distillation`

An example is an image, or a token of a text. τ = 1 is the form that MF prints. Nothing of the teacher changes: neither
weights nor running averages; it sees what the student sees, augmented as it is.

Systems: knowledge-distillation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Self

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move
from descend.losses.classification import cross_entropy
from descend.losses.distillation import softened_divergence
from descend.losses.language import token_losses
from descend.metrics.classification import correct
from descend.tasks.classify import Classify
from descend.tasks.language import Language


class TaughtClasses(Classify):
    """A batch is x and the classes y (b); teacher(x) gives logits (b, classes) as the model does."""

    frozen = ("teacher",)

    def __init__(self, model: nn.Module, teacher: nn.Module, alpha: float, tau: float = 1.0):
        super().__init__(model)
        self.teacher, self.alpha, self.tau = teacher.eval().requires_grad_(False), alpha, tau

    def train(self, mode: bool = True) -> Self:
        """The student; the teacher stays as it is."""
        super().train(mode)
        self.teacher.eval()
        return self

    def moves(self, batch: Batch) -> Iterator[Move]:
        with torch.no_grad():
            says = self.teacher(batch["x"])
        yield Move("model", lambda: self.loss(batch, says))

    def loss(self, batch: Batch, says: Tensor) -> Loss:
        """Of the student, when the teacher says `says` (b, classes)."""
        logits = self.logits(batch)
        labels, told = cross_entropy(logits, batch["y"]), softened_divergence(logits, says, self.tau)
        return Loss({"labels": self.alpha * labels.mean(), "teacher": (1 - self.alpha) * told.mean()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {**super().score(batch), "teacher": correct(self.teacher(batch["x"]), batch["y"])}


class TaughtLanguage(Language):
    """x (b, t) are tokens, y (b, t) the tokens that follow; the teacher has the student's vocabulary."""

    frozen = ("teacher",)

    def __init__(
        self,
        model: Callable[[Tensor], Tensor],
        teacher: nn.Module,
        alpha: float,
        tau: float = 1.0,
        bytes_per_token: float = 0.0,
    ):
        super().__init__(model, bytes_per_token)
        self.teacher, self.alpha, self.tau = teacher.eval().requires_grad_(False), alpha, tau

    def train(self, mode: bool = True) -> Self:
        """The student; the teacher stays as it is."""
        super().train(mode)
        self.teacher.eval()
        return self

    def moves(self, batch: Batch) -> Iterator[Move]:
        with torch.no_grad():
            says = self.teacher(batch["x"])
        yield Move("model", lambda: self.loss(batch, says))

    def loss(self, batch: Batch, says: Tensor) -> Loss:
        """Of the student, when the teacher says `says` (b, t, v)."""
        logits = self.model(batch["x"])
        labels, told = token_losses(logits, batch["y"]), softened_divergence(logits, says, self.tau)
        return Loss({"labels": self.alpha * labels.mean(), "teacher": (1 - self.alpha) * told.mean()})
