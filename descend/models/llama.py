"""LLaMA: a decoder-only transformer with RMS norms before the layers, rotary positions and a gated feed-forward part.

    y = x + attention(RMSNorm(x))            queries and keys turned by their positions, no biases
    x' = y + W_3 (Swish(W_2 n) ⊙ W_1 n)      n = RMSNorm(y)
    logits = U RMSNorm(x_depth)              U is a matrix of its own, or the embedding (`tied`: the small LLaMA 3.2)

With fewer key heads than heads (LLaMA 2 70B, LLaMA 3) a group of queries shares a key head. The 7B and 13B of LLaMA 2
have as many of both (DLN and MF print grouped queries for all, an erratum). ε stands inside the root.

Systems: llama
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from descend.models._text_scores import ScoresTexts, zero_score
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.rotary import Rope, rope_of_older_files
from descend.nn.decoding.cached import CachedDecoder, DecodingBlock, Ends
from descend.nn.gated_mlp import GatedMLP
from descend.nn.residual import add_pre_norm
from descend.ranges import Depth, Length, PositiveShare, Share, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import drop, rename, untied


@dataclass(frozen=True)
class LlamaConfig:
    """The configuration of a LLaMA; the defaults are those of the first 7B."""

    vocab: Length = 32000
    context: Length = 2048
    width: Width = 4096
    depth: Depth = 32
    heads: Width = 32
    kv_heads: Width = 32
    hidden: Width = 11008
    eps: Share = 1e-6
    rope: Rope = field(default_factory=Rope)
    tied: bool = False
    head_size: Width | None = None
    """None: width / heads."""
    spread: PositiveShare = 0.02
    """Standard deviation of the first weights; a narrow model learns sooner from 1/√width."""

    @property
    def size(self) -> int:
        """d_k of a head."""
        return self.head_size or self.width // self.heads


class Block(nn.Module):
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y))"""

    def __init__(self, width: int, attn: Attention, hidden: int, eps: float):
        super().__init__()
        self.norm_1 = nn.RMSNorm(width, eps)
        self.attn = attn
        self.norm_2 = nn.RMSNorm(width, eps)
        self.mlp = GatedMLP(width, hidden, nn.SiLU())

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        attention = lambda n: self.attn(n, causal=True, angles=angles)
        return add_pre_norm(x, self.norm_1, attention, self.norm_2, self.mlp)


class Llama(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = LlamaConfig

    def __init__(self, config: LlamaConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.width)
        attention = partial(Attention, c.width, c.heads, c.kv_heads, c.head_size, bias=False)
        self.blocks = nn.ModuleList(Block(c.width, attention(), c.hidden, c.eps) for _ in range(c.depth))
        self.norm = nn.RMSNorm(c.width, c.eps)
        self.head = None if c.tied else nn.Linear(c.width, c.vocab, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=c.spread)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.predict(self.states(tokens))

    def states(self, tokens: Tensor) -> Tensor:
        """norm(x_depth) (b, t, d): what the logits, and any other head, are read from."""
        t, c = tokens.shape[1], self.config
        if t > c.rope.reach(c.context):
            raise ValueError(f"{t} tokens, but this model has positions for {c.context} (its context)")
        positions = torch.arange(t, device=tokens.device)
        x, angles = self.embed(tokens), c.rope.angles(positions, c.size, c.context)
        for block in self.blocks:
            x = block(x, angles)
        return self.norm(x)

    def predict(self, states: Tensor) -> Tensor:
        """Logits (b, t, v)."""
        return nn.functional.linear(states, self.unembedding())

    def unembedding(self) -> Tensor:
        """U (v, d)"""
        return self.embed.weight if self.head is None else self.head.weight

    def decoder(self) -> CachedDecoder:
        """This model with a key-value cache, as `descend.sampling` writes with it."""
        blocks = [DecodingBlock(b.norm_1, b.attn, b.norm_2, b.mlp) for b in cast("Iterable[Block]", self.blocks)]
        ends = Ends(lambda tokens, _: self.embed(tokens), self.norm, self.unembedding(), self.head)
        return CachedDecoder(ends, blocks, self.config.context, self.config.rope)


class LlamaForSequenceClassification(ScoresTexts, Llama):  # type: ignore[misc]
    """tokens (b, t), and which are real or written (b, t) -> a score of each text (b): a reward model"""

    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        self.head = None
        self.score = zero_score(config.width)


SIZES = {
    "llama-7b": LlamaConfig(),
    "llama-13b": LlamaConfig(width=5120, depth=40, heads=40, kv_heads=40, hidden=13824),
    "llama-33b": LlamaConfig(width=6656, depth=60, heads=52, kv_heads=52, hidden=17920),
    "llama-65b": LlamaConfig(width=8192, depth=80, heads=64, kv_heads=64, hidden=22016),
    "llama-2-7b": LlamaConfig(context=4096, eps=1e-5),
    "llama-2-70b": LlamaConfig(
        context=4096, width=8192, depth=80, heads=64, kv_heads=8, hidden=28672, eps=1e-5
    ),
    "llama-3-8b": LlamaConfig(
        vocab=128256, context=8192, kv_heads=8, hidden=14336, eps=1e-5, rope=Rope(theta=500000.0)
    ),
    "llama-3.2-1b": LlamaConfig(
        vocab=128256, context=131072, width=2048, depth=16, kv_heads=8, hidden=8192, eps=1e-5, tied=True,
        rope=Rope(500000.0, "llama3", 32.0),
    ),
}  # fmt: skip
PARAMETERS = {
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-33b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama-2-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
}
TINY = LlamaConfig(vocab=61, context=24, width=32, depth=2, heads=4, kv_heads=2, hidden=48)

LAYOUT = Layout(
    architecture="LlamaForCausalLM",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "kv_heads": "num_key_value_heads",
        "hidden": "intermediate_size",
        "eps": "rms_norm_eps",
        "rope": "rope_parameters",
        "tied": "tie_word_embeddings",
        "head_size": "head_dim",
        "spread": "initializer_range",
    },
    parts={"rope": Rope},
    older=rope_of_older_files,
    fixed={"hidden_act": "silu", "attention_bias": False, "mlp_bias": False},
    bare_prefix="model.",
)

KEYS = [
    rename("embed.weight", "model.embed_tokens.weight"),
    rename("blocks.{}.norm_1.weight", "model.layers.{}.input_layernorm.weight"),
    rename("blocks.{}.norm_2.weight", "model.layers.{}.post_attention_layernorm.weight"),
    *(rename(f"blocks.{{}}.attn.{p}.weight", f"model.layers.{{}}.self_attn.{p}_proj.weight") for p in "qkv"),
    rename("blocks.{}.attn.out.weight", "model.layers.{}.self_attn.o_proj.weight"),
    *(rename(f"blocks.{{}}.mlp.{p}.weight", f"model.layers.{{}}.mlp.{p}_proj.weight") for p in ("gate", "up", "down")),
    rename("norm.weight", "model.norm.weight"),
    untied("head.weight", "lm_head.weight", same_as="model.embed_tokens.weight"),
    drop("model.layers.{}.self_attn.rotary_emb.inv_freq"),
    rename("score.weight", "score.weight"),
]
ARCHITECTURES: dict[str, type[Pretrained]] = {  # the first that a model is one of names it
    "LlamaForSequenceClassification": LlamaForSequenceClassification,
    "LlamaForCausalLM": Llama,
    "LLaMAForCausalLM": Llama,
    "LlamaModel": Llama,
}
