"""A small causal transformer that finds the token before, or any nearby one, at once: a learned number per distance.

With rotary or absolute positions a model of this size needs many steps to look one token back; with a learned bias for
each distance up to `near` it is there from the first steps, and what the labs ask of it is learned in seconds.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention
from descend.nn.attention.relative_bias import ClippedRelativeBias
from descend.nn.mlp import MLP


class RelativeReader(nn.Module):
    """tokens (b, t) -> logits (b, t, v): pre-norm blocks of attention and a feed-forward part."""

    def __init__(self, vocab: int, width: int, depth: int, heads: int, near: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.biases = nn.ModuleList([ClippedRelativeBias(heads, near) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth)])
        self.layers = nn.ModuleList([Attention(width, heads) for _ in range(depth)])
        self.mlps = nn.ModuleList([MLP(width, 2 * width, nn.GELU()) for _ in range(depth)])
        self.out = nn.Linear(width, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        x, t = self.embedding(tokens), tokens.shape[1]
        for k, (layer, bias, mlp) in enumerate(zip(self.layers, self.biases, self.mlps, strict=True)):
            x = x + layer(self.norms[2 * k](x), mask=bias(t, t), causal=True)
            x = x + mlp(self.norms[2 * k + 1](x))
        return self.out(x)

    @torch.no_grad()
    def write(
        self, tokens: Tensor, count: int, temperature: float = 0.0, random: torch.Generator | None = None
    ) -> Tensor:
        """The next `count` tokens (b, count): the most likely ones, or drawn at a temperature."""
        start = tokens.shape[1]
        for _ in range(count):
            logits = self(tokens)[:, -1]
            if temperature:
                new = torch.multinomial((logits / temperature).softmax(-1), 1, generator=random)
            else:
                new = logits.argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, new], dim=1)
        return tokens[:, start:]
