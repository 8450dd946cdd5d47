"""Mistral: LLaMA with a sliding window, so that attention and its cache cost the window and not the text.

    y = x + attention(RMSNorm(x))            position i sees j with i − w < j ≤ i, in groups of queries
    x' = y + W_3 (Swish(W_2 n) ⊙ W_1 n)      n = RMSNorm(y)

MF 40.6 counts the window as [i − w, i], w + 1 keys; the release, and this code, take the last w. Without a window
(version 0.2 and later) a position sees everything before it.

Systems: causal-sliding-window
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor, nn

from descend.nn.attention.causal_window import WindowAttention
from descend.nn.attention.rotary import Rope, rope_of_older_files
from descend.nn.decoding.cached import CachedDecoder, DecodingBlock, Ends
from descend.nn.gated_mlp import GatedMLP
from descend.nn.residual import add_pre_norm
from descend.ranges import Depth, Length, Share, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import drop, rename, untied


@dataclass(frozen=True)
class MistralConfig:
    """The configuration of a Mistral; `window` None: every position before."""

    vocab: Length = 32000
    context: Length = 131072
    width: Width = 4096
    depth: Depth = 32
    heads: Width = 32
    kv_heads: Width = 8
    head_size: Width | None = None
    hidden: Width = 14336
    window: Length | None = 4096
    eps: Share = 1e-6
    rope: Rope = field(default_factory=Rope)
    tied: bool = False


class Block(nn.Module):
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y))"""

    def __init__(self, width: int, attn: nn.Module, mlp: nn.Module, eps: float):
        super().__init__()
        self.norm_1, self.attn = nn.RMSNorm(width, eps), attn
        self.norm_2, self.mlp = nn.RMSNorm(width, eps), mlp

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        return add_pre_norm(x, self.norm_1, lambda n: self.attn(n, angles), self.norm_2, self.mlp)


class Mistral(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = MistralConfig

    def __init__(self, config: MistralConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.width)
        blocks = (Block(c.width, self.attention(), self.feed_forward(), c.eps) for _ in range(c.depth))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(c.width, c.eps)
        self.head = None if c.tied else nn.Linear(c.width, c.vocab, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def attention(self) -> nn.Module:
        c = self.config
        return WindowAttention(c.width, c.heads, c.kv_heads, c.head_size, c.window or c.rope.reach(c.context))

    def feed_forward(self) -> nn.Module:
        return GatedMLP(self.config.width, self.config.hidden, nn.SiLU())

    def forward(self, tokens: Tensor) -> Tensor:
        t, c = tokens.shape[1], self.config
        if t > c.rope.reach(c.context):
            raise ValueError(f"{t} tokens, but this model has positions for {c.context} (its context)")
        size = c.head_size or c.width // c.heads
        x, angles = self.embed(tokens), c.rope.angles(torch.arange(t, device=tokens.device), size, c.context)
        for block in self.blocks:
            x = block(x, angles)
        return nn.functional.linear(self.norm(x), self.unembedding())

    def unembedding(self) -> Tensor:
        """U (v, d)"""
        return self.embed.weight if self.head is None else self.head.weight

    def decoder(self) -> CachedDecoder:
        """This model with a cache that keeps two windows at most."""
        blocks = [
            DecodingBlock(b.norm_1, cast("WindowAttention", b.attn), b.norm_2, b.mlp)
            for b in cast("Iterable[Block]", self.blocks)
        ]
        ends = Ends(lambda tokens, _: self.embed(tokens), self.norm, self.unembedding(), self.head)
        return CachedDecoder(ends, blocks, self.config.context, self.config.rope, self.config.window)


SIZES = {"mistral-7b-v0.1": MistralConfig(context=32768, eps=1e-5)}
PARAMETERS = {"mistral-7b-v0.1": 7_241_732_096}
TINY = MistralConfig(vocab=61, context=24, width=32, depth=2, heads=4, kv_heads=2, hidden=48, window=5)

LAYOUT = Layout(
    architecture="MistralForCausalLM",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "head_size": "head_dim",
        "hidden": "intermediate_size",
        "window": "sliding_window",
        "eps": "rms_norm_eps",
        "rope": "rope_parameters",
        "tied": "tie_word_embeddings",
    },
    parts={"rope": Rope},
    older=rope_of_older_files,
    fixed={"hidden_act": "silu"},
    bare_prefix="model.",
)

AROUND = [
    rename("embed.weight", "model.embed_tokens.weight"),
    rename("blocks.{}.norm_1.weight", "model.layers.{}.input_layernorm.weight"),
    rename("blocks.{}.norm_2.weight", "model.layers.{}.post_attention_layernorm.weight"),
    rename("norm.weight", "model.norm.weight"),
    untied("head.weight", "lm_head.weight", same_as="model.embed_tokens.weight"),
    drop("model.layers.{}.self_attn.rotary_emb.inv_freq"),
]
ATTENTION = [
    *(rename(f"blocks.{{}}.attn.{p}.weight", f"model.layers.{{}}.self_attn.{p}_proj.weight") for p in "qkv"),
    rename("blocks.{}.attn.out.weight", "model.layers.{}.self_attn.o_proj.weight"),
]
GATED = [
    rename(f"blocks.{{}}.mlp.{p}.weight", f"model.layers.{{}}.mlp.{p}_proj.weight") for p in ("gate", "up", "down")
]
KEYS = [*AROUND, *ATTENTION, *GATED]
