"""RoBERTa: BERT's encoder without segments and without next-sentence prediction, pre-trained with fresh masks.

    h_t^0 = norm(E_tok[x_t] + E_pos[pad + t])            t = 1, 2, ..: positions begin behind the padding token's number
    blocks as in BERT, norm after the sum                 (MF 34.3 writes them norm first; the released ones are not)
    min E_x E_M L_MLM(x, M)                               a new mask M each time (`descend.data.text.masking.Dynamic`)

With pad = 1 positions are 2, 3, .. and a text of 512 tokens needs 514 rows. Padding keeps the row of `pad`. The files
hold one segment row, added to every token: a constant. The classifier has a tanh layer of its own, no pooler.

Systems: roberta
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor, nn

from descend.models.bert import LAYOUT as BERT_LAYOUT
from descend.models.bert import Encoded, encoder_keys, linear_keys, normal_init
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.heads import MaskedHead, Pooler, SpanHead
from descend.nn.text_embeddings import TextEmbeddings
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, tie


@dataclass(frozen=True)
class RobertaConfig:
    """The numbers of a RoBERTa; what a file leaves out takes these defaults."""

    vocab: int = 50265
    context: int = 512
    """Rows of the position table: pad + 1 more than the longest text."""
    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    segments: int = 2
    dropout: float = 0.1
    head_dropout: float | None = None
    """Before a classifier; none: the same."""
    eps: float = 1e-12
    pad: int = 1
    """The token that fills up short texts."""
    labels: Labels = field(default_factory=Labels)


def positions(tokens: Tensor, pad: int) -> Tensor:
    """pad + 1, pad + 2, .. for the tokens that are not padding, and pad for those that are: (b, t) -> (b, t)"""
    is_real = tokens != pad
    return is_real.cumsum(dim=1) * is_real + pad


class RobertaEncoder(Pretrained):
    """Embeddings and blocks. `mask` (b, t) is true for real tokens, or holds the lengths (b)."""

    Config = RobertaConfig

    def __init__(self, config: RobertaConfig):
        super().__init__()
        c = self.config = config
        self.embed = TextEmbeddings(c.vocab, c.context, c.segments, c.width, c.eps, c.dropout)
        self.encoder = Encoder(
            EncoderBlock(c.width, c.heads, c.hidden, nn.GELU(), c.dropout, c.eps) for _ in range(c.depth)
        )

    @property
    def longest(self) -> int:
        """The most tokens of a text: the first pad + 1 rows of the position table are not used."""
        return self.config.context - self.config.pad - 1

    def embedded(self, tokens: Tensor) -> Tensor:
        """h^0 (b, t, d)"""
        t = tokens.shape[1]
        if t > self.longest:
            raise ValueError(f"{t} tokens, but this model has positions for {self.longest} (its context, less pad + 1)")
        return cast("Tensor", self.embed(tokens, positions(tokens, self.config.pad)))

    def hidden(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """The last block's vectors (b, t, d)."""
        return cast("Tensor", self.encoder(self.embedded(tokens), mask))

    def layers(self, tokens: Tensor, mask: Tensor | None = None) -> list[Tensor]:
        """The embeddings, then every block's vectors: depth + 1 tensors (b, t, d)."""
        return self.encoder.layers(self.embedded(tokens), mask)

    def head_drop(self) -> nn.Dropout:
        """The dropout before a classifier."""
        c = self.config
        return nn.Dropout(c.dropout if c.head_dropout is None else c.head_dropout)


class Roberta(RobertaEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""

    def __init__(self, config: RobertaConfig):
        super().__init__(config)
        self.pooler = Pooler(config.width)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Encoded:
        x = self.hidden(tokens, mask)
        return Encoded(x, self.pooler(x))


class RobertaForMaskedLM(RobertaEncoder):
    """tokens (b, t) -> logits (b, t, v); with `at` (b, t), only at its n true positions: (n, v)"""

    def __init__(self, config: RobertaConfig):
        super().__init__(config)
        self.masked = MaskedHead(config.width, config.vocab, config.eps)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, at: Tensor | None = None) -> Tensor:
        x = self.hidden(tokens, mask)
        return cast("Tensor", self.masked(x if at is None else x[at], self.embed.token.weight))


class RobertaForSequenceClassification(RobertaEncoder):
    """tokens (b, t) -> logits (b, classes): U drop(tanh(W drop(x_1) + b)) + c"""

    def __init__(self, config: RobertaConfig):
        super().__init__(config)
        self.drop = self.head_drop()
        self.dense = nn.Linear(config.width, config.width)
        self.classes = nn.Linear(config.width, len(config.labels))
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        first = self.drop(self.hidden(tokens, mask)[:, 0])
        return cast("Tensor", self.classes(self.drop(torch.tanh(self.dense(first)))))


class RobertaForTokenClassification(RobertaEncoder):
    """tokens (b, t) -> logits (b, t, classes)"""

    def __init__(self, config: RobertaConfig):
        super().__init__(config)
        self.drop = self.head_drop()
        self.tags = nn.Linear(config.width, len(config.labels))
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return cast("Tensor", self.tags(self.drop(self.hidden(tokens, mask))))


class RobertaForQuestionAnswering(RobertaEncoder):
    """tokens (b, t) -> logits of the answer's start (b, t) and of its end (b, t)"""

    def __init__(self, config: RobertaConfig):
        super().__init__(config)
        self.span = SpanHead(config.width)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return cast("tuple[Tensor, Tensor]", self.span(self.hidden(tokens, mask)))


SIZES = {
    "roberta-base": RobertaConfig(context=514, segments=1, eps=1e-5),
    "roberta-large": RobertaConfig(context=514, segments=1, eps=1e-5, width=1024, depth=24, heads=16, hidden=4096),
}
PARAMETERS = {"roberta-base": 124_645_632, "roberta-large": 355_359_744}
BY_HEAD = {  # the base size, two classes
    "RobertaModel": 124_645_632,
    "RobertaForMaskedLM": 124_697_433,
    "RobertaForSequenceClassification": 124_647_170,
    "RobertaForTokenClassification": 124_056_578,
    "RobertaForQuestionAnswering": 124_056_578,
}
TINY = RobertaConfig(vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, segments=1, dropout=0.0)

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "RobertaModel": Roberta,
    "RobertaForMaskedLM": RobertaForMaskedLM,
    "RobertaForSequenceClassification": RobertaForSequenceClassification,
    "RobertaForTokenClassification": RobertaForTokenClassification,
    "RobertaForQuestionAnswering": RobertaForQuestionAnswering,
}

LAYOUT = replace(BERT_LAYOUT, architecture="RobertaModel", bare_prefix="roberta.")

KEYS = [
    *encoder_keys("roberta"),
    *linear_keys("masked.dense", "lm_head.dense"),
    *linear_keys("masked.norm", "lm_head.layer_norm"),
    rename("masked.bias", "lm_head.bias"),
    tie("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"),
    tie("lm_head.decoder.bias", "lm_head.bias"),
    *linear_keys("dense", "classifier.dense"),
    *linear_keys("classes", "classifier.out_proj"),
    *linear_keys("tags", "classifier"),
    *linear_keys("span", "qa_outputs"),
]
