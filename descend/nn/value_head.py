"""A number for every prefix of a text, read from the states of a language model.

    h = trunk(tokens)                     logits_t = U h_t         V_t = wᵀ h_t + b

V_t may see tokens 1 .. t, so it is the value of the state in which token t + 1 is chosen: a critic beside a policy.
Read at the last token of a text it is a score of the whole: a reward model. w starts at 0, so the first values are 0.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


@runtime_checkable
class ReadsStates(Protocol):
    """A language model in two steps."""

    def states(self, tokens: Tensor) -> Tensor: ...

    def predict(self, states: Tensor) -> Tensor: ...


class ValueHead(nn.Module):
    """states (.., d) -> V (..)"""

    def __init__(self, width: int):
        super().__init__()
        self.read = nn.Linear(width, 1)
        nn.init.zeros_(self.read.weight)
        nn.init.zeros_(self.read.bias)

    def forward(self, states: Tensor) -> Tensor:
        return self.read(states).squeeze(-1)


class WithValues(nn.Module):
    """tokens (b, t) -> logits (b, t, v) and V (b, t), by one pass through the model."""

    model: ReadsStates

    def __init__(self, model: nn.Module, width: int):
        super().__init__()
        self.model, self.value = model, ValueHead(width)  # type: ignore[assignment]

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        states = self.model.states(tokens)
        return self.model.predict(states), self.value(states)


class TextScore(nn.Module):
    """tokens (b, t), and which of them were `written` (b, t) -> the number at the last one (b): a reward model."""

    model: ReadsStates

    def __init__(self, model: nn.Module, width: int):
        super().__init__()
        self.model, self.score = model, ValueHead(width)  # type: ignore[assignment]

    def forward(self, tokens: Tensor, written: Tensor) -> Tensor:
        at = (written * torch.arange(tokens.shape[1], device=tokens.device)).amax(dim=1)
        found: Tensor = self.score(self.model.states(tokens))
        return found.gather(1, at[:, None]).squeeze(1)
