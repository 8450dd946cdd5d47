"""Adversarial augmentation: train on examples moved against the model, beside the clean ones.

    x' = x + ε sign(∂ℓ/∂x)        minimise (1/b) Σ_i ½ (ℓ(x_i, y_i) + ℓ(x'_i, y_i)),   ℓ the cross-entropy

x' is made anew from the present weights at every step, and is a constant for the gradient. The labels stay. Named only
in DLN; equal parts of clean and moved examples are those of Goodfellow et al. (2015).

Systems: adversarial-augmentation
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.losses.classification import cross_entropy
from descend.metrics.classification import correct
from descend.ops.adversarial import fgsm


class ClassifyAdversarially(nn.Module):
    """A batch is images x in 0..1 and classes y (b); `robust` is the accuracy on moved examples."""

    players = ("model",)

    def __init__(self, model: nn.Module, eps: float):
        super().__init__()
        self.model, self.eps = model, eps

    def moved(self, batch: dict[str, Tensor]) -> Tensor:
        """x'"""
        return fgsm(lambda x: cross_entropy(self.model(x), batch["y"]), batch["x"], self.eps, low=0.0, high=1.0)

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        def loss() -> Tensor:
            both = [cross_entropy(self.model(x), batch["y"]).mean() for x in (batch["x"], self.moved(batch))]
            return (both[0] + both[1]) / 2

        yield "model", loss

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        logits, y = self.model(batch["x"]), batch["y"]
        robust = correct(self.model(self.moved(batch)), y)
        return {"accuracy": correct(logits, y), "loss": cross_entropy(logits, y), "robust": robust}
