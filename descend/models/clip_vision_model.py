"""CLIP's image encoder: a vision transformer with a norm before its blocks and one after its class token.

    H⁰ = norm([z_cls; E x_p^(1) .. E x_p^(N)] + E_pos)                            no bias in E
    Y = H + attention(norm(H)),   H' = Y + W_2 φ(W_1 norm(Y) + b_1) + b_2         φ(x) = x σ(1.702 x)
    I = norm(H_depth[cls])

Systems: clip
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from descend.models.clip_text_model import Encoded, block_keys, make_projection, make_tower
from descend.nn.patches import PatchEmbedding, grid_of
from descend.ranges import Depth, Share, Side, Width
from descend.weights.layout import Layout, config_from_json, config_to_json
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, drop, rename, rename_pair


@dataclass(frozen=True)
class ClipVisionConfig:
    """The configuration of the image encoder; the defaults are those of ViT-B/32."""

    channels: Width = 3
    side: Side = 224
    patch: Side = 32
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    activation: str = "quick_gelu"
    """quick_gelu or gelu."""
    eps: Share = 1e-5
    projected: Width = 512
    """Of the joint space, where this encoder alone has a projection."""

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """As part of a CLIP's config.json."""
        return config_from_json(cls, LAYOUT, values, Path("vision_config"))

    def write(self) -> dict[str, Any]:
        """The same the other way."""
        return config_to_json(self, LAYOUT, "clip_vision_model", "float32")


class ClipVisionTower(Pretrained):
    """Patches, class token, positions, blocks and norms."""

    Config = ClipVisionConfig

    def __init__(self, config: ClipVisionConfig):
        super().__init__()
        c = self.config = config
        rows, columns = grid_of(c.side, c.side, c.patch)
        self.patches = PatchEmbedding(c.channels, c.width, c.patch, bias=False)
        self.cls = nn.Parameter(torch.randn(c.width) * c.width**-0.5)
        self.position = nn.Embedding(rows * columns + 1, c.width)
        self.norm_in = nn.LayerNorm(c.width, c.eps)
        self.encoder = make_tower(c.depth, c.width, c.heads, c.hidden, c.activation, c.eps)
        self.norm = nn.LayerNorm(c.width, c.eps)
        nn.init.normal_(self.position.weight, std=c.width**-0.5)

    def encode(self, x: Tensor) -> Encoded:
        """images (b, c, side, side) -> vectors (b, 1 + N, d) and the image's (b, d)"""
        side = self.config.side
        if x.shape[-2:] != (side, side):
            height, width = x.shape[-2:]
            raise ValueError(f"images of {height} x {width}, but this model takes {side} x {side}; resize them")
        tokens = torch.cat([self.cls.expand(len(x), 1, -1), self.patches(x)], dim=1)
        x = self.encoder(self.norm_in(tokens + self.position.weight))
        return Encoded(x, self.norm(x[:, 0]))


class ClipVisionModel(ClipVisionTower):
    """images (b, c, side, side) -> vectors (b, 1 + N, d), not normed, and the image's (b, d)"""

    def forward(self, x: Tensor) -> Encoded:
        return self.encode(x)


class ClipVisionModelWithProjection(ClipVisionTower):
    """images (b, c, side, side) -> the image's vector in the joint space (b, p), not of length 1"""

    def __init__(self, config: ClipVisionConfig):
        super().__init__(config)
        self.project = make_projection(config.width, config.projected)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(self.encode(x).pooled)


TINY = ClipVisionConfig(side=8, patch=4, width=32, depth=2, heads=4, hidden=48, projected=16)
SIZES = {"clip-vit-base-patch32": ClipVisionConfig(), "clip-vit-large-patch14": ClipVisionConfig(
    patch=14, width=1024, depth=24, heads=16, hidden=4096, projected=768)}  # fmt: skip
PARAMETERS = {"clip-vit-base-patch32": 87_456_000, "clip-vit-large-patch14": 303_179_776}


def TINY_INPUT() -> Tensor:
    """Two small images."""
    return torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "CLIPVisionModel": ClipVisionModel,
    "CLIPVisionModelWithProjection": ClipVisionModelWithProjection,
}

LAYOUT = Layout(
    architecture="CLIPVisionModel",
    fields={
        "channels": "num_channels",
        "side": "image_size",
        "patch": "patch_size",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "activation": "hidden_act",
        "eps": "layer_norm_eps",
        "projected": "projection_dim",
    },
    fixed={"attention_dropout": 0.0},
    bare_prefix="vision_model.",
)


def vision_keys(ours: str) -> list[Rule]:
    """The image encoder, under a prefix of ours. (pre_layrnorm is spelt so in the files.)"""
    return [
        rename(f"{ours}patches.weight", "vision_model.embeddings.patch_embedding.weight"),
        rename(f"{ours}cls", "vision_model.embeddings.class_embedding"),
        rename(f"{ours}position.weight", "vision_model.embeddings.position_embedding.weight"),
        drop("vision_model.embeddings.position_ids"),
        *rename_pair(f"{ours}norm_in", "vision_model.pre_layrnorm"),
        *block_keys(ours, "vision_model."),
        *rename_pair(f"{ours}norm", "vision_model.post_layernorm"),
    ]


KEYS = [*vision_keys(""), rename("project.weight", "visual_projection.weight")]
