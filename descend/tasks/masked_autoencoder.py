"""Masked autoencoding (MAE): paint the pixels of the patches that were hidden, from the few that were seen.

    L = (1/n) Σ over the n hidden patches of ‖x̂_i − x_i‖² / P² C               (`models/vit_mae`)

A batch has x (b, c, h, w) and noise (b, N), whose order says what is hidden: as many patches in every image.

Systems: jepa
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor

from descend.contracts import Batch, Loss, Move
from descend.tasks.representation import Representation


class Painter(Protocol):
    """A model that paints patches that it did not see."""

    def errors(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]: ...

    def features(self, x: Tensor) -> Tensor: ...


class PaintHidden(Representation):
    """The model gives the error of every patch, and which of them were hidden."""

    model: Painter

    def __init__(self, model: Painter):
        super().__init__()
        self.model = model

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: Loss({"loss": self.errors(batch).mean()}))

    def errors(self, batch: Batch) -> Tensor:
        """The mean over each image's hidden patches (b)."""
        errors, hidden = self.model.errors(batch["x"], batch["noise"])
        return (errors * hidden).sum(1) / hidden.sum(1)

    def embed(self, x: Tensor) -> Tensor:
        return self.model.features(x)

    def measure(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": self.errors(batch)}
