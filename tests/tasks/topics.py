"""A little world of text: three topics with 12 words each; a text stays with its topic. And how to train on it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

TOPICS, WORDS = 3, 12
PAD, CLS, SEP, MASK = 0, 1, 2, 3
FIRST = 4
VOCAB = FIRST + TOPICS * WORDS


def texts(n: int, t: int, seed: int, words: range = range(WORDS)) -> tuple[Tensor, Tensor]:
    """[CLS] and t words, (n, t + 1), and their topics (n)."""
    random = torch.Generator().manual_seed(seed)
    topic = torch.randint(TOPICS, (n,), generator=random)
    word = words.start + torch.randint(len(words), (n, t), generator=random)
    tokens = FIRST + topic[:, None] * WORDS + word
    return torch.cat([torch.full((n, 1), CLS), tokens], dim=1), topic


def train(task: Any, batches: Any, lr: float = 3e-3) -> list[float]:
    """Adam over the batches; the losses."""
    optim, seen = torch.optim.Adam(task.parameters(), lr), []
    for batch in batches:
        for move in task.moves(batch):
            optim.zero_grad()
            loss = move.value().total()
            loss.backward()
            optim.step()
            seen.append(loss.item())
    return seen
