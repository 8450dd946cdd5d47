"""PaLM: a decoder with parallel blocks, one key and value for all heads, rotary positions and SwiGLU.

    x' = x + attention(n) + FFN(n)           n = LN(x), one normalised input for both
    Q^(h) = n W_Q^(h) for each head, K = n W_K and V = n W_V for all of them
    FFN(n) = W_3 (Swish(W_2 n) ⊙ W_1 n)
    logits = LN(x_depth) Eᵀ / √d             the embedding is the output matrix; its entries start as N(0, 1)

No biases, in the norms neither. Parameters: V d + L (2 d H k + 2 d k + 3 d d_ff + d) + d.
Errata of MF 38.7: with the printed d_ff = 49152 the 540B has 380 billion parameters; it is 4 d = 73728. The head counts
printed for 8B and 62B (32 and 64) are twice the paper's; all sizes have heads of 256, so H k is not d for the 540B.
There is no public checkpoint and no other implementation to exchange weights with.

Systems: palm, parallel-attention-ffn
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from descend.nn.attention.multi_head import Attention
from descend.nn.attention.rotary import Rope
from descend.nn.decoding.cached import CachedDecoder, Ends, ParallelBlock
from descend.nn.gated_mlp import GatedMLP
from descend.nn.residual import add_parallel
from descend.ranges import Depth, Length, Share, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained

ROPE = Rope()


@dataclass(frozen=True)
class PalmConfig:
    """The configuration of a PaLM; the defaults are the smallest published one."""

    vocab: Length = 256000
    context: Length = 2048
    width: Width = 4096
    depth: Depth = 32
    heads: Width = 16
    head_size: Width = 256
    hidden: Width = 16384
    eps: Share = 1e-6


class Block(nn.Module):
    """x' = x + attention(norm(x)) + mlp(norm(x))"""

    def __init__(self, width: int, heads: int, head_size: int, hidden: int, eps: float):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps, bias=False)
        self.attn = Attention(width, heads, kv_heads=1, head_size=head_size, bias=False)
        self.mlp = GatedMLP(width, hidden, nn.SiLU())

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        return add_parallel(x, self.norm, lambda n: self.attn(n, causal=True, angles=angles), self.mlp)


class LastNorm(nn.LayerNorm):
    """LN(x) / √d: as large as the entries of E make the logits' spread 1."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * x.shape[-1] ** -0.5


class Palm(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = PalmConfig

    def __init__(self, config: PalmConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.width)
        self.blocks = nn.ModuleList(Block(c.width, c.heads, c.head_size, c.hidden, c.eps) for _ in range(c.depth))
        self.norm = LastNorm(c.width, c.eps, bias=False)
        for p in self.blocks.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        t, c = tokens.shape[1], self.config
        if t > c.context:
            raise ValueError(f"{t} tokens, but this model has positions for {c.context} (its context)")
        x, angles = self.embed(tokens), ROPE.angles(torch.arange(t, device=tokens.device), c.head_size)
        for block in self.blocks:
            x = block(x, angles)
        return nn.functional.linear(self.norm(x), self.embed.weight)

    def decoder(self) -> CachedDecoder:
        """This model with a key-value cache, as `descend.sampling` writes with it."""
        blocks = [ParallelBlock(b.norm, b.attn, b.norm, b.mlp) for b in cast("Iterable[Block]", self.blocks)]
        ends = Ends(lambda tokens, _: self.embed(tokens), self.norm, self.embed.weight)
        return CachedDecoder(ends, blocks, self.config.context, ROPE)


SIZES = {
    "palm-8b": PalmConfig(),
    "palm-62b": PalmConfig(width=8192, depth=64, heads=32, hidden=32768),
    "palm-540b": PalmConfig(width=18432, depth=118, heads=48, hidden=73728),
}
PARAMETERS = {"palm-8b": 8_632_012_800, "palm-62b": 62_495_662_080, "palm-540b": 540_356_474_880}
TINY = PalmConfig(vocab=61, context=24, width=32, depth=2, heads=4, head_size=8, hidden=48)

LAYOUT = Layout(
    architecture="PalmForCausalLM",
    library="descend",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "head_size": "head_dim",
        "hidden": "intermediate_size",
        "eps": "layer_norm_eps",
    },
)
