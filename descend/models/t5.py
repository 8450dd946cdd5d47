"""T5: encoder and decoder, pre-norm, with a relative position bias instead of positions.

    encoder   x ← x + SelfAttn(norm(x))           x ← x + FFN(norm(x))
    decoder   y ← y + MaskedSelfAttn(norm(y))     y ← y + CrossAttn(norm(y), H_enc)     y ← y + FFN(norm(y))
    logits    v1.0: E (norm(y) d^(−1/2)), E the embedding       v1.1: U norm(y), a matrix of its own

    score_ij = q_i · k_j + β[bucket(j − i)]       one table β a stack, shared by its layers; none in the cross-attention
    FFN       v1.0: W_o ReLU(W_i x)               v1.1: W_o (gelu(W_0 x) ⊙ W_1 x)

The norm is RMSNorm with ε inside the root, and a last one ends each stack. There are no biases (MF prints b_LM). This
is the released form: the scores are NOT divided by √d_k, which the initial values of W^Q, smaller by 1/√d_k, make up
for (MF and DLN print the division). Heads times head size is not the width in 3B and 11B.

Parameters: V d + L (4 d H k + 2 d f + 2 d) + L (8 d H k + 2 d f + 3 d) + 2 d + 2 · 32 H with the embedding tied.
Erratum: MF prints 770M for Large; its sizes give 737.7M.

Systems: t5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.add_norm import PreNorm, Stack
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.relative_bias import CausalRelativeBias, RelativeBias
from descend.nn.decoding.with_source import ANY_LENGTH, SourceDecoder, Target, evaluate_only
from descend.nn.encoder_decoder import DecoderLayer, EncoderLayer, visible
from descend.nn.gated_mlp import GatedMLP
from descend.nn.gelu import GELUTanh
from descend.ranges import Depth, Fraction, Length, Share, Token, Whole, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, copied, drop, rename, tie


@dataclass(frozen=True)
class T5Config:
    """The configuration of a T5; the defaults are the first Small."""

    vocab: Length = 32128
    width: Width = 512
    depth: Depth = 6
    decoder_depth: Depth = 6
    heads: Width = 8
    head_size: Width = 64
    hidden: Width = 2048
    feed_forward: str = "relu"
    tied: bool = True
    buckets: Width = 32
    farthest: Length = 128
    dropout: Fraction = 0.1
    eps: Share = 1e-6
    pad: Token = 0
    start: Whole = 0
    end: Token = 1


class Plain(nn.Module):
    """W_o ReLU(W_i x), without biases"""

    def __init__(self, width: int, hidden: int, dropout: float):
        super().__init__()
        self.inner, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.drop(self.inner(x).relu()))


def feed_forward(kind: str, width: int, hidden: int, dropout: float) -> nn.Module:
    """The feed-forward part of v1.0 ("relu") or of v1.1 ("gated-gelu")."""
    if kind == "relu":
        return Plain(width, hidden, dropout)
    if kind == "gated-gelu":
        return GatedMLP(width, hidden, nn.Sequential(GELUTanh(), nn.Dropout(dropout)))
    raise ValueError(f"feed_forward_proj is {kind!r}: choose relu (v1.0) or gated-gelu (v1.1)")


@dataclass(frozen=True)
class Parts:
    """How the pieces of a layer are made."""

    width: int
    heads: int
    head_size: int
    dropout: float
    eps: float

    def attention(self) -> Attention:
        return Attention(self.width, self.heads, None, self.head_size, bias=False, dropout=self.dropout, scale=1.0)

    def add(self) -> PreNorm:
        return PreNorm(nn.RMSNorm(self.width, self.eps), self.dropout)

    def last(self) -> nn.Module:
        return nn.Sequential(nn.RMSNorm(self.width, self.eps), nn.Dropout(self.dropout))

    def encoder_layer(self, mlp: nn.Module) -> EncoderLayer:
        return EncoderLayer(self.attention(), self.add(), mlp, self.add())

    def decoder_layer(self, mlp: nn.Module) -> DecoderLayer:
        return DecoderLayer(self.attention(), self.add(), self.attention(), self.add(), mlp, self.add())


class T5(Pretrained):
    """source (b, s) and target (b, t) -> logits (b, t, v)"""

    Config: ClassVar[type] = T5Config

    def __init__(self, config: T5Config):
        super().__init__()
        c = self.config = config
        parts = Parts(c.width, c.heads, c.head_size, c.dropout, c.eps)
        self.embed = nn.Embedding(c.vocab, c.width)
        self.bias = RelativeBias(c.heads, c.buckets, c.farthest)
        self.decoder_bias = CausalRelativeBias(c.heads, c.buckets, c.farthest)
        self.encoder = Stack(map(parts.encoder_layer, self.encoder_mlps()), parts.last())
        self.layers = nn.ModuleList(map(parts.decoder_layer, self.decoder_mlps()))
        self.last = parts.last()
        self.head = None if c.tied else nn.Linear(c.width, c.vocab, bias=False)
        self.drop = nn.Dropout(c.dropout)
        initialize(self, c.width, c.heads * c.head_size, c.hidden, c.head_size)

    def encoder_mlps(self) -> list[nn.Module]:
        """The feed-forward parts of the encoder's layers."""
        return [self.mlp() for _ in range(self.config.depth)]

    def decoder_mlps(self) -> list[nn.Module]:
        """The feed-forward parts of the decoder's layers."""
        return [self.mlp() for _ in range(self.config.decoder_depth)]

    def mlp(self) -> nn.Module:
        c = self.config
        return feed_forward(c.feed_forward, c.width, c.hidden, c.dropout)

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` (b, s) is True for the real tokens of the source; none: all are."""
        memory, t = self.encode(source, mask), target.shape[1]
        y, bias, seen = self.drop(self.embed(target)), self.decoder_bias(t, t), visible(mask)
        for layer in self.decoder_layers:
            y = layer(y, memory, bias, seen)
        return self.logits(y)

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        """H_enc (b, s, d)"""
        s = source.shape[1]
        return self.encoder(self.drop(self.embed(source)), visible(mask, self.bias(s, s)))

    def logits(self, y: Tensor) -> Tensor:
        y = self.last(y)
        if self.head is None:
            return F.linear(y * self.config.width**-0.5, self.embed.weight)
        return self.head(y)

    @torch.no_grad()
    def alignment(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """(depth, b, h, t, s): where each target position looks in the source, layer by layer."""
        with evaluate_only(self):
            memory, t, found = self.encode(source, mask), target.shape[1], []
            y, bias, seen = self.embed(target), self.decoder_bias(t, t), visible(mask)
            for layer in self.decoder_layers:
                y, weights = layer.forward_with_weights(y, memory, bias, seen)
                found.append(weights)
        return torch.stack(found)

    @property
    def decoder_layers(self) -> Sequence[DecoderLayer]:
        return cast("Sequence[DecoderLayer]", self.layers)

    @torch.inference_mode()
    def decoder(self, source: Tensor, mask: Tensor | None = None) -> SourceDecoder:
        """This model, having read these sources, as `descend.sampling` writes with it."""
        target = Target(lambda tokens, _: self.embed(tokens), self.decoder_layers, self.logits, self.decoder_bias)
        with evaluate_only(self):
            return SourceDecoder(self, target, self.encode(source, mask), mask, ANY_LENGTH)


def initialize(model: nn.Module, width: int, inner: int, hidden: int, head_size: int) -> None:
    """Every matrix by the number of its inputs; W^Q smaller by 1/√d_k, in place of the division of the scores."""
    stds = {"q": (width * head_size) ** -0.5, "out": inner**-0.5, "down": hidden**-0.5, "embed": 1.0, "head": 1.0}
    for name, p in model.named_parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=stds.get(name.split(".")[-2], width**-0.5))


def size(width: int, depth: int, heads: int, hidden: int, head_size: int = 64) -> T5Config:
    """A size of v1.0."""
    return T5Config(width=width, depth=depth, decoder_depth=depth, heads=heads, hidden=hidden, head_size=head_size)


def size_1_1(width: int, depth: int, heads: int, hidden: int) -> T5Config:
    """A size of v1.1 (and of Flan-T5)."""
    sizes = {"width": width, "depth": depth, "decoder_depth": depth, "heads": heads, "hidden": hidden}
    return T5Config(**sizes, feed_forward="gated-gelu", tied=False)


SIZES = {
    "t5-small": size(512, 6, 8, 2048),
    "t5-base": size(768, 12, 12, 3072),
    "t5-large": size(1024, 24, 16, 4096),
    "t5-3b": size(1024, 24, 32, 16384, 128),
    "t5-11b": size(1024, 24, 128, 65536, 128),
    "t5-v1_1-small": size_1_1(512, 8, 6, 1024),
    "t5-v1_1-base": size_1_1(768, 12, 12, 2048),
    "t5-v1_1-large": size_1_1(1024, 24, 16, 2816),
    "t5-v1_1-xl": size_1_1(2048, 24, 32, 5120),
    "t5-v1_1-xxl": size_1_1(4096, 24, 64, 10240),
}
PARAMETERS = {
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "t5-large": 737_668_096,
    "t5-3b": 2_851_598_336,
    "t5-11b": 11_307_321_344,
    "t5-v1_1-small": 76_961_152,
    "t5-v1_1-base": 247_577_856,
    "t5-v1_1-large": 783_150_080,
    "t5-v1_1-xl": 2_849_757_184,
    "t5-v1_1-xxl": 11_135_332_352,
}
TINY = T5Config(61, 32, 2, 2, 4, 8, 48, "gated-gelu", tied=False, buckets=8, farthest=20)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two sources and the beginnings of their targets."""
    random = torch.Generator().manual_seed(0)
    return torch.randint(61, (2, 12), generator=random), torch.randint(61, (2, 10), generator=random)


def update_values(values: dict[str, Any]) -> dict[str, Any]:
    """An empty num_decoder_layers means as many as in the encoder; newer files say in another place what is tied.

    transformers 5 ties embedding and head even where it was told not to: it leaves the head out of the file and sets
    scale_decoder_outputs to false. Such a head is a matrix of its own that starts as the embedding.
    """
    values = dict(values)
    if values.get("num_decoder_layers") is None:
        values["num_decoder_layers"] = values.get("num_layers", T5Config.depth)
    values["tie_word_embeddings"] = values.get("scale_decoder_outputs", values.get("tie_word_embeddings", True))
    return values


FIELDS: dict[str, str | tuple[str, ...]] = {
    "vocab": "vocab_size",
    "width": "d_model",
    "depth": "num_layers",
    "decoder_depth": "num_decoder_layers",
    "heads": "num_heads",
    "head_size": "d_kv",
    "hidden": "d_ff",
    "buckets": "relative_attention_num_buckets",
    "farthest": "relative_attention_max_distance",
    "dropout": "dropout_rate",
    "eps": "layer_norm_epsilon",
    "pad": "pad_token_id",
    "start": "decoder_start_token_id",
    "end": "eos_token_id",
}
LAYOUT = Layout(
    architecture="T5ForConditionalGeneration",
    fields=FIELDS | {"feed_forward": "feed_forward_proj", "tied": ("tie_word_embeddings", "scale_decoder_outputs")},
    older=update_values,
    fixed={"is_encoder_decoder": True},
)


def attention_keys(ours: str, theirs: str) -> list[Rule]:
    """The four matrices of an attention."""
    pairs = {"q": "q", "k": "k", "v": "v", "out": "o"}
    return [rename(f"{ours}.{a}.weight", f"{theirs}.{b}.weight") for a, b in pairs.items()]


def stack_keys(head: Rule) -> list[Rule]:
    """All but the feed-forward parts, with the rule of the head."""
    bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    x, y = "encoder.block.{}.layer", "decoder.block.{}.layer"
    return [
        rename("embed.weight", "shared.weight"),
        tie("encoder.embed_tokens.weight", "shared.weight"),
        tie("decoder.embed_tokens.weight", "shared.weight"),
        head,
        rename("bias.table.weight", f"encoder.{bias}"),
        rename("decoder_bias.table.weight", f"decoder.{bias}"),
        drop("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"),
        *attention_keys("encoder.layers.{}.attn", f"{x}.0.SelfAttention"),
        *attention_keys("layers.{}.attn", f"{y}.0.SelfAttention"),
        *attention_keys("layers.{}.cross", f"{y}.1.EncDecAttention"),
        *(rename(f"encoder.layers.{{}}.add_{i + 1}.norm.weight", f"{x}.{i}.layer_norm.weight") for i in range(2)),
        *(rename(f"layers.{{}}.add_{i + 1}.norm.weight", f"{y}.{i}.layer_norm.weight") for i in range(3)),
        rename("encoder.last.0.weight", "encoder.final_layer_norm.weight"),
        rename("last.0.weight", "decoder.final_layer_norm.weight"),
    ]


FEED_FORWARD = {"inner": "wi", "gate": "wi_0", "up": "wi_1", "down": "wo"}
KEYS = stack_keys(copied("head.weight", "lm_head.weight", "shared.weight")) + [
    rename(f"{ours}.mlp.{a}.weight", f"{theirs}.DenseReluDense.{b}.weight")
    for ours, theirs in (("encoder.layers.{}", "encoder.block.{}.layer.1"), ("layers.{}", "decoder.block.{}.layer.2"))
    for a, b in FEED_FORWARD.items()
]
