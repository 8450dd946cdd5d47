"""Text encoders and the heads on them, each written once; BERT, RoBERTa, Longformer and BigBird combine them.

    class BertForMaskedLM(ForMaskedLM, BertEncoder)

    WithPooler                  x and tanh(W x_1 + b)
    ForMaskedLM                 z_t = E norm(gelu(W x_t + b)) + c
    ForPreTraining              the same, and U tanh(W x_1 + b) + c: does the second text follow the first?
    ForSequenceClassification   z = U drop(tanh(W drop(x_1) + b)) + c                  (BERT: U drop(pooled) + c)
    ForTokenClassification      z_t = U drop(x_t) + c
    ForQuestionAnswering        (s_t, e_t) = U x_t + c

The equations of the heads are in `descend.nn.heads`. A head reads the encoder's `hidden` vectors x (b, t, d).

Systems: encoder-fine-tuning-heads
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.nn.encoder import Encoder
from descend.nn.heads import MaskedHead, Pooler, SpanHead
from descend.nn.text_embeddings import TextEmbeddings
from descend.weights.pretrained import Pretrained


class Encoded(NamedTuple):
    """hidden (b, t, d): a vector a token; pooled (b, d): one for the text."""

    hidden: Tensor
    pooled: Tensor


class TextEncoder(Pretrained):
    """Embeddings and blocks: what every head stands on.

    `mask` (b, t) is true for real tokens, or holds the lengths (b); without it no token is padding. `segments` (b, t)
    is 0 for the first text and 1 for the second; without it all is one text.
    """

    embed: TextEmbeddings
    encoder: Encoder

    @property
    def longest(self) -> int:
        """Maximum tokens per text."""
        return self.config.context

    @property
    def head_dropout(self) -> float:
        """Before a classifier."""
        return self.config.dropout

    def positions(self, tokens: Tensor) -> Tensor:
        """The row of the position table for each token: (t) or (b, t)"""
        return torch.arange(tokens.shape[1], device=tokens.device)

    def embed_tokens(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """h^0 (b, t, d)"""
        if tokens.shape[1] > self.longest:
            raise ValueError(f"{tokens.shape[1]} tokens, but this model has positions for {self.longest} (its context)")
        return self.embed(tokens, self.positions(tokens), segments)

    def hidden(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """The last block's vectors (b, t, d)."""
        return self.encoder(self.embed_tokens(tokens, segments), mask)

    def layers(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> list[Tensor]:
        """The embeddings, then every block's vectors: depth + 1 tensors (b, t, d)."""
        return self.encoder.layers(self.embed_tokens(tokens, segments), mask)


class WithPooler(TextEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""

    def __init__(self, config: object):
        super().__init__(config)
        self.pooler = Pooler(self.config.width)
        self.apply(draw_normal)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Encoded:
        x = self.hidden(tokens, mask, segments)
        return Encoded(x, self.pooler(x))


class ForMaskedLM(TextEncoder):
    """tokens (b, t) -> logits (b, t, v); with `at` (b, t), only at its n true positions: (n, v)"""

    Head: type[MaskedHead] = MaskedHead

    def __init__(self, config: object):
        super().__init__(config)
        self.masked = self.Head(self.config.width, self.config.vocab, self.config.eps)
        self.apply(draw_normal)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None, at: Tensor | None = None
    ) -> Tensor:
        x = self.hidden(tokens, mask, segments)
        return self.masked(x if at is None else x[at], self.embed.token.weight)


class ForNextSentence(TextEncoder):
    """tokens and segments (b, t) -> logits (b, 2): the second text follows the first, or it does not"""

    def __init__(self, config: object):
        super().__init__(config)
        self.pooler = Pooler(self.config.width)
        self.follows = nn.Linear(self.config.width, 2)
        self.apply(draw_normal)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.follows(self.pooler(self.hidden(tokens, mask, segments)))


class ForPreTraining(TextEncoder):
    """tokens and segments (b, t) -> the logits of both objectives: (b, t, v) or (n, v), and (b, 2)"""

    Head: type[MaskedHead] = MaskedHead

    def __init__(self, config: object):
        super().__init__(config)
        self.masked = self.Head(self.config.width, self.config.vocab, self.config.eps)
        self.pooler = Pooler(self.config.width)
        self.follows = nn.Linear(self.config.width, 2)
        self.apply(draw_normal)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None, at: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        x = self.hidden(tokens, mask, segments)
        words = self.masked(x if at is None else x[at], self.embed.token.weight)
        return words, self.follows(self.pooler(x))


class ForPooledClassification(TextEncoder):
    """tokens (b, t) -> logits (b, classes), from the pooled first token; a pair of texts is given with its segments"""

    def __init__(self, config: object):
        super().__init__(config)
        self.pooler = Pooler(self.config.width)
        self.drop = nn.Dropout(self.head_dropout)
        self.classes = nn.Linear(self.config.width, len(self.config.labels))
        self.apply(draw_normal)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.classes(self.drop(self.pooler(self.hidden(tokens, mask, segments))))


class ForSequenceClassification(TextEncoder):
    """tokens (b, t) -> logits (b, classes): U drop(φ(W drop(x_1) + b)) + c, φ = tanh unless a family says otherwise"""

    def __init__(self, config: object):
        super().__init__(config)
        self.drop = nn.Dropout(self.head_dropout)
        self.dense = nn.Linear(self.config.width, self.config.width)
        self.classes = nn.Linear(self.config.width, len(self.config.labels))
        self.apply(draw_normal)

    def activate(self, x: Tensor) -> Tensor:
        """φ"""
        return torch.tanh(x)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        first = self.drop(self.hidden(tokens, mask, segments)[:, 0])
        return self.classes(self.drop(self.activate(self.dense(first))))


class ForTokenClassification(TextEncoder):
    """tokens (b, t) -> logits (b, t, classes)"""

    def __init__(self, config: object):
        super().__init__(config)
        self.drop = nn.Dropout(self.head_dropout)
        self.tags = nn.Linear(self.config.width, len(self.config.labels))
        self.apply(draw_normal)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.tags(self.drop(self.hidden(tokens, mask, segments)))


class ForQuestionAnswering(TextEncoder):
    """[CLS] question [SEP] passage [SEP] (b, t) -> logits of the answer's start (b, t) and of its end (b, t)"""

    def __init__(self, config: object):
        super().__init__(config)
        self.span = SpanHead(self.config.width)
        self.apply(draw_normal)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.span(self.hidden(tokens, mask, segments))


def draw_normal(module: nn.Module) -> None:
    """Weights N(0, 0.02²), biases 0, as released."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
