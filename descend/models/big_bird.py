"""BigBird: a BERT whose blocks of tokens see a window, both ends and random blocks; cost grows with t.

    block i sees   {i − 1, i, i + 1}  ∪  {first, last}  ∪  {r random}          the first and the last see everything
    everything else as in BERT, with the tanh GELU, and dropout before the norm of the embeddings

As released: a text of at most (5 + 2r) blocks gets full attention. In training the random blocks are those that
transformers draws for layer l from the seed l (numpy's generator of old), among the first 2r + 5 blocks; texts of
1024, 3072 and 4096 tokens have the plan of the paper, among the first 1024 tokens. In evaluation transformers draws
none and lists the first block r times more, so that its keys count 1 + r times: a bias of log(1 + r) on their scores.
So does this model, to give the same numbers. Random blocks at all times, of the whole text, are
`nn.attention.big_bird.BigBirdAttention`: the book's form. The published files are of the class for pre-training.

Systems: bigbird
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from descend.models._text_heads import (
    ForMaskedLM,
    ForPreTraining,
    ForSequenceClassification,
    ForTokenClassification,
    TextEncoder,
    WithPooler,
)
from descend.models.bert import encoder_keys, norm_keys
from descend.nn.attention.big_bird import BigBirdAttention, big_bird_plan
from descend.nn.attention.self_attention import SelfAttention
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.gelu import GELUTanh
from descend.nn.heads import MaskedHead
from descend.nn.text_embeddings import TextEmbeddings
from descend.ranges import Depth, Fraction, Length, Share, Token, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair, tie

PAPER_LENGTHS, PAPER_REACH = (1024, 3072, 4096), 1024  # tokens


@dataclass(frozen=True)
class BigBirdConfig:
    """The configuration of a BigBird; the defaults are those of the base size."""

    vocab: Length = 50358
    context: Length = 4096
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    segments: Width = 2
    attention: str = "block_sparse"
    """Or "original_full"."""
    size: Width = 64
    """Tokens in a block."""
    count: Depth = 3
    """Random blocks that each block sees."""
    dropout: Fraction = 0.1
    eps: Share = 1e-12
    pad: Token = 0
    """The token that fills up short texts."""
    head_dropout: Fraction | None = None
    """Before a classifier; none: the same."""
    labels: Labels = field(default_factory=Labels)


def released_blocks(n: int, count: int, heads: int, seed: int) -> Tensor:
    """Random blocks of n, drawn among the first 2r + 5, row by row: (heads, n, count); the ends mean nothing."""
    pool, random, found = 2 * count + 5, np.random.RandomState(seed), torch.zeros(heads, n, count, dtype=torch.long)
    for row in range(1, n):
        banned = {row - 1, row, row + 1, 0, pool - 1}
        banned |= {pool - 2} if row == 1 else {1} if row == pool - 2 else set()
        for head in range(heads):
            shuffled = random.permutation(pool)
            found[head, row] = torch.tensor([b for b in shuffled.tolist() if b not in banned][:count])
    return found


def paper_blocks(n: int, most: int, reach: int, count: int, heads: int, seed: int) -> Tensor:
    """Random blocks of n out of at most `most`, among the first `reach`, head by head: (heads, n, count)."""
    random, found = np.random.RandomState(seed), torch.zeros(heads, most, count, dtype=torch.long)
    middle = np.arange(1, min(reach, most - 1))
    for head in range(heads):
        for row in range(1, most - 1):
            allowed = middle if row >= most - 3 and row > 2 else middle[abs(middle - row) > 1]
            found[head, row] = torch.from_numpy(random.permutation(allowed)[:count])
    return found[:, :n]


class ReleasedBigBird(BigBirdAttention):
    """BigBird attention with the blocks that transformers takes: random in training, the first one in evaluation."""

    def __init__(self, width: int, heads: int, size: int, count: int, seed: int, context: int, dropout: float):
        super().__init__(width, heads, size, count, seed=seed, dropout=dropout)
        self.context = context

    def plan(self, t: int) -> Tensor:
        n = -(-t // self.size)
        if n not in self.plans:
            self.plans[n] = self.random_part(n)
        random = self.plans[n] if self.training else torch.zeros_like(self.plans[n])
        near = big_bird_plan(n, self.radius, self.ends, 0, self.heads, 0)
        return torch.cat([near, random[:, self.ends : n - self.ends]], dim=-1)

    def random_part(self, n: int) -> Tensor:
        """(heads, n, count)"""
        if n * self.size not in PAPER_LENGTHS:
            return released_blocks(n, self.count, self.heads, self.seed)
        most = self.context // self.size
        reach = most if 2 * self.size >= PAPER_REACH else PAPER_REACH // self.size
        return paper_blocks(n, most, reach, self.count, self.heads, self.seed)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        if q.shape[1] <= (5 + 2 * self.count) * self.size:
            return SelfAttention.mix(self, q, k, v, keep, causal)
        return super().mix(q, k, v, keep, causal)


class Block(EncoderBlock):
    """An encoder block with the given attention, and the tanh GELU."""

    def __init__(self, attn: SelfAttention, width: int, hidden: int, dropout: float, eps: float):
        super().__init__(width, attn.heads, hidden, GELUTanh(), dropout, eps)
        self.attn = attn


class Embeddings(TextEmbeddings):
    """norm(drop(E_tok + E_pos + E_seg)): BERT has norm and dropout the other way round."""

    def forward(self, tokens: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        segments = torch.zeros_like(tokens) if segments is None else segments
        x = self.token(tokens) + self.segment(segments) + self.position(positions)
        return self.norm(self.drop(x))


class TanhHead(MaskedHead):
    """E norm(gelu(W x + b)) + c with the tanh GELU."""

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        return F.linear(self.norm(F.gelu(self.dense(x), approximate="tanh")), embedding, self.bias)


class BigBirdEncoder(TextEncoder):
    """BERT's embeddings, dropout before their norm, and blocks that see a part of the text."""

    Config = BigBirdConfig

    def __init__(self, config: BigBirdConfig):
        super().__init__()
        c = self.config = config
        self.embed = Embeddings(c.vocab, c.context, c.segments, c.width, c.eps, c.dropout)
        self.encoder = Encoder(
            Block(make_attention(c, layer), c.width, c.hidden, c.dropout, c.eps) for layer in range(c.depth)
        )

    @property
    def head_dropout(self) -> float:
        c = self.config
        return c.dropout if c.head_dropout is None else c.head_dropout


