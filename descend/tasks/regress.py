"""Regression: minimise the mean squared error (1/b) Σ_i (model(x_i) − y_i)² of a standardized target.

`loss` is the squared error of the standardized target, so 1 is what guessing the training mean costs. The scores that
people read are in the target's own unit: MAE and RMSE, and R², the share of the variance that is explained.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch
from descend.metrics.regression import mean_absolute_error, r_squared, root_mean_squared_error
from descend.tasks.supervise import NUMBERS, Supervise


class Regress(Supervise):
    """A batch is x and the standardized numbers y (b); `unit` is the target's standard deviation."""

    evidence = ("predicted", "y")

    def __init__(self, model: nn.Module, unit: float = 1.0):
        super().__init__(model, lambda z, y: NUMBERS.cost(z.reshape(y.shape), y))
        self.unit = unit

    def score(self, batch: Batch) -> dict[str, Tensor]:
        z, y = self.model(batch["x"]), batch["y"]
        return {"loss": self.cost(z, y), "predicted": z.reshape(y.shape), "y": y}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """The error of a set in the target's unit, and the variance explained."""
        predicted, y = evidence["predicted"], evidence["y"]
        return {
            **means,
            "mae": self.unit * mean_absolute_error(predicted, y),
            "rmse": self.unit * root_mean_squared_error(predicted, y),
            "r2": r_squared(predicted, y),
        }
