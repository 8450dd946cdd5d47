"""What a text encoder reads: the sum of three table lookups, normalised.

    h_t = norm(E_tok[x_t] + E_pos[t] + E_seg[s_t])            s_t: which of two texts the token belongs to

A lookup is the product of the table with a one-hot vector. DLN and MF write the sum alone; norm and dropout are those
of the released BERT. `norm` and `drop` are modules, so nn.Identity() gives the books' form.

Systems: bert-input, shared-attention-core
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TextEmbeddings(nn.Module):
    """tokens, positions and segments (b, t) -> (b, t, d). Without segments, every token is of the first text."""

    def __init__(self, vocab: int, context: int, segments: int, width: int, eps: float, dropout: float):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.position = nn.Embedding(context, width)
        self.segment = nn.Embedding(segments, width)
        self.norm: nn.Module = nn.LayerNorm(width, eps)
        self.drop: nn.Module = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        segments = torch.zeros_like(tokens) if segments is None else segments
        x = self.token(tokens) + self.position(positions) + self.segment(segments)
        x = self.drop(self.norm(x))
        return x
