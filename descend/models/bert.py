"""BERT: a transformer encoder that reads in both directions, pre-trained by filling in masked tokens.

    h_t^0 = norm(E_tok[x_t] + E_pos[t] + E_seg[s_t])
    Y = norm(H + attention(H)),   H' = norm(Y + W_2 gelu(W_1 Y + b_1) + b_2)             post-norm, no causal mask
    L = L_MLM + λ L_NSP                                                                  (`descend.tasks.masked`)

GELU is the exact one, as released (MF prints ReLU). Next-sentence prediction and classification read the first token
[CLS] through a tanh layer, the pooler; DLN says that the <CLS> output is not used in pre-training, an erratum. λ = 1.
Masked-LM and the heads for tags and spans have no pooler.

Parameters: (V + T + 2) d + 2 d + depth (4 (d² + d) + 2 d h + h + d + 4 d) + pooler d² + d, h = 4 d: 109.5M and 335.1M.

Systems: bert, encoder-fine-tuning-heads, next-sentence-prediction
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.heads import MaskedHead, Pooler, SpanHead
from descend.nn.text_embeddings import TextEmbeddings
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, drop, rename, tie


@dataclass(frozen=True)
class BertConfig:
    """The numbers of a BERT; the defaults are those of the base size."""

    vocab: int = 30522
    context: int = 512
    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    segments: int = 2
    dropout: float = 0.1
    head_dropout: float | None = None
    """Before a classifier; none: the same."""
    eps: float = 1e-12
    pad: int = 0
    """The token that fills up short texts."""
    labels: Labels = field(default_factory=Labels)


class Encoded(NamedTuple):
    """hidden (b, t, d): a vector a token; pooled (b, d): one for the text."""

    hidden: Tensor
    pooled: Tensor


class BertEncoder(Pretrained):
    """Embeddings and blocks: what every BERT stands on.

    `mask` (b, t) is true for real tokens, or holds the lengths (b); without it no token is padding. `segments` (b, t)
    is 0 for the first text and 1 for the second; without it all is one text.
    """

    Config = BertConfig

    def __init__(self, config: BertConfig):
        super().__init__()
        c = self.config = config
        self.embed = TextEmbeddings(c.vocab, c.context, c.segments, c.width, c.eps, c.dropout)
        self.encoder = Encoder(
            EncoderBlock(c.width, c.heads, c.hidden, nn.GELU(), c.dropout, c.eps) for _ in range(c.depth)
        )

    @property
    def longest(self) -> int:
        """The most tokens of a text."""
        return self.config.context

    def embedded(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        """h^0 (b, t, d)"""
        t = tokens.shape[1]
        if t > self.longest:
            raise ValueError(f"{t} tokens, but this model has positions for {self.longest} (its context)")
        return cast("Tensor", self.embed(tokens, torch.arange(t, device=tokens.device), segments))

    def hidden(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """The last block's vectors (b, t, d)."""
        return cast("Tensor", self.encoder(self.embedded(tokens, segments), mask))

    def layers(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> list[Tensor]:
        """The embeddings, then every block's vectors: depth + 1 tensors (b, t, d)."""
        return self.encoder.layers(self.embedded(tokens, segments), mask)

    def head_drop(self) -> nn.Dropout:
        """The dropout before a classifier."""
        c = self.config
        return nn.Dropout(c.dropout if c.head_dropout is None else c.head_dropout)


class Bert(BertEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.pooler = Pooler(config.width)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Encoded:
        x = self.hidden(tokens, mask, segments)
        return Encoded(x, self.pooler(x))


class BertForMaskedLM(BertEncoder):
    """tokens (b, t) -> logits (b, t, v); with `at` (b, t), only at its n true positions: (n, v)"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked = MaskedHead(config.width, config.vocab, config.eps)
        self.apply(normal_init)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None, at: Tensor | None = None
    ) -> Tensor:
        x = self.hidden(tokens, mask, segments)
        return cast("Tensor", self.masked(x if at is None else x[at], self.embed.token.weight))


class BertForNextSentencePrediction(BertEncoder):
    """tokens and segments (b, t) -> logits (b, 2): class 0, the second text follows the first; class 1, it does not"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.pooler = Pooler(config.width)
        self.follows = nn.Linear(config.width, 2)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return cast("Tensor", self.follows(self.pooler(self.hidden(tokens, mask, segments))))


class BertForPreTraining(BertEncoder):
    """tokens and segments (b, t) -> the logits of both objectives: (b, t, v) or (n, v), and (b, 2)"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.masked = MaskedHead(config.width, config.vocab, config.eps)
        self.pooler = Pooler(config.width)
        self.follows = nn.Linear(config.width, 2)
        self.apply(normal_init)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None, at: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        x = self.hidden(tokens, mask, segments)
        words = self.masked(x if at is None else x[at], self.embed.token.weight)
        return words, self.follows(self.pooler(x))


class BertForSequenceClassification(BertEncoder):
    """tokens (b, t) -> logits (b, classes), from the first token; a pair of texts is given with its segments"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.pooler = Pooler(config.width)
        self.drop = self.head_drop()
        self.classes = nn.Linear(config.width, len(config.labels))
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return cast("Tensor", self.classes(self.drop(self.pooler(self.hidden(tokens, mask, segments)))))


class BertForTokenClassification(BertEncoder):
    """tokens (b, t) -> logits (b, t, classes)"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.drop = self.head_drop()
        self.classes = nn.Linear(config.width, len(config.labels))
        self.apply(normal_init)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return cast("Tensor", self.classes(self.drop(self.hidden(tokens, mask, segments))))


class BertForQuestionAnswering(BertEncoder):
    """[CLS] question [SEP] passage [SEP] (b, t) -> logits of the answer's start (b, t) and of its end (b, t)"""

    def __init__(self, config: BertConfig):
        super().__init__(config)
        self.span = SpanHead(config.width)
        self.apply(normal_init)

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        return cast("tuple[Tensor, Tensor]", self.span(self.hidden(tokens, mask, segments)))


def normal_init(module: nn.Module) -> None:
    """Weights N(0, 0.02²), biases 0, as released."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


SIZES = {"bert-base": BertConfig(), "bert-large": BertConfig(width=1024, depth=24, heads=16, hidden=4096)}
PARAMETERS = {"bert-base": 109_482_240, "bert-large": 335_141_888}
BY_HEAD = {  # the base size, two classes
    "BertModel": 109_482_240,
    "BertForMaskedLM": 109_514_298,
    "BertForNextSentencePrediction": 109_483_778,
    "BertForPreTraining": 110_106_428,
    "BertForSequenceClassification": 109_483_778,
    "BertForTokenClassification": 108_893_186,
    "BertForQuestionAnswering": 108_893_186,
}
TINY = BertConfig(vocab=61, context=24, width=32, depth=2, heads=4, hidden=48, dropout=0.0)

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "BertModel": Bert,
    "BertForMaskedLM": BertForMaskedLM,
    "BertForNextSentencePrediction": BertForNextSentencePrediction,
    "BertForPreTraining": BertForPreTraining,
    "BertForSequenceClassification": BertForSequenceClassification,
    "BertForTokenClassification": BertForTokenClassification,
    "BertForQuestionAnswering": BertForQuestionAnswering,
}

LAYOUT = Layout(
    architecture="BertModel",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "segments": "type_vocab_size",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "head_dropout": "classifier_dropout",
        "eps": "layer_norm_eps",
        "pad": "pad_token_id",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={
        "hidden_act": "gelu",
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
        "position_embedding_type": "absolute",
    },
    bare_prefix="bert.",
)


def norm_keys(ours: str, theirs: str) -> list[Rule]:
    """A norm's scale and shift; files of 2018 call them gamma and beta."""
    pairs = (("weight", "weight"), ("bias", "bias"), ("weight", "gamma"), ("bias", "beta"))
    return [rename(f"{ours}.{a}", f"{theirs}.{b}") for a, b in pairs]


def linear_keys(ours: str, theirs: str) -> list[Rule]:
    """A linear map's weight and bias."""
    return [rename(f"{ours}.{p}", f"{theirs}.{p}") for p in ("weight", "bias")]


def encoder_keys(prefix: str) -> list[Rule]:
    """Embeddings, blocks and pooler, which RoBERTa names alike."""
    tables = {"token": "word", "position": "position", "segment": "token_type"}
    layer, block = f"{prefix}.encoder.layer.{{}}", "encoder.blocks.{}"
    qkv = {"q": "query", "k": "key", "v": "value"}
    return [
        *(rename(f"embed.{a}.weight", f"{prefix}.embeddings.{b}_embeddings.weight") for a, b in tables.items()),
        *norm_keys("embed.norm", f"{prefix}.embeddings.LayerNorm"),
        *(r for a, b in qkv.items() for r in linear_keys(f"{block}.attn.{a}", f"{layer}.attention.self.{b}")),
        *linear_keys(f"{block}.attn.out", f"{layer}.attention.output.dense"),
        *norm_keys(f"{block}.norm_1", f"{layer}.attention.output.LayerNorm"),
        *linear_keys(f"{block}.mlp.up", f"{layer}.intermediate.dense"),
        *linear_keys(f"{block}.mlp.down", f"{layer}.output.dense"),
        *norm_keys(f"{block}.norm_2", f"{layer}.output.LayerNorm"),
        *linear_keys("pooler.dense", f"{prefix}.pooler.dense"),
        drop(f"{prefix}.embeddings.position_ids"),
    ]


KEYS = [
    *encoder_keys("bert"),
    *linear_keys("masked.dense", "cls.predictions.transform.dense"),
    *norm_keys("masked.norm", "cls.predictions.transform.LayerNorm"),
    rename("masked.bias", "cls.predictions.bias"),
    tie("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    tie("cls.predictions.decoder.bias", "cls.predictions.bias"),
    *linear_keys("follows", "cls.seq_relationship"),
    *linear_keys("classes", "classifier"),
    *linear_keys("span", "qa_outputs"),
]
