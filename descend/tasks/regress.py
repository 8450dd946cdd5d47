"""Regression: minimise the mean squared error (1/b) Σ_i (model(x_i) − y_i)² of a standardized target.

The scores are per example, in two scales: `loss` is the squared error of the standardized target, so 1 is what guessing
the training mean costs and 1 − loss is about R²; `error` is the absolute error in the target's own unit.
"""

from __future__ import annotations

from torch import Tensor, nn

from descend.tasks.supervise import NUMBERS, Supervise


class Regress(Supervise):
    """A batch is x and the standardized numbers y (b); `unit` is the target's standard deviation."""

    def __init__(self, model: nn.Module, unit: float = 1.0):
        super().__init__(model, lambda z, y: NUMBERS.cost(z.reshape(y.shape), y))
        self.unit = unit

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        z, y = self.model(batch["x"]), batch["y"]
        return {"error": self.unit * (z.reshape(y.shape) - y).abs(), "loss": self.cost(z, y)}
