"""Longformer: a RoBERTa whose tokens look at a window, and a few global ones at everything; cost grows with t.

    N(i) = {1..t} for i in G, else {j : |i − j| ≤ w} ∪ G        w is a radius; the file's `attention_window` is 2w
    everything else as in RoBERTa: positions from pad + 1, post-norm blocks, exact GELU

Per layer O(T (w + g) d) instead of O(T² d). With w ≥ T − 1 it is the full encoder. A dependency further than L w tokens
away cannot pass through L windows; through one global token it passes in two layers.

Which tokens are global: `mask` (b, t) is 0 for padding, 1 for a token, 2 for a global one. The classifier takes the
first token by itself, question answering the question (all before the first separator); masked language modelling has
none unless it is told. Global rows have projections of their own, and no window is dilated, as released. MF 35.5 and
its cost take the same projections for both, and allow dilation: `descend.models.longformer_shared`.

Systems: longformer
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor, nn

from descend.models._text_heads import (
    ForMaskedLM,
    ForQuestionAnswering,
    ForSequenceClassification,
    ForTokenClassification,
    TextEncoder,
    WithPooler,
)
from descend.models.roberta import language_keys, positions
from descend.nn.attention.sliding_window import GlobalWindow, SeparateGlobalWindow
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.text_embeddings import TextEmbeddings
from descend.ranges import Depth, Fraction, Length, Share, Token, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename_pair


@dataclass(frozen=True)
class Windows:
    """Whole windows, two radii wide: one for all layers, or one for each."""

    sizes: tuple[Length, ...] = (512,)

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

    def write(self) -> int | list[int]:
        """As `attention_window`."""
        return list(self.sizes) if len(self.sizes) > 1 else self.sizes[0]


@dataclass(frozen=True)
class LongformerConfig:
    """The configuration of a Longformer; what a file leaves out takes these defaults."""

    vocab: Length = 30522
    context: Length = 512
    """Rows of the position table: pad + 1 more than the longest text."""
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    segments: Width = 2
    windows: Windows = field(default_factory=Windows)
    dropout: Fraction = 0.1
    eps: Share = 1e-12
    pad: Token = 1
    """The token that fills up short texts."""
    sep: Token = 2
    """The token between question and passage."""
    labels: Labels = field(default_factory=Labels)


class Block(EncoderBlock):
    """An encoder block with a window and global tokens in the place of full attention."""

    def __init__(self, attn: GlobalWindow, width: int, heads: int, hidden: int, dropout: float, eps: float):
        super().__init__(width, heads, hidden, nn.GELU(), dropout, eps)
        self.attn = attn


class LongformerEncoder(TextEncoder):
    """Embeddings and blocks. `mask` (b, t): 0 padding, 1 token, 2 global token; none: all are tokens."""

    Config = LongformerConfig

    def __init__(self, config: LongformerConfig):
        super().__init__()
        c = self.config = config
        self.embed = TextEmbeddings(c.vocab, c.context, c.segments, c.width, c.eps, c.dropout)
        self.encoder = Encoder(
            Block(attn, c.width, c.heads, c.hidden, c.dropout, c.eps) for attn in self.attentions(config)
        )

    def attentions(self, config: LongformerConfig) -> list[GlobalWindow]:
        """The attention of each layer: here with projections of their own for the global rows."""
        c = config
        return [SeparateGlobalWindow(c.width, c.heads, radius, c.dropout) for radius in c.windows.radii(c.depth)]

    @property
    def longest(self) -> int:
        """The most tokens of a text: the first pad + 1 rows of the position table are not used."""
        return self.config.context - self.config.pad - 1

    def positions(self, tokens: Tensor) -> Tensor:
        return positions(tokens, self.config.pad)

    def choose_global(self, tokens: Tensor) -> Tensor | None:
        """True (b, t) at the tokens that are global in any case."""
        return None

    def hidden(self, tokens: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        chosen = self.choose_global(tokens)
        if chosen is not None:
            mask = (torch.ones_like(tokens) if mask is None else mask).masked_fill(chosen, 2)
        x = self.embed_tokens(tokens, segments)
        for block in self.encoder.blocks:
            x = block(x, None if mask is None else mask[:, None, None])
        return x


class Longformer(WithPooler, LongformerEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""


class LongformerForMaskedLM(ForMaskedLM, LongformerEncoder):
    """Pre-training."""


class LongformerForSequenceClassification(ForSequenceClassification, LongformerEncoder):
    """A class for a text; the first token is global."""

    def choose_global(self, tokens: Tensor) -> Tensor:
        return (torch.arange(tokens.shape[1], device=tokens.device) == 0).expand_as(tokens)


class LongformerForTokenClassification(ForTokenClassification, LongformerEncoder):
    """A class for each token."""


class LongformerForQuestionAnswering(ForQuestionAnswering, LongformerEncoder):
    """[CLS] question [SEP] passage ..: where the answer starts and ends; the question is global."""

    def choose_global(self, tokens: Tensor) -> Tensor:
        return (tokens == self.config.sep).cumsum(dim=1) == 0


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
    """Tokens and mask, with a global token and padding."""
    tokens = torch.randint(3, 61, (2, 13), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(tokens)
    mask[:, 0], mask[1, -3:] = 2, 0
    return tokens, mask


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "LongformerModel": Longformer,
    "LongformerForMaskedLM": LongformerForMaskedLM,
    "LongformerForSequenceClassification": LongformerForSequenceClassification,
    "LongformerForTokenClassification": LongformerForTokenClassification,
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
    *language_keys("longformer"),
    *(r for a, b in GLOBAL.items() for r in rename_pair(f"encoder.blocks.{{}}.attn.{a}", f"{SELF}.{b}")),
]
