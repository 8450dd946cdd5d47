"""Longformer: a RoBERTa whose tokens look at a window, and a few global ones at everything; cost grows with t.

    N(i) = {1..t} for i in G, else {j : |i − j| ≤ w} ∪ G        w is a radius; the file's `attention_window` is 2w
    everything else as in RoBERTa: positions from pad + 1, post-norm blocks, exact GELU

Per layer O(T (w + g) d) instead of O(T² d). With w ≥ T − 1 it is the full encoder. A dependency further than L w tokens
away cannot pass through L windows; through one global token it passes in two layers.

Which tokens are global: `roles` (b, t) is 0 for padding, 1 for a token, 2 for a global one. The classifier takes the
first token by itself, question answering the question (all before the first separator); masked language modelling has
none unless it is told. Global rows have projections of their own, as released; MF 35.5 and its cost take the same ones
(`descend.nn.attention.sliding_window.GlobalWindow`). The released model has no dilation (`WindowAttention` has it).

Systems: longformer
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self, cast

import torch
from torch import Tensor, nn

from descend.models.bert import Encoded, encoder_keys, linear_keys, normal_init
from descend.models.roberta import positions
from descend.nn.attention.sliding_window import SeparateGlobalWindow
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.heads import MaskedHead, Pooler, SpanHead
from descend.nn.text_embeddings import TextEmbeddings
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, tie


@dataclass(frozen=True)
class Windows:
    """Whole windows, two radii wide: one for all layers, or one for each."""

    sizes: tuple[int, ...] = (512,)

    def radii(self, depth: int) -> list[int]:
        """w of every layer."""
        sizes = self.sizes * depth if len(self.sizes) == 1 else self.sizes
        if len(sizes) != depth or any(size < 2 or size % 2 for size in sizes):
            raise ValueError(
                f"attention_window {list(self.sizes)}: give one even number, or one for each of {depth} layers"
            )
        return [size // 2 for size in sizes]

    @classmethod
    def read(cls, values: int | list[int]) -> Self:
        """From `attention_window`."""
        return cls((values,) if isinstance(values, int) else tuple(values))

    def written(self) -> int | list[int]:
        """As `attention_window`."""
        return list(self.sizes) if len(self.sizes) > 1 else self.sizes[0]


@dataclass(frozen=True)
class LongformerConfig:
    """The numbers of a Longformer; what a file leaves out takes these defaults."""

    vocab: int = 30522
    context: int = 512
    """Rows of the position table: pad + 1 more than the longest text."""
    width: int = 768
    depth: int = 12
    heads: int = 12
    hidden: int = 3072
    segments: int = 2
    windows: Windows = field(default_factory=Windows)
    dropout: float = 0.1
    eps: float = 1e-12
    pad: int = 1
    """The token that fills up short texts."""
    sep: int = 2
    """The token between question and passage."""
    labels: Labels = field(default_factory=Labels)


class Block(EncoderBlock):
    """An encoder block with a window and global tokens in the place of full attention."""

    def __init__(self, width: int, heads: int, hidden: int, radius: int, dropout: float, eps: float):
        super().__init__(width, heads, hidden, nn.GELU(), dropout, eps)
        self.attn = SeparateGlobalWindow(width, heads, radius, dropout)


class LongformerEncoder(Pretrained):
    """Embeddings and blocks. `roles` (b, t): 0 padding, 1 token, 2 global token; none: all are tokens."""

    Config = LongformerConfig

    def __init__(self, config: LongformerConfig):
        super().__init__()
        c = self.config = config
        self.embed = TextEmbeddings(c.vocab, c.context, c.segments, c.width, c.eps, c.dropout)
        self.encoder = Encoder(
            Block(c.width, c.heads, c.hidden, radius, c.dropout, c.eps) for radius in c.windows.radii(c.depth)
        )

    def encoded(self, tokens: Tensor, roles: Tensor | None = None) -> Tensor:
        """The last block's vectors (b, t, d)."""
        c, t = self.config, tokens.shape[1]
        longest = c.context - c.pad - 1
        if t > longest:
            raise ValueError(f"{t} tokens, but this model has positions for {longest} (its context without the offset)")
        x = self.embed(tokens, positions(tokens, c.pad))
        for block in self.encoder.blocks:
            x = block(x, None if roles is None else roles[:, None, None])
        return cast("Tensor", x)


class Longformer(LongformerEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""

    def __init__(self, config: LongformerConfig):
        super().__init__(config)
        self.pooler = Pooler(config.width)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, roles: Tensor | None = None) -> Encoded:
        x = self.encoded(tokens, roles)
        return Encoded(x, self.pooler(x))


