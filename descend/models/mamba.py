"""Mamba: a stack of selective state-space layers, without attention (Gu and Dao 2023).

    x_0 = E[token],   x_l = x_{l-1} + Selective(RMSNorm(x_{l-1})),   logits = RMSNorm(x_depth) Eᵀ

The input chooses the step Δ, what is written (B) and what is read (C): `nn.recurrent.state_space`. A whole sequence is
one scan, linear in its length; in writing every token costs the same, from a state of depth · inner · (n + k - 1)
numbers. inner = expand · width; Δ has rank ⌈width/16⌉. DLN names the model only; the form is the released one.

Systems: mamba
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from descend.nn.decoding.stateful import StatefulDecoder
from descend.nn.recurrent.state_space import Remembered, Selective
from descend.ranges import Depth, Length, Share, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, tie

SMALLEST, LARGEST, FLOOR = 1e-3, 1e-1, 1e-4  # of Δ at the start


@dataclass(frozen=True)
class MambaConfig:
    """The configuration of a Mamba; the defaults are those of the published format."""

    vocab: Length = 50280
    width: Width = 768
    depth: Depth = 32
    state: Width = 16
    expand: Depth = 2
    places: Side = 4
    """Of the causal convolution."""
    rank: Width = 48
    """Of Δ; the released models have ⌈width/16⌉."""
    eps: Share = 1e-5


class Block(nn.Module):
    """x' = x + mixer(norm(x))"""

    def __init__(self, width: int, inner: int, state: int, places: int, rank: int, eps: float):
        super().__init__()
        self.norm = nn.RMSNorm(width, eps)
        self.mixer = Selective(width, inner, state, places, rank)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.mixer(self.norm(x))


class Mamba(Pretrained):
    """tokens (b, t) -> logits (b, t, v)"""

    Config = MambaConfig

    def __init__(self, config: MambaConfig):
        super().__init__()
        c = self.config = config
        self.embed = nn.Embedding(c.vocab, c.width)
        self.blocks = nn.ModuleList(
            Block(c.width, c.expand * c.width, c.state, c.places, c.rank, c.eps) for _ in range(c.depth)
        )
        self.norm = nn.RMSNorm(c.width, c.eps)
        nn.init.normal_(self.embed.weight, std=0.02)
        for block in self.layers:
            start_steps_(block.mixer.dt_proj)
            with torch.no_grad():
                block.mixer.out_proj.weight.mul_(c.depth**-0.5)

    @property
    def layers(self) -> Iterable[Block]:
        return cast("Iterable[Block]", self.blocks)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.layers:
            x = block(x)
        return self.logits(x)

    def logits(self, x: Tensor) -> Tensor:
        return nn.functional.linear(self.norm(x), self.embed.weight)

    def decoder(self) -> StatefulDecoder[list[Remembered]]:
        """This model with its state, as `descend.sampling` writes with it."""

        def begin(tokens: Tensor, pad: Tensor) -> tuple[Tensor, list[Remembered]]:
            places = torch.arange(tokens.shape[1], device=tokens.device)
            real = places >= pad[:, None] if pad.any() else None
            x, past = self.embed(tokens), []
            for block in self.layers:
                y, remembered = block.mixer.read(block.norm(x), real)
                x = x + y
                past.append(remembered)
            return self.logits(x[:, -1]), past

        def step(tokens: Tensor, past: list[Remembered]) -> tuple[Tensor, list[Remembered]]:
            x, now = self.embed(tokens), []
            for block, before in zip(self.layers, past, strict=True):
                y, remembered = block.mixer.step(block.norm(x), before)
                x = x + y
                now.append(remembered)
            return self.logits(x), now

        return StatefulDecoder(self, begin, step, lambda past, rows: [Remembered(*(p[rows] for p in r)) for r in past])


def start_steps_(dt_proj: nn.Linear) -> None:
    """softplus(b_Δ) log-uniform between 0.001 and 0.1, and a map that hardly moves it."""
    nn.init.uniform_(dt_proj.weight, -(dt_proj.in_features**-0.5), dt_proj.in_features**-0.5)
    with torch.no_grad():
        steps = torch.rand_like(dt_proj.bias) * (math.log(LARGEST) - math.log(SMALLEST)) + math.log(SMALLEST)
        steps = steps.exp().clamp(min=FLOOR)
        dt_proj.bias.copy_(steps + (-torch.expm1(-steps)).log())  # the inverse of softplus


def with_rank(values: dict[str, Any]) -> dict[str, Any]:
    """A file may say "auto" for the rank of Δ, or leave it out."""
    if values.get("time_step_rank", "auto") == "auto":
        values = {**values, "time_step_rank": math.ceil(values.get("hidden_size", MambaConfig.width) / 16)}
    return values


SIZES = {
    "mamba-130m": MambaConfig(depth=24),
    "mamba-370m": MambaConfig(width=1024, depth=48, rank=64),
    "mamba-790m": MambaConfig(width=1536, depth=48, rank=96),
    "mamba-1.4b": MambaConfig(width=2048, depth=48, rank=128),
    "mamba-2.8b": MambaConfig(width=2560, depth=64, rank=160),
}
PARAMETERS = {
    "mamba-130m": 129_135_360,
    "mamba-370m": 371_516_416,
    "mamba-790m": 793_204_224,
    "mamba-1.4b": 1_372_178_432,
    "mamba-2.8b": 2_768_345_600,
}
TINY = MambaConfig(vocab=61, width=24, depth=2, state=5, rank=3)

LAYOUT = Layout(
    architecture="MambaForCausalLM",
    fields={
        "vocab": "vocab_size",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "state": "state_size",
        "expand": "expand",
        "places": "conv_kernel",
        "rank": "time_step_rank",
        "eps": "layer_norm_epsilon",
    },
    older=with_rank,
    fixed={"hidden_act": "silu", "use_bias": False, "use_conv_bias": True, "tie_word_embeddings": True},
    bare_prefix="backbone.",
)

_MIXER = {
    "in_proj.weight": "in_proj.weight",
    "conv.weight": "conv1d.weight",
    "conv.bias": "conv1d.bias",
    "x_proj.weight": "x_proj.weight",
    "dt_proj.weight": "dt_proj.weight",
    "dt_proj.bias": "dt_proj.bias",
    "a_log": "A_log",
    "d": "D",
    "out_proj.weight": "out_proj.weight",
}
KEYS = [
    rename("embed.weight", "backbone.embeddings.weight"),
    rename("blocks.{}.norm.weight", "backbone.layers.{}.norm.weight"),
    *(rename(f"blocks.{{}}.mixer.{a}", f"backbone.layers.{{}}.mixer.{b}") for a, b in _MIXER.items()),
    rename("norm.weight", "backbone.norm_f.weight"),
    tie("lm_head.weight", "backbone.embeddings.weight"),
]
