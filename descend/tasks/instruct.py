"""Instruction tuning: learn what the assistant says, not what it is asked.

    min_θ  (1/b) Σ_i Σ_t mask_it (−log p_θ(token_it | token_i,<t))            SUM over an answer, mean over the examples
           + λ ‖θ − θ_pre‖²                                                   `InstructNear`: no ½ (VOM 13.6.4)

A batch is `tokens` (b, t), padded with −1, and `said` (b, t), which of them are the assistant's. Where general text is
mixed in (replay), `source` (b) tells where an example is from, and the two parts of the loss are told apart.

Exact match needs no writing: greedy search finds an answer exactly when every argmax under the true beginning is right,
since up to its first mistake it has read the true words too. Of several answers in one conversation all must be right.

Systems: instruction-tuning, fine-tuning-objective
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.instruction import response_losses
from descend.losses.language import token_losses
from descend.losses.pretrained import distance_to_pretrained
from descend.metrics.language import exponentiate

TASK, GENERAL = 0, 1
"""`source` of a batch: the conversations, and the general text."""


class Instruct(Task):
    """The model maps tokens (b, t) to logits (b, t, v)."""

    model: Callable[[Tensor], Tensor]

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def moves(self, batch: Batch) -> Iterator[Move]:
        yield Move("model", lambda: self.loss(batch))

    def loss(self, batch: Batch) -> Loss:
        """The mean over examples of the sum over what is said; with replay as two terms."""
        losses = response_losses(self.logits(batch), batch["tokens"], batch["said"])
        if "source" not in batch:
            return Loss({"response": losses.mean()})
        here = (batch["source"] == TASK).to(losses.dtype)
        return Loss({"response": (losses * here).mean(), "replay": (losses * (1 - here)).mean()})

    def logits(self, batch: Batch) -> Tensor:
        """Of the token after each but the last; padding is on the right, where no real token sees it."""
        return self.model(batch["tokens"][:, :-1].long().clamp_min(0))

    def score(self, batch: Batch) -> dict[str, Any]:
        """Of conversations: L of each, −log p of each answered token, and whether all would be written exactly. Of
        general text, which has x and y: −log p of each token."""
        if "x" in batch:
            return {"general_loss": token_losses(self.model(batch["x"]), batch["y"]).flatten()}
        tokens, said = batch["tokens"], batch["said"]
        logits, at = self.logits(batch), said[:, 1:]
        right = (logits.argmax(-1) == tokens[:, 1:]) | ~at
        losses = response_losses(logits, tokens, said)
        by_token = nn.functional.cross_entropy(logits[at], tokens[:, 1:][at].long(), reduction="none")
        return {"loss": losses, "token_loss": by_token, "exact": right.all(1).to(losses.dtype)}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """exp of the mean loss of an answered token, and of one of general text."""
        found = dict(means)
        if "token_loss" in found:
            found["perplexity"] = exponentiate(found.pop("token_loss"))
        if "general_loss" in found:
            found["general_perplexity"] = exponentiate(found["general_loss"])
        return found


class InstructNear(Instruct):
    """The same, and λ ‖θ − θ_pre‖² over all weights; `pretrained` is the model as it was."""

    frozen = ("pretrained",)

    def __init__(self, model: nn.Module, pretrained: nn.Module, weight: float):
        super().__init__(model)
        self.pretrained, self.weight = pretrained.eval().requires_grad_(False), weight

    def loss(self, batch: Batch) -> Loss:
        found = super().loss(batch)
        assert isinstance(self.model, nn.Module)
        distance = distance_to_pretrained(self.model, self.pretrained)
        told = {"distance": distance.detach().sqrt()}
        return Loss({**found.terms, "penalty": self.weight * distance}, told)


@torch.no_grad()
def relative_change(model: nn.Module, pretrained: nn.Module) -> float:
    """‖θ − θ_pre‖ / ‖θ_pre‖"""
    size = torch.stack([p.double().square().sum() for p in pretrained.parameters()]).sum()
    return float((distance_to_pretrained(model, pretrained).double() / size).sqrt())
