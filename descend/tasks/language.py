"""Language modelling: predict the next token.

min_θ  − (1/T) Σ_t log p_θ(x_{t+1} | x_1 .. x_t)  +  α N Σ_e f_e P_e          the second part for mixtures of experts
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch, JointMove, Loss, Move, Task
from descend.losses.balance import balance_loss
from descend.losses.language import causal_lm_loss, token_losses
from descend.metrics.language import bits_per_byte, exponentiate
from descend.nn.experts import Router, Routing


class Language(Task):
    """x (b, t) are tokens, y (b, t) the tokens that follow."""

    model: Callable[[Tensor], Tensor]

    def __init__(self, model: Callable[[Tensor], Tensor], bytes_per_token: float = 0.0):
        """With `bytes_per_token` of the text that is scored, scores also have bits per byte."""
        super().__init__()
        self.model, self.bytes_per_token = model, bytes_per_token

    def moves(self, batch: Batch) -> Iterator[Move | JointMove]:
        yield Move("model", lambda: causal_lm_loss(self.model(batch["x"]), batch["y"]))

    def choices(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Of each token: which one it is."""
        return self.model(batch["x"]).flatten(0, -2), batch["y"].flatten()

    def score(self, batch: Batch) -> dict[str, Tensor]:
        return {"loss": token_losses(self.model(batch["x"]), batch["y"]).flatten()}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """Perplexity, exp of the mean loss of a token, and bits per byte."""
        found = {**means, "perplexity": exponentiate(means["loss"])}
        if self.bytes_per_token:
            found["bits_per_byte"] = bits_per_byte(means["loss"], self.bytes_per_token)
        return found


class MixedLanguage(Language):
    """The same on several texts; `source` (b) is the number of each row's, and the loss of each is told by its name."""

    def __init__(self, model: Callable[[Tensor], Tensor], names: Sequence[str], bytes_per_token: float = 0.0):
        super().__init__(model, bytes_per_token)
        self.names = list(names)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        losses = token_losses(self.model(batch["x"]), batch["y"])
        found = {f"{self.names[i]}_loss": losses[batch["source"] == i].flatten() for i in batch["source"].unique()}
        return {"loss": losses.flatten(), **found}


class BalancedLanguage(Language):
    """The same, and `weight` times the load-balancing loss over the tokens of all layers' routers."""

    def __init__(self, model: nn.Module, weight: float, bytes_per_token: float = 0.0):
        super().__init__(model, bytes_per_token)
        self.weight = weight
        self.seen: list[Routing] = []
        for module in model.modules():
            if isinstance(module, Router):
                module.register_forward_hook(lambda _, __, routing: self.seen.append(routing))

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        yield JointMove("model", lambda: self.encode(batch), self.compare)

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """−log p of each token, and of each text the gates and experts of all layers (b, tokens · layers, ..)."""
        self.seen.clear()
        x = batch["x"]
        losses = token_losses(self.model(x), batch["y"])
        by_text = lambda parts: torch.cat([part.unflatten(0, (len(x), -1)) for part in parts], dim=1)
        found = {"losses": losses, "p": by_text([r.p for r in self.seen])}
        found["chosen"] = by_text([r.chosen for r in self.seen])
        self.seen.clear()
        return found

    def compare(self, codes: dict[str, Tensor]) -> Loss:
        """Balance is a product of two means over all tokens of the step, so it needs them together."""
        balance = balance_loss(codes["p"].flatten(0, 1), codes["chosen"].flatten(0, 1))
        return Loss({"language": codes["losses"].mean(), "balance": self.weight * balance})

    def score(self, batch: Batch) -> dict[str, Tensor]:
        found = super().score(batch)
        self.seen.clear()
        return found
