"""Pre-training of encoders: masked language modelling, alone (RoBERTa) or with next-sentence prediction (BERT).

    min_θ L_MLM                          MaskedLanguage
    min_θ L_MLM + λ L_NSP                MaskedAndNext; λ = 1 as released (the books give none), λ = 0 is the first

A batch has x (b, t), the corrupted tokens; y (b, t), the true ones; at (b, t), where the loss is; and, where there are
any, mask (b, t) for padding and segments (b, t). Logits are computed at the chosen positions only.

Systems: mlm, next-sentence-prediction, roberta
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.classification import cross_entropy
from descend.losses.masked import mean_or_zero, next_sentence_losses
from descend.metrics.classification import correct
from descend.metrics.language import exponentiate


class MaskedLanguage(Task):
    """The model makes logits (n, v) of tokens (b, t), a mask and the n positions."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def logits(self, batch: Batch) -> Tensor:
        """At the chosen positions (n, v)."""
        return self.model(batch["x"], batch.get("mask"), at=batch["at"])

    def moves(self, batch: Batch) -> Iterator[Move]:
        at = batch["at"]
        yield Move("model", lambda: mean_or_zero(cross_entropy(self.logits(batch), batch["y"][at])), {"loss": at.sum()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits, y = self.logits(batch), batch["y"][batch["at"]]
        return {"accuracy": correct(logits, y), "loss": cross_entropy(logits, y)}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """exp of the mean loss of a chosen token."""
        return {**means, "perplexity": exponentiate(means["loss"])}


class MaskedAndNext(Task):
    """The model makes logits (n, v) and (b, 2). A batch also has `follows` (b): 0 where the second text follows."""

    def __init__(self, model: nn.Module, weight: float = 1.0):
        super().__init__()
        self.model, self.weight = model, weight

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Both logits and both losses, one value a position and one a pair."""
        words, pairs = self.model(batch["x"], batch.get("mask"), batch["segments"], batch["at"])
        y = batch["y"][batch["at"]]
        return words, pairs, cross_entropy(words, y), next_sentence_losses(pairs, batch["follows"])

    def loss(self, batch: Batch) -> Loss:
        """L_MLM, a mean over the chosen positions, and λ L_NSP, a mean over pairs."""
        _, _, masked, follows = self.losses(batch)
        return Loss({"masked": mean_or_zero(masked), "next": self.weight * follows.mean()})

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch), {"masked": batch["at"].sum()})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        words, pairs, masked, follows = self.losses(batch)
        return {
            "loss": masked,
            "accuracy": correct(words, batch["y"][batch["at"]]),
            "next_loss": follows,
            "next_accuracy": correct(pairs, batch["follows"]),
        }
