"""CLIP's text encoder: a causal transformer, norm first, whose vector at the end token stands for the text.

    h_t = E_tok[x_t] + E_pos[t]
    Y = H + attention(norm(H)),   H' = Y + W_2 φ(W_1 norm(Y) + b_1) + b_2         φ(x) = x σ(1.702 x), causal mask
    T = norm(H_depth)[first end token]

DLN calls it an encoder; as released it is causal, so that it could be pre-trained as a language model, and only the end
token has seen the whole text. What stands after the end token takes no part, so no padding mask is needed. Files with
eos_token_id = 2 are older than the right number: there the token with the highest number is the end.

Stable Diffusion conditions on `hidden`, the vectors of all tokens, with the encoder frozen. Erratum: the encoder of
version 1, ViT-L/14's, has 123M parameters; DLN's 63M are those of the 512-wide one. Version 2's has 354M.

Systems: clip, clip-text-encoder
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from descend.nn.encoder import Encoder, PreNormBlock
from descend.nn.gelu import QuickGELU
from descend.ranges import Depth, Length, Share, Token, Width
from descend.weights.layout import Layout, config_from_json, config_to_json
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, drop, rename, rename_pair

ACTIVATIONS: dict[str, type[nn.Module]] = {"quick_gelu": QuickGELU, "gelu": nn.GELU}
LEGACY_END = 2


@dataclass(frozen=True)
class ClipTextConfig:
    """The configuration of the text encoder; the defaults are those beside ViT-B."""

    vocab: Length = 49408
    context: Length = 77
    width: Width = 512
    depth: Depth = 12
    heads: Width = 8
    hidden: Width = 2048
    activation: str = "quick_gelu"
    """quick_gelu or gelu."""
    eps: Share = 1e-5
    start: Token = 49406
    end: Token = 49407
    """The token at which the text's vector is taken."""
    pad: Token = 1
    projected: Width = 512
    """Of the joint space, where this encoder alone has a projection."""

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """As part of a CLIP's config.json."""
        return config_from_json(cls, LAYOUT, values, Path("text_config"))

    def write(self) -> dict[str, Any]:
        """The same the other way."""
        return config_to_json(self, LAYOUT, "clip_text_model", "float32")


class Encoded(NamedTuple):
    """hidden (b, t, d): a vector a token or patch; pooled (b, d): one for the whole."""

    hidden: Tensor
    pooled: Tensor


class ClipTextTower(Pretrained):
    """Embeddings, blocks and the last norm."""

    Config = ClipTextConfig

    def __init__(self, config: ClipTextConfig):
        super().__init__()
        c = self.config = config
        self.token = nn.Embedding(c.vocab, c.width)
        self.position = nn.Embedding(c.context, c.width)
        self.encoder = make_tower(c.depth, c.width, c.heads, c.hidden, c.activation, c.eps)
        self.norm = nn.LayerNorm(c.width, c.eps)
        nn.init.normal_(self.token.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.01)

    def encode(self, tokens: Tensor) -> Encoded:
        """tokens (b, t) -> vectors (b, t, d) and the text's (b, d)"""
        t, c = tokens.shape[1], self.config
        if t > c.context:
            raise ValueError(f"{t} tokens, but this model has positions for {c.context} (its context)")
        x = self.token(tokens) + self.position(torch.arange(t, device=tokens.device))
        x = self.norm(self.encoder(x, causal=True))
        is_end = tokens if c.end == LEGACY_END else (tokens == c.end).int()
        return Encoded(x, x[torch.arange(len(x), device=x.device), is_end.argmax(1)])


class ClipTextModel(ClipTextTower):
    """tokens (b, t) -> vectors (b, t, d) and the text's (b, d)"""

    def forward(self, tokens: Tensor) -> Encoded:
        return self.encode(tokens)


class ClipTextModelWithProjection(ClipTextTower):
    """tokens (b, t) -> the text's vector in the joint space (b, p), not of length 1"""

    def __init__(self, config: ClipTextConfig):
        super().__init__(config)
        self.project = make_projection(config.width, config.projected)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.project(self.encode(tokens).pooled)


def make_projection(d: int, width: int) -> nn.Linear:
    """W (width, d) into the joint space, without a bias."""
    layer = nn.Linear(d, width, bias=False)
    nn.init.normal_(layer.weight, std=d**-0.5)
    return layer


def make_tower(depth: int, width: int, heads: int, hidden: int, activation: str, eps: float) -> Encoder:
    """Blocks with the norm first. What adds to the residual sum starts smaller by √(2 depth)."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"hidden_act {activation!r} is not known, only {', '.join(ACTIVATIONS)}")
    blocks = [PreNormBlock(width, heads, hidden, ACTIVATIONS[activation](), eps=eps) for _ in range(depth)]
    for block in blocks:
        small = (2 * depth) ** -0.5
        stds = {block.attn.q: 1.0, block.attn.k: 1.0, block.attn.v: 1.0, block.attn.out: small}
        for layer, share in {**stds, block.mlp.up: 0.5**0.5, block.mlp.down: small}.items():
            nn.init.normal_(layer.weight, std=share * width**-0.5)
            nn.init.zeros_(layer.bias)
    return Encoder(blocks)


TINY = ClipTextConfig(vocab=61, context=12, width=32, depth=2, heads=4, hidden=48, start=59, end=60, projected=16)
SIZES = {"clip-vit-base-patch32": ClipTextConfig(), "clip-vit-large-patch14": ClipTextConfig(
    width=768, heads=12, hidden=3072, projected=768)}  # fmt: skip
PARAMETERS = {"clip-vit-base-patch32": 63_165_952, "clip-vit-large-patch14": 123_060_480}

ARCHITECTURES: dict[str, type[Pretrained]] = {
    "CLIPTextModel": ClipTextModel,
    "CLIPTextModelWithProjection": ClipTextModelWithProjection,
}

LAYOUT = Layout(
    architecture="CLIPTextModel",
    fields={
        "vocab": "vocab_size",
        "context": "max_position_embeddings",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "activation": "hidden_act",
        "eps": "layer_norm_eps",
        "start": "bos_token_id",
        "end": "eos_token_id",
        "pad": "pad_token_id",
        "projected": "projection_dim",
    },
    fixed={"attention_dropout": 0.0},
    bare_prefix="text_model.",
)


def block_keys(ours: str, theirs: str) -> list[Rule]:
    """The blocks of either encoder."""
    names = {"norm_1": "layer_norm1", "norm_2": "layer_norm2", "mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2"}
    names |= {f"attn.{p}": f"self_attn.{p}_proj" for p in ("q", "k", "v", "out")}
    blocks = f"{ours}encoder.blocks.{{}}", f"{theirs}encoder.layers.{{}}"
    return [rule for a, b in names.items() for rule in rename_pair(f"{blocks[0]}.{a}", f"{blocks[1]}.{b}")]


def text_keys(ours: str) -> list[Rule]:
    """The text encoder, under a prefix of ours."""
    return [
        rename(f"{ours}token.weight", "text_model.embeddings.token_embedding.weight"),
        rename(f"{ours}position.weight", "text_model.embeddings.position_embedding.weight"),
        drop("text_model.embeddings.position_ids"),
        *block_keys(ours, "text_model."),
        *rename_pair(f"{ours}norm", "text_model.final_layer_norm"),
    ]


KEYS = [*text_keys(""), rename("project.weight", "text_projection.weight")]
