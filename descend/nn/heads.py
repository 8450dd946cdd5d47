"""Output heads: what stands on top of a transformer's vectors x (b, t, d) and makes logits.

    vocabulary    z_t = W x_t + b                             a distribution over v tokens at every position; nn.Linear
    tied          z_t = E x_t + b                             E: the input embedding again; MF 33.6 keeps the bias
    masked        z_t = E norm(gelu(W x_t + b)) + c           (MF 32.4 writes z = W x + b)
    classes       z = U tanh(W x_1 + b) + c                   from the first token, [CLS]
    tags          z_t = U x_t + c                             a class for every token; nn.Linear
    span          (s_t, e_t) = U x_t + c                      where an answer starts and ends

Probabilities are softmax(z) over the last axis (of a span: over the positions). With the logits all equal, the mean
cross-entropy is log v. A linear head has d · classes + classes parameters.

Systems: output-heads-and-pipeline, encoder-fine-tuning-heads, mlm, lm-weight-tying
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Pooler(nn.Module):
    """tanh(W x_1 + b): the first token's vector, made the vector of the whole text: (b, t, d) -> (b, d)"""

    def __init__(self, width: int):
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.dense(x[:, 0]))


class TiedHead(nn.Module):
    """E x + b: (.., d) -> (.., v), with the embedding matrix E (v, d) of the input and a bias of its own."""

    def __init__(self, vocab: int):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        return F.linear(x, embedding, self.bias)


class MaskedHead(nn.Module):
    """E norm(gelu(W x + b)) + c: (.., d) -> (.., v), with the embedding matrix E (v, d) of the input."""

    def __init__(self, width: int, vocab: int, eps: float):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps)
        self.bias = nn.Parameter(torch.zeros(vocab))
        self.activation: nn.Module = nn.GELU()

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        return F.linear(self.norm(self.activation(self.dense(x))), embedding, self.bias)


class SpanHead(nn.Linear):
    """Logits of the start and of the end at each position: (b, t, d) -> (b, t), (b, t)"""

    def __init__(self, width: int):
        super().__init__(width, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        start, end = super().forward(x).unbind(-1)
        return start, end


class Pipeline(nn.Module):
    """Tokens to logits in three parts that can be swapped: head(body(embed(tokens)))."""

    def __init__(self, embed: nn.Module, body: nn.Module, head: nn.Module):
        super().__init__()
        self.embed, self.body, self.head = embed, body, head

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.body(self.embed(tokens)))

    def probabilities(self, tokens: Tensor) -> Tensor:
        """softmax of the logits over the last axis."""
        return self(tokens).softmax(dim=-1)
