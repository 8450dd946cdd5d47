"""Language modelling: predict the next token.

min_θ  − (1/T) Σ_t log p_θ(x_{t+1} | x_1 .. x_t)  +  α N Σ_e f_e P_e          the second part for mixtures of experts
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from descend.losses.balance import balance_loss
from descend.losses.language import causal_lm_loss, token_losses
from descend.nn.experts import Router, Routing


class Language(nn.Module):
    """x (b, t) are tokens, y (b, t) the tokens that follow."""

    players = ("model",)

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        yield "model", lambda: causal_lm_loss(self.model(batch["x"]), batch["y"])

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"loss": token_losses(self.model(batch["x"]), batch["y"]).flatten()}


class Balanced(Language):
    """The same, and `weight` times the load-balancing loss over the tokens of all layers' routers."""

    def __init__(self, model: nn.Module, weight: float):
        super().__init__(model)
        self.weight = weight
        self.seen: list[Routing] = []
        for module in model.modules():
            if isinstance(module, Router):
                module.register_forward_hook(lambda _, __, routing: self.seen.append(routing))

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        yield "model", lambda: self.loss(batch)

    def loss(self, batch: dict[str, Tensor]) -> Tensor:
        self.seen.clear()
        language = causal_lm_loss(self.model(batch["x"]), batch["y"])
        balance = balance_loss(torch.cat([r.p for r in self.seen]), torch.cat([r.chosen for r in self.seen]))
        self.seen.clear()
        return language + self.weight * balance

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        found = super().score(batch)
        self.seen.clear()
        return found
