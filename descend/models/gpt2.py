"""GPT-2: decoder-only transformer language model, pre-norm, with learned positions.

    x_0 = E[token] + P[position]
    y_l = x_{l-1} + attention(norm(x_{l-1}))          l = 1..depth, causal
    x_l = y_l + mlp(norm(y_l))
    logits = norm(x_depth) Eᵀ                         (input and output embedding are one matrix)

The projections back into the residual stream start smaller by 1/√N, N = 2·depth residual layers, so that the sum of
N terms keeps the scale of one. GELU is the tanh form that was released; the exact form differs by up to 4.7e-4.
Parameters: V d + context d + depth (12 d² + 13 d) + 2 d with the usual hidden width, 4 d. Erratum: DLN prints 117M,
345M and 762M, the counting mistake of the original paper; the sizes are 124.4M, 354.8M, 774.0M and 1557.6M.
GPT-3 is the same function, larger and with 2048 positions (its alternating sparse layers change no count). Two rows of
its table do not fit: 24 heads of 128 are not the XL's width 2048 (here 16 heads), 5140 is not 40 · 128 (here 5120).

Systems: gpt, gpt-2, gpt-3, lm-weight-tying, learned-position-embeddings, residual-depth-init
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from descend.models._text_scores import ScoresTexts, zero_score
from descend.nn.attention.multi_head import CausalSelfAttention
from descend.nn.decoding.cached import CachedDecoder, DecodingBlock, Ends
from descend.nn.gelu import GELUTanh
from descend.nn.mlp import MLP
from descend.nn.residual import add_pre_norm
from descend.ranges import Depth, Fraction, Length, Share, Width
from descend.theory.residual import residual_layers, residual_scale
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import drop, rename, tie, transpose


@dataclass(frozen=True)
class GPT2Config:
    """The configuration of a GPT-2; the defaults are the smallest released one."""

    vocab: Length = 50257
    context: Length = 1024
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    dropout: Fraction = 0.1
    eps: Share = 1e-5
    hidden: Width | None = None
    """Of the feed-forward part; none: 4 · width."""


class Block(nn.Module):
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y))"""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float, eps: float):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps)
        self.attn = CausalSelfAttention(width, heads, dropout)
        self.ln_2 = nn.LayerNorm(width, eps)
        self.mlp = MLP(width, hidden, GELUTanh())
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        attention, mlp = (lambda n: self.drop(self.attn(n))), (lambda n: self.drop(self.mlp(n)))
        return add_pre_norm(x, self.ln_1, attention, self.ln_2, mlp)


