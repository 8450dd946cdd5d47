"""What GPT-1 adds for a task: one linear layer over the state of the last token.

    h = x_depth at the last token              of a row made by `descend.text.transformations`
    classes      softmax(W h + b)
    similarity   W (h_AB + h_BA) + b           the states of both orders are added, so A and B may be exchanged
    answers      softmax_k(w·h_k + b)          one score for each answer, normalised over the answers

The original paper adds the language-model loss of the same rows with weight 0.5 while fine-tuning (3 epochs, batch 32).

Systems: gpt-1
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn


def last_states(hidden: Tensor, lengths: Tensor) -> Tensor:
    """h (b, d): the state of the last real token; hidden (b, t, d), rows padded on the right, lengths (b,)."""
    return hidden[torch.arange(len(hidden), device=hidden.device), lengths - 1]


class Readout(nn.Module):
    """The task's layer: logits of classes, of a pair in both orders, or of answers."""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(width, outputs)

    def forward(self, h: Tensor) -> Tensor:
        """h (b, d) -> (b, classes)"""
        return cast("Tensor", self.linear(h))

    def similarity(self, one: Tensor, other: Tensor) -> Tensor:
        """States of A B and of B A, (b, d) each -> (b, outputs)"""
        return self(one + other)

    def answers(self, h: Tensor) -> Tensor:
        """States of every answer's row (b, answers, d) -> logits (b, answers), for a softmax over the answers."""
        return self(h).squeeze(-1)
