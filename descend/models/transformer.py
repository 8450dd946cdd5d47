"""The Transformer: encoder and decoder, post-norm, with sinusoidal positions (Vaswani et al. 2017).

    x_0 = √d E[source] + PE        x_l = EncoderBlock_l(x_{l-1})               l = 1..N
    y_0 = √d E[target] + PE        y_l = DecoderBlock_l(y_{l-1}, x_N)          the same x_N for every block
    logits = y_N W + b

The decoder reads the target moved right by one (`descend.tasks.sequence_to_sequence`), and writes token by token.
`tied` says which matrices are one: "all" (source, target and output), "embeddings" (source and target), "none". By that
and by the vocabulary the base size has

    V = 32000, all tied, attention biases, no output bias        60,522,496      DLN (44,138,496 in the blocks)
    V = 50000, all tied, output bias                             69,751,632      VOM, no attention biases
    V = 50000, one embedding, an output matrix with bias         95,351,632      VOM 12.8
    V = 50000, two embeddings, an output matrix with bias       120,951,632      VOM 12.4.1

Errata: VOM 12.8 counts 36M for the 12 blocks, which leaves out the attention to the source (they have 44.1M), and 86M
in all. It also drops the terms linear in the length: an encoder block costs 4 n² d + 8 n d² + 4 n d d_ff FLOPs, and
the first outgrows the others only beyond n = 2 d + d_ff = 3072. DLN says that precomputed positions end at 512;
sinusoids do not. The factor √d and the dropout are the paper's; the books do not print them.

Systems: encoder-decoder-transformer
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.add_norm import PostNorm
from descend.nn.attention.multi_head import Attention
from descend.nn.decoding.with_source import ANY_LENGTH, SourceDecoder, Target, evaluate_only
from descend.nn.encoder import Encoder, EncoderBlock
from descend.nn.encoder_decoder import DecoderLayer, visible
from descend.nn.mlp import MLP
from descend.ops.attention.positions import sinusoidal
from descend.ranges import Depth, Fraction, Length, Share, Token, Whole, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

TIED = ("all", "embeddings", "none")


@dataclass(frozen=True)
class TransformerConfig:
    """The configuration of a Transformer; the defaults are the base model's, with DLN's vocabulary."""

    vocab: Length = 32000
    width: Width = 512
    depth: Depth = 6
    heads: Width = 8
    hidden: Width = 2048
    dropout: Fraction = 0.1
    eps: Share = 1e-6
    tied: str = "all"
    attention_bias: bool = True
    head_bias: bool = False
    pad: Token = 0
    start: Whole = 0
    end: Token = 1


def decoder_block(
    width: int, heads: int, hidden: int, dropout: float, eps: float, attention_bias: bool = True
) -> DecoderLayer:
    """Masked self-attention, attention to the source and the feed-forward part, each followed by Add & Norm."""

    def attention() -> Attention:
        return Attention(width, heads, bias=attention_bias, dropout=dropout)

    def add() -> PostNorm:
        return PostNorm(nn.LayerNorm(width, eps), dropout)

    return DecoderLayer(attention(), add(), attention(), add(), MLP(width, hidden, nn.ReLU()), add())


class Transformer(Pretrained):
    """source (b, s) and target (b, t) -> logits (b, t, v)"""

    Config = TransformerConfig

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = self.config = config
        if c.tied not in TIED:
            raise ValueError(f"tied is {c.tied!r}: choose {', '.join(TIED)}")
        sizes = c.width, c.heads, c.hidden
        self.embed = nn.Embedding(c.vocab, c.width)
        self.target_embed = nn.Embedding(c.vocab, c.width) if c.tied == "none" else None
        self.encoder = Encoder(
            EncoderBlock(*sizes, nn.ReLU(), c.dropout, c.eps, c.attention_bias) for _ in range(c.depth)
        )
        self.blocks = nn.ModuleList(decoder_block(*sizes, c.dropout, c.eps, c.attention_bias) for _ in range(c.depth))
        self.head = None if c.tied == "all" else nn.Linear(c.width, c.vocab, bias=False)
        self.bias = nn.Parameter(torch.zeros(c.vocab)) if c.head_bias else None
        self.drop = nn.Dropout(c.dropout)
        for name, p in self.named_parameters():
            if "embed" in name or name == "head.weight":
                nn.init.normal_(p, std=c.width**-0.5)
            elif p.dim() > 1:
                nn.init.xavier_uniform_(p)
            elif name.endswith(("q.bias", "k.bias", "v.bias", "out.bias", "up.bias", "down.bias")):
                nn.init.zeros_(p)

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` (b, s) is True for the real tokens of the source; none: all are."""
        memory = self.encode(source, mask)
        y, seen = self.embed_at(target, self.places(target), of_target=True), visible(mask)
        for block in self.decoder_layers:
            y = block(y, memory, None, seen)
        return self.logits(y)

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        """x_N (b, s, d)"""
        x = self.embed_at(source, self.places(source), of_target=False)
        return self.encoder(x, mask)

    def embed_at(self, tokens: Tensor, positions: Tensor, of_target: bool) -> Tensor:
        table = self.target_embed if of_target and self.target_embed is not None else self.embed
        x = table(tokens) * math.sqrt(self.config.width)
        return self.drop(x + sinusoidal(positions, self.config.width).to(x.dtype))

    def logits(self, y: Tensor) -> Tensor:
        return F.linear(y, self.embed.weight if self.head is None else self.head.weight, self.bias)

    @staticmethod
    def places(tokens: Tensor) -> Tensor:
        return torch.arange(tokens.shape[1], device=tokens.device)

    @property
    def decoder_layers(self) -> Sequence[DecoderLayer]:
        return cast("Sequence[DecoderLayer]", self.blocks)

    @torch.no_grad()
    def alignment(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """(depth, b, h, t, s): where each target position looks in the source, block by block."""
        memory, found = self.encode(source, mask), []
        y, seen = self.embed_at(target, self.places(target), of_target=True), visible(mask)
        for block in self.decoder_layers:
            y, weights = block.forward_with_weights(y, memory, None, seen)
            found.append(weights)
        return torch.stack(found)

    @torch.inference_mode()
    def decoder(self, source: Tensor, mask: Tensor | None = None) -> SourceDecoder:
        """This model, having read these sources, as `descend.sampling` writes with it."""
        target = Target(lambda tokens, at: self.embed_at(tokens, at, of_target=True), self.decoder_layers, self.logits)
        with evaluate_only(self):
            return SourceDecoder(self, target, self.encode(source, mask), mask, ANY_LENGTH)


SIZES = {
    "transformer-base": TransformerConfig(),
    "transformer-base-37000": TransformerConfig(vocab=37000),
    "transformer-base-50000": TransformerConfig(vocab=50000, attention_bias=False, head_bias=True),
    "transformer-base-50000-head": TransformerConfig(
        vocab=50000, attention_bias=False, head_bias=True, tied="embeddings"
    ),
    "transformer-base-50000-untied": TransformerConfig(vocab=50000, attention_bias=False, head_bias=True, tied="none"),
    "transformer-big": TransformerConfig(vocab=37000, width=1024, heads=16, hidden=4096, dropout=0.3),
}
PARAMETERS = {
    "transformer-base": 60_522_496,
    "transformer-base-37000": 63_082_496,
    "transformer-base-50000": 69_751_632,
    "transformer-base-50000-head": 95_351_632,
    "transformer-base-50000-untied": 120_951_632,
    "transformer-big": 214_245_376,
}
TINY = TransformerConfig(vocab=61, width=32, depth=2, heads=4, hidden=48, tied="none", head_bias=True)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two sources and the beginnings of their targets."""
    random = torch.Generator().manual_seed(0)
    return torch.randint(61, (2, 7), generator=random), torch.randint(61, (2, 5), generator=random)


LAYOUT = Layout("Transformer")