class GPT2(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = GPT2Config

    def __init__(self, config: GPT2Config):
        super().__init__()
        c = self.config = config
        self.wte = nn.Embedding(c.vocab, c.width)
        self.wpe = nn.Embedding(c.context, c.width)
        self.drop = nn.Dropout(c.dropout)
        blocks = [Block(c.width, c.heads, c.hidden or 4 * c.width, c.dropout, c.eps) for _ in range(c.depth)]
        self.h = nn.ModuleList(blocks)
        self.ln_f = nn.LayerNorm(c.width, c.eps)
        self.apply(draw_normal)
        for block in blocks:
            for out in (block.attn.out, block.mlp.down):
                nn.init.normal_(out.weight, std=0.02 * residual_scale(residual_layers(c.depth)))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.predict(self.states(tokens))

    def states(self, tokens: Tensor) -> Tensor:
        """norm(x_depth) (b, t, d): what the logits, and any other head, are read from."""
        t = tokens.shape[1]
        if t > self.config.context:
            raise ValueError(f"{t} tokens, but this model has positions for {self.config.context} (its context)")
        x = self.drop(self.embed(tokens, torch.arange(t, device=tokens.device)))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)

    def predict(self, states: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return nn.functional.linear(states, self.wte.weight)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """x_0 = E[token] + P[position]"""
        return self.wte(tokens) + self.wpe(positions)

    def decoder(self) -> CachedDecoder:
        """This model with a key-value cache, as `descend.sampling` writes with it."""
        blocks = [DecodingBlock(b.ln_1, b.attn, b.ln_2, b.mlp) for b in cast("Iterable[Block]", self.h)]
        return CachedDecoder(Ends(self.embed, self.ln_f, self.wte.weight), blocks, self.config.context)


class GPT2ForSequenceClassification(ScoresTexts, GPT2):  # type: ignore[misc]
    """tokens (b, t), and which are real or written (b, t) -> a score of each text (b): a reward model"""

    def __init__(self, config: GPT2Config):
        super().__init__(config)
        self.score = zero_score(config.width)


def draw_normal(module: nn.Module) -> None:
    """Weights N(0, 0.02²), biases 0, as released."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


SIZES = {
    "gpt2": GPT2Config(),
    "gpt2-medium": GPT2Config(width=1024, depth=24, heads=16),
    "gpt2-large": GPT2Config(width=1280, depth=36, heads=20),
    "gpt2-xl": GPT2Config(width=1600, depth=48, heads=25),
}
PARAMETERS = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
}
GPT3 = {  # depth, width, heads
    "small": (12, 768, 12), "medium": (24, 1024, 16), "large": (24, 1536, 16), "xl": (24, 2048, 16),
    "2.7b": (32, 2560, 32), "6.7b": (32, 4096, 32), "13b": (40, 5120, 40), "175b": (96, 12288, 96),
}  # fmt: skip
SIZES |= {
    f"gpt3-{name}": GPT2Config(context=2048, depth=depth, width=d, heads=h) for name, (depth, d, h) in GPT3.items()
}
PARAMETERS |= {
    "gpt3-small": 125_226_240,
    "gpt3-medium": 355_871_744,
    "gpt3-large": 760_300_032,
    "gpt3-xl": 1_315_723_264,
    "gpt3-2.7b": 2_651_553_280,
    "gpt3-6.7b": 6_658_404_352,
    "gpt3-13b": 12_853_386_240,
    "gpt3-175b": 174_604_259_328,
}
TINY = GPT2Config(vocab=61, context=24, width=32, depth=2, heads=4, dropout=0.0)


def rename_activation(values: dict[str, Any]) -> dict[str, Any]:
    """The tanh GELU has two names."""
    is_tanh = values.get("activation_function") == "gelu_pytorch_tanh"
    return values | {"activation_function": "gelu_new"} if is_tanh else values


LAYOUT = Layout(
    architecture="GPT2LMHeadModel",
    fields={
        "vocab": "vocab_size",
        "context": "n_positions",
        "width": "n_embd",
        "depth": "n_layer",
        "heads": "n_head",
        "dropout": ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
        "eps": "layer_norm_epsilon",
        "hidden": "n_inner",
    },
    older=rename_activation,
    fixed={
        "activation_function": "gelu_new",
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    bare_prefix="transformer.",
)

KEYS = [
    rename("wte.weight", "transformer.wte.weight"),
    rename("wpe.weight", "transformer.wpe.weight"),
    *(rename(f"h.{{}}.ln_{i}.{p}", f"transformer.h.{{}}.ln_{i}.{p}") for i in (1, 2) for p in ("weight", "bias")),
    transpose("h.{}.attn.qkv.weight", "transformer.h.{}.attn.c_attn.weight"),
    rename("h.{}.attn.qkv.bias", "transformer.h.{}.attn.c_attn.bias"),
    transpose("h.{}.attn.out.weight", "transformer.h.{}.attn.c_proj.weight"),
    rename("h.{}.attn.out.bias", "transformer.h.{}.attn.c_proj.bias"),
    transpose("h.{}.mlp.up.weight", "transformer.h.{}.mlp.c_fc.weight"),
    rename("h.{}.mlp.up.bias", "transformer.h.{}.mlp.c_fc.bias"),
    transpose("h.{}.mlp.down.weight", "transformer.h.{}.mlp.c_proj.weight"),
    rename("h.{}.mlp.down.bias", "transformer.h.{}.mlp.c_proj.bias"),
    rename("ln_f.weight", "transformer.ln_f.weight"),
    rename("ln_f.bias", "transformer.ln_f.bias"),
    tie("lm_head.weight", "transformer.wte.weight"),
    drop("transformer.h.{}.attn.bias"),
    drop("transformer.h.{}.attn.masked_bias"),
    rename("score.weight", "score.weight"),
]
ARCHITECTURES: dict[str, type[Pretrained]] = {  # the first that a model is one of names it
    "GPT2ForSequenceClassification": GPT2ForSequenceClassification,
    "GPT2LMHeadModel": GPT2,
    "GPT2Model": GPT2,
    "GPT2DoubleHeadsModel": GPT2,
}