class LongformerForMaskedLM(LongformerEncoder):
    """tokens (b, t) -> logits (b, t, v); with `at` (b, t), only at its n true positions: (n, v)"""

    def __init__(self, config: LongformerConfig):
        super().__init__(config)
        self.masked = MaskedHead(config.width, config.vocab, config.eps)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, roles: Tensor | None = None, at: Tensor | None = None) -> Tensor:
        x = self.encoded(tokens, roles)
        return cast("Tensor", self.masked(x if at is None else x[at], self.embed.token.weight))


class LongformerForSequenceClassification(LongformerEncoder):
    """tokens (b, t) -> logits (b, classes): U drop(tanh(W drop(x_1) + b)) + c; the first token is global"""

    def __init__(self, config: LongformerConfig):
        super().__init__(config)
        self.drop = nn.Dropout(config.dropout)
        self.dense = nn.Linear(config.width, config.width)
        self.classes = nn.Linear(config.width, len(config.labels))
        self.apply(normal_init)

    def forward(self, tokens: Tensor, roles: Tensor | None = None) -> Tensor:
        first = torch.arange(tokens.shape[1], device=tokens.device) == 0
        roles = (torch.ones_like(tokens) if roles is None else roles).masked_fill(first, 2)
        x = self.drop(self.encoded(tokens, roles)[:, 0])
        return cast("Tensor", self.classes(self.drop(torch.tanh(self.dense(x)))))


class LongformerForQuestionAnswering(LongformerEncoder):
    """[CLS] question [SEP] passage .. (b, t) -> logits of the answer's start and end (b, t); the question is global"""

    def __init__(self, config: LongformerConfig):
        super().__init__(config)
        self.span = SpanHead(config.width)
        self.apply(normal_init)

    def forward(self, tokens: Tensor, roles: Tensor | None = None) -> tuple[Tensor, Tensor]:
        question = (tokens == self.config.sep).cumsum(dim=1) == 0
        roles = (torch.ones_like(tokens) if roles is None else roles).masked_fill(question, 2)
        return cast("tuple[Tensor, Tensor]", self.span(self.encoded(tokens, roles)))


SIZES = {
    "longformer-base-4096": LongformerConfig(vocab=50265, context=4098, segments=1, eps=1e-5),
    "longformer-large-4096": LongformerConfig(
        vocab=50265, context=4098, segments=1, eps=1e-5, width=1024, depth=24, heads=16, hidden=4096
    ),
}
PARAMETERS = {"longformer-base-4096": 148_711_257, "longformer-large-4096": 434_653_273}  # masked LM
TINY = LongformerConfig(
    vocab=61, context=40, width=32, depth=2, heads=4, hidden=48, segments=1, windows=Windows((4, 6)), dropout=0.0
)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Tokens and roles, with a global token and padding."""
    tokens = torch.randint(3, 61, (2, 13), generator=torch.Generator().manual_seed(0))
    roles = torch.ones_like(tokens)
    roles[:, 0], roles[1, -3:] = 2, 0
    return tokens, roles


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "LongformerModel": Longformer,
    "LongformerForMaskedLM": LongformerForMaskedLM,
    "LongformerForSequenceClassification": LongformerForSequenceClassification,
    "LongformerForQuestionAnswering": LongformerForQuestionAnswering,
}

LAYOUT = Layout(
    architecture="LongformerForMaskedLM",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "segments": "type_vocab_size",
        "windows": "attention_window",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "eps": "layer_norm_eps",
        "pad": "pad_token_id",
        "sep": "sep_token_id",
        "labels": "id2label",
    },
    parts={"labels": Labels, "windows": Windows},
    fixed={"hidden_act": "gelu", "tie_word_embeddings": True},
    bare_prefix="longformer.",
)

SELF = "longformer.encoder.layer.{}.attention.self"
GLOBAL = {"q_global": "query_global", "k_global": "key_global", "v_global": "value_global"}
KEYS = [
    *encoder_keys("longformer"),
    *(r for a, b in GLOBAL.items() for r in linear_keys(f"encoder.blocks.{{}}.attn.{a}", f"{SELF}.{b}")),
    *linear_keys("masked.dense", "lm_head.dense"),
    *linear_keys("masked.norm", "lm_head.layer_norm"),
    rename("masked.bias", "lm_head.bias"),
    tie("lm_head.decoder.weight", "longformer.embeddings.word_embeddings.weight"),
    tie("lm_head.decoder.bias", "lm_head.bias"),
    *linear_keys("dense", "classifier.dense"),
    *linear_keys("classes", "classifier.out_proj"),
    *linear_keys("span", "qa_outputs"),
]
