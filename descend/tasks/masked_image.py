"""Masked image modelling (BEiT): say which visual tokens the hidden patches were.

    min_θ  −(1/n) Σ over the n hidden patches of log softmax(z_i)_{y_i}

Visible patches cost nothing. A batch has x (b, c, h, w), hide (b, N) and y (b, N), the visual tokens of all patches.

Systems: beit
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from descend.contracts import Batch, Move, Task
from descend.losses.classification import cross_entropy
from descend.losses.masked import mean_or_zero
from descend.metrics.classification import correct


class MaskedImage(Task):
    """The model makes logits (n, v) of images and the patches that are hidden from it."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def predict_hidden(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits (n, v) and tokens (n) of the hidden patches."""
        return self.model(batch["x"], batch["hide"]), batch["y"][batch["hide"]]

    def moves(self, batch: Batch) -> Iterator[Move]:
        loss = lambda: mean_or_zero(cross_entropy(*self.predict_hidden(batch)))
        yield Move("model", loss, {"loss": batch["hide"].sum()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits, y = self.predict_hidden(batch)
        return {"accuracy": correct(logits, y), "loss": cross_entropy(logits, y)}
