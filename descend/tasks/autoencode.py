"""Autoencoding: give back what was given, through a few numbers, a sparse code, or from a spoilt input.

    J = ½ ‖x − y(x̃)‖² + λ Σ_j |a_j|        mean over examples        x̃ = x, or x spoilt; a: the code's activations

The target is the clean x (DLN prints x̂ in the formula and x̃ in the text for the spoilt input). A batch holds x and, for
a spoilt input, u (uniform, of x's shape), from which the corruption makes x̃: randomness is data.

Systems: autoencoder, sparse-autoencoder, denoising-autoencoder
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.reconstruction import activation_penalty, half_squared_error, near_zero, squared_error


class Autoencode(Task):
    """`model` has encode and decode; `corruption(x, u)` spoils its input; λ is the weight of the activations."""

    def __init__(self, model: nn.Module, corruption: nn.Module | None = None, sparsity: float = 0.0):
        super().__init__()
        self.model: Any = model
        self.corruption, self.sparsity = corruption, sparsity

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch))

    def spoil(self, batch: Batch) -> Tensor:
        """x̃"""
        return batch["x"] if self.corruption is None else self.corruption(batch["x"], batch["u"])

    def loss(self, batch: Batch) -> Loss:
        a = self.model.encode(self.spoil(batch))
        terms = {"reconstruction": half_squared_error(batch["x"], self.model.decode(a)).mean()}
        if self.sparsity:
            terms["sparsity"] = self.sparsity * activation_penalty(a).mean()
        return Loss(terms, {"near_zero": near_zero(a.detach()).mean()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """The loss, ‖x − y‖² of each example, and the share of its activations that are nearly 0."""
        x, spoilt = batch["x"], self.spoil(batch)
        a = self.model.encode(spoilt)
        y = self.model.decode(a)
        loss = half_squared_error(x, y) + self.sparsity * activation_penalty(a)
        found = {"loss": loss, "squared_error": squared_error(x, y), "near_zero": near_zero(a)}
        return found if self.corruption is None else {**found, "error_of_input": squared_error(x, spoilt)}
