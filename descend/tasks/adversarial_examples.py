"""Adversarial augmentation: train on examples moved against the model, beside the clean ones.

    x' = x + ε sign(∂ℓ/∂x)        minimise (1/b) Σ_i ½ (ℓ(x_i, y_i) + ℓ(x'_i, y_i)),   ℓ the cross-entropy

x' is made anew from the present weights at every step, and is a constant for the gradient. The labels stay. With
several steps the attack is PGD (`ops/adversarial.py`). ε is a change of pixels in 0..1: images that come standardized
with μ and σ are moved there and standardized again. Named only in DLN; equal parts of clean and moved examples are
those of Goodfellow et al. (2015).

Systems: adversarial-augmentation
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move
from descend.losses.classification import cross_entropy
from descend.metrics.classification import correct
from descend.ops.adversarial import fgsm, pgd
from descend.tasks.classify import Classify


class ClassifyAdversarially(Classify):
    """A batch is images x, (pixels − mean) / std, and classes y (b); `robust` is the accuracy on moved examples."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        model: nn.Module,
        eps: float,
        steps: int = 1,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
    ):
        super().__init__(model)
        self.eps, self.steps = eps, steps
        for name, values in (("mean", mean or 0.0), ("std", std or 1.0)):
            number = torch.tensor(values)
            self.register_buffer(name, number[:, None, None] if number.dim() else number, persistent=False)

    def attack(self, batch: Batch) -> Tensor:
        """x'"""

        def loss(pixels: Tensor) -> Tensor:
            return cross_entropy(self.model((pixels - self.mean) / self.std), batch["y"])

        pixels = batch["x"] * self.std + self.mean
        if self.steps == 1:
            attacked = fgsm(loss, pixels, self.eps, low=0.0, high=1.0)
        else:
            attacked = pgd(loss, pixels, self.eps, self.steps, low=0.0, high=1.0)
        return (attacked - self.mean) / self.std

    def moves(self, batch: Batch) -> Iterator[Move]:
        def loss() -> Loss:
            clean, moved = (cross_entropy(self.model(x), batch["y"]).mean() for x in (batch["x"], self.attack(batch)))
            return Loss({"clean": clean / 2, "attacked": moved / 2})

        yield Move("model", loss)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        robust = correct(self.model(self.attack(batch)), batch["y"])
        return {**super().score(batch), "robust": robust}
