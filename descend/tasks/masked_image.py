"""Masked image modelling (BEiT): say which visual tokens the hidden patches were.

    min_θ  −(1/n) Σ over the n hidden patches of log softmax(z_i)_{y_i}

Visible patches cost nothing. A batch has x (b, c, h, w), hide (b, N) and y (b, N), the visual tokens of all patches.

Systems: beit
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.losses.classification import cross_entropy
from descend.losses.masked import mean_or_zero
from descend.metrics.classification import correct


class MaskedImage(nn.Module):
    """The model makes logits (n, v) of images and the patches that are hidden from it."""

    players = ("model",)

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def found(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Logits (n, v) and tokens (n) of the hidden patches."""
        return self.model(batch["x"], batch["hide"]), batch["y"][batch["hide"]]

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        yield "model", lambda: mean_or_zero(cross_entropy(*self.found(batch)))

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        logits, y = self.found(batch)
        return {"accuracy": correct(logits, y), "loss": cross_entropy(logits, y)}
