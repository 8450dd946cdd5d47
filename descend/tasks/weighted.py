"""Classification with class weights: minimise (1/b) Σ_i w_{y_i} ℓ_i, with weights whose mean over the data is 1.

The mean is over examples, not over weights: so micro-batches add up to the batch. What is scored is not weighted.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Move
from descend.losses.classification import cross_entropy
from descend.tasks.classify import Classify


class ClassifyWeighted(Classify):
    """As `Classify`; `weight` (classes) says how much an example of each class counts in the loss."""

    weight: Tensor

    def __init__(self, model: nn.Module, weight: Tensor):
        super().__init__(model)
        self.register_buffer("weight", weight, persistent=False)

    def moves(self, batch: Batch) -> Iterator[Move]:
        y = batch["y"]
        yield Move("model", lambda: (self.weight[y] * cross_entropy(self.model(batch["x"]), y)).mean())
