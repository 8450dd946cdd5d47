"""A soft prompt: m trained vectors in front of the embedded text; the model itself is frozen.

    x = [p_1 .. p_m, E[y_1], E[y_2], ..]        p_i (d) trained: m d numbers

A hard prompt is text: vectors that are rows of E. A soft prompt that begins with the rows of a hard prompt does what it
does, and training goes on from there. The model sees virtual tokens v, v + 1, .. v + m − 1 (v the vocabulary), whose
embeddings are p: positions and masks count them like any others, so a text has m places less.

Systems: prefix-tuning
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.adapters.adapter import Handle, Instead, VirtualAdapter
from descend.nn.adapters.virtual import VirtualDecoder


class PromptVectors(VirtualAdapter):
    """A soft prompt: p (m, d) in place of the embeddings of m virtual tokens."""

    def __init__(self, p: Tensor):
        super().__init__()
        self.p, self.virtual = nn.Parameter(p), len(p)

    @classmethod
    def read(cls, base: Any, tokens: Tensor) -> PromptVectors:
        """The embeddings of these tokens (m), to begin with."""
        return cls(find_embedding(base).weight.detach()[tokens].clone())

    def enter(self, base: Any) -> list[Handle]:
        table = find_embedding(base)
        return [Instead(table, partial(self.embed, table))]

    def ids(self, vocab: int) -> Tensor:
        return torch.arange(vocab, vocab + self.virtual)

    def embed(self, table: nn.Embedding, tokens: Tensor) -> Tensor:
        """p for virtual tokens, E[token] for all others."""
        rows = len(table.weight)
        virtual = tokens >= rows
        x = nn.Embedding.forward(table, tokens.masked_fill(virtual, 0))
        return torch.where(virtual[..., None], self.p[(tokens - rows).clamp(min=0)].to(x), x) if virtual.any() else x

    def decoder(self, base: Any) -> Any:
        return VirtualDecoder(base.decoder(), self.ids(base.config.vocab).to(self.p.device))


def find_embedding(base: Any) -> nn.Embedding:
    """The table of the tokens: as many rows as the vocabulary has."""
    for module in base.modules():
        if isinstance(module, nn.Embedding) and len(module.weight) == base.config.vocab:
            return module
    raise Mistake(f"{type(base).__name__} has no embedding of tokens in front of which a prompt could stand")
