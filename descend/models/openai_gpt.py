"""GPT-1: the decoder-only transformer, norms after the layers, trained first on text and then on each task.

    x_0 = E[token] + P[position]
    y_l = norm(x_{l-1} + attention(x_{l-1}))          l = 1..depth, causal
    x_l = norm(y_l + mlp(y_l))                        no further norm at the end
    logits = x_depth Eᵀ

12 layers, width 768, GELU (tanh form), 512 positions. DLN gives 40,000 merges as the vocabulary: 116.2 million
parameters; the released 40,478 tokens make 116.5 million, printed as 117M. `descend.nn.finetuning` reads `hidden`.

Systems: gpt-1
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import CausalSelfAttention
from descend.nn.decoding.cached import CachedDecoder, Ends, PostNormBlock
from descend.nn.gelu import GELUTanh
from descend.nn.mlp import MLP
from descend.nn.residual import add_post_norm
from descend.ranges import Depth, Fraction, Length, Share, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import drop, rename, tie, transpose


@dataclass(frozen=True)
class OpenAIGPTConfig:
    """The configuration of GPT-1, as released."""

    vocab: Length = 40478
    context: Length = 512
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    dropout: Fraction = 0.1
    eps: Share = 1e-5


class Block(nn.Module):
    """y = norm(x + attention(x)),  x' = norm(y + mlp(y))"""

    def __init__(self, width: int, heads: int, dropout: float, eps: float):
        super().__init__()
        self.attn = CausalSelfAttention(width, heads, dropout)
        self.ln_1 = nn.LayerNorm(width, eps)
        self.mlp = MLP(width, 4 * width, GELUTanh())
        self.ln_2 = nn.LayerNorm(width, eps)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        attention, mlp = (lambda n: self.drop(self.attn(n))), (lambda n: self.drop(self.mlp(n)))
        return add_post_norm(x, self.ln_1, attention, self.ln_2, mlp)


class OpenAIGPT(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = OpenAIGPTConfig

    def __init__(self, config: OpenAIGPTConfig):
        super().__init__()
        c = self.config = config
        self.tokens = nn.Embedding(c.vocab, c.width)
        self.positions = nn.Embedding(c.context, c.width)
        self.drop = nn.Dropout(c.dropout)
        self.h = nn.ModuleList(Block(c.width, c.heads, c.dropout, c.eps) for _ in range(c.depth))
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def hidden(self, tokens: Tensor) -> Tensor:
        """x_depth (b, t, d): what a task's own output layer reads."""
        t = tokens.shape[1]
        if t > self.config.context:
            raise ValueError(f"{t} tokens, but this model has positions for {self.config.context} (its context)")
        x = self.drop(self.embed(tokens, torch.arange(t, device=tokens.device)))
        for block in self.h:
            x = block(x)
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        return nn.functional.linear(self.hidden(tokens), self.tokens.weight)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """x_0 = E[token] + P[position]"""
        return self.tokens(tokens) + self.positions(positions)

    def decoder(self) -> CachedDecoder:
        """This model with a key-value cache, as `descend.sampling` writes with it."""
        blocks = [PostNormBlock(b.ln_1, b.attn, b.ln_2, b.mlp) for b in cast("Iterable[Block]", self.h)]
        return CachedDecoder(Ends(self.embed, nn.Identity(), self.tokens.weight), blocks, self.config.context)


SIZES = {"openai-gpt": OpenAIGPTConfig()}
PARAMETERS = {"openai-gpt": 116_534_784}
TINY = OpenAIGPTConfig(vocab=61, context=24, width=32, depth=2, heads=4, dropout=0.0)

LAYOUT = Layout(
    architecture="OpenAIGPTLMHeadModel",
    fields={
        "vocab": "vocab_size",
        "context": "n_positions",
        "width": "n_embd",
        "depth": "n_layer",
        "heads": "n_head",
        "dropout": ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
        "eps": "layer_norm_epsilon",
    },
    fixed={"model_type": "openai-gpt", "afn": "gelu", "tie_word_embeddings": True},
    bare_prefix="transformer.",
)

KEYS = [
    rename("tokens.weight", "transformer.tokens_embed.weight"),
    rename("positions.weight", "transformer.positions_embed.weight"),
    *(rename(f"h.{{}}.ln_{i}.{p}", f"transformer.h.{{}}.ln_{i}.{p}") for i in (1, 2) for p in ("weight", "bias")),
    *(
        rule(f"h.{{}}.{ours}.{p}", f"transformer.h.{{}}.{theirs}.{p}")
        for ours, theirs in (
            ("attn.qkv", "attn.c_attn"), ("attn.out", "attn.c_proj"), ("mlp.up", "mlp.c_fc"), ("mlp.down", "mlp.c_proj")
        )
        for p, rule in (("weight", transpose), ("bias", rename))
    ),
    tie("lm_head.weight", "transformer.tokens_embed.weight"),
    drop("transformer.h.{}.attn.bias"),
    drop("transformer.position_ids"),
]  # fmt: skip