def make_attention(config: BigBirdConfig, layer: int) -> SelfAttention:
    """The attention that the file asks for; a layer's number is its seed."""
    c = config
    if c.attention == "original_full":
        return SelfAttention(c.width, c.heads, dropout=c.dropout)
    if c.attention != "block_sparse":
        raise ValueError(f"attention_type {c.attention!r} is unknown; give 'block_sparse' or 'original_full'")
    return ReleasedBigBird(c.width, c.heads, c.size, c.count, layer, c.context, c.dropout)


class BigBird(WithPooler, BigBirdEncoder):
    """tokens (b, t) -> vectors (b, t, d) and the text's vector (b, d)"""


class BigBirdForMaskedLM(ForMaskedLM, BigBirdEncoder):
    """Pre-training by masked tokens alone."""

    Head = TanhHead


class BigBirdForPreTraining(ForPreTraining, BigBirdEncoder):
    """Both objectives of BERT."""

    Head = TanhHead


class BigBirdForSequenceClassification(ForSequenceClassification, BigBirdEncoder):
    """A class for a text; φ is the tanh GELU."""

    def activate(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh")


class BigBirdForTokenClassification(ForTokenClassification, BigBirdEncoder):
    """A class for each token."""


SIZES = {
    "bigbird-roberta-base": BigBirdConfig(),
    "bigbird-roberta-large": BigBirdConfig(width=1024, depth=24, heads=16, hidden=4096),
}
PARAMETERS = {"bigbird-roberta-base": 127_520_694, "bigbird-roberta-large": 359_176_374}  # masked LM, no pooler
TINY = BigBirdConfig(
    vocab=61, context=64, width=32, depth=2, heads=4, hidden=48, size=4, count=1, dropout=0.0
)  # fmt: skip


def TINY_INPUT() -> Tensor:
    """Tokens of more than 5 + 2r blocks, the last one not full."""
    return torch.randint(61, (2, 43), generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "BigBirdModel": BigBird,
    "BigBirdForMaskedLM": BigBirdForMaskedLM,
    "BigBirdForPreTraining": BigBirdForPreTraining,
    "BigBirdForSequenceClassification": BigBirdForSequenceClassification,
    "BigBirdForTokenClassification": BigBirdForTokenClassification,
}

LAYOUT = Layout(
    architecture="BigBirdForMaskedLM",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "segments": "type_vocab_size",
        "attention": "attention_type",
        "size": "block_size",
        "count": "num_random_blocks",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "eps": "layer_norm_eps",
        "pad": "pad_token_id",
        "head_dropout": "classifier_dropout",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={
        "hidden_act": "gelu_new",
        "use_bias": True,
        "rescale_embeddings": False,
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    bare_prefix="bert.",
)

KEYS = [
    *(rename(f"pooler.dense.{p}", f"bert.pooler.{p}") for p in ("weight", "bias")),
    *encoder_keys("bert"),
    *rename_pair("masked.dense", "cls.predictions.transform.dense"),
    *norm_keys("masked.norm", "cls.predictions.transform.LayerNorm"),
    rename("masked.bias", "cls.predictions.bias"),
    tie("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
    tie("cls.predictions.decoder.bias", "cls.predictions.bias"),
    *rename_pair("follows", "cls.seq_relationship"),
    *rename_pair("dense", "classifier.dense"),
    *rename_pair("classes", "classifier.out_proj"),
    *rename_pair("tags", "classifier"),
]
