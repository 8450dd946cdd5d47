"""YOLOS: a plain ViT that detects, with detection tokens in place of DETR's decoder.

    z_0 = [cls; E patches; det_1 .. det_N] + P          N learned tokens behind the patches
    z_l = block(z_{l−1}) + P_l                          pre-norm blocks; places again between them
    logits MLP(norm(det)),  boxes σ(MLP(norm(det)))     of the last block, K + 1 classes, cx, cy, w, h in shares

It is trained as DETR is (`losses/detection/set_prediction.py`). Nothing in it knows that an image is a plane but the
learned places, which are resized for other images (bicubic). The places between the blocks are an option of the
released form: the smaller models have them.

Systems: detr
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.models.vit import block_keys
from descend.nn.attention.positions_2d import resize_positions
from descend.nn.detection.set_queries import ReluLayers
from descend.nn.encoder import PreNormBlock
from descend.ops.detection.sets import SetFound, decode_softmax, measure_sides
from descend.ranges import Depth, Fraction, Share, Side, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair


@dataclass(frozen=True)
class YolosConfig:
    """The defaults are those of YOLOS-Base as transformers has them."""

    channels: Width = 3
    sides: tuple[Side, Side] = (512, 864)
    """Height and width of the images that the places are learned for; others work too."""
    patch: Side = 16
    width: Width = 768
    depth: Depth = 12
    heads: Width = 12
    hidden: Width = 3072
    queries: Width = 100
    """N, the detection tokens."""
    places: Literal["first", "every"] = "every"
    """Before the first block, or before every one."""
    dropout: Fraction = 0.0
    eps: Share = 1e-12
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sides", tuple(self.sides))

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.sides[0] // self.patch, self.sides[1] // self.patch

    @property
    def length(self) -> int:
        """Tokens of an image."""
        return 1 + self.grid[0] * self.grid[1] + self.queries


class Yolos(Pretrained):
    """images (b, channels, h, w) -> logits and boxes of the last block"""

    Config = YolosConfig

    def __init__(self, config: YolosConfig):
        super().__init__()
        c = self.config = config
        self.stride = c.patch
        self.patches = nn.Conv2d(c.channels, c.width, c.patch, c.patch)
        self.cls = nn.Parameter(torch.randn(1, 1, c.width) * 0.02)
        self.queries = nn.Parameter(torch.randn(1, c.queries, c.width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, c.length, c.width) * 0.02)
        if c.places == "every":
            self.later = nn.Parameter(torch.randn(c.depth - 1, 1, c.length, c.width) * 0.02)
        blocks = (PreNormBlock(c.width, c.heads, c.hidden, nn.GELU(), c.dropout, c.eps) for _ in range(c.depth))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(c.width, c.eps)
        self.classify = ReluLayers((c.width, c.width, c.width, len(c.labels) + 1))
        self.locate = ReluLayers((c.width, c.width, c.width, 4))
        self.drop = nn.Dropout(c.dropout)

    def resize(self, places: Tensor, grid: tuple[int, int]) -> Tensor:
        """Places (l, 1 + R·C + N, d) for another grid."""
        n = self.config.queries
        cls, patches, queries = places[:, :1], places[:, 1:-n], places[:, -n:]
        return torch.cat([cls, resize_positions(patches, self.config.grid, grid), queries], dim=1)

    def forward(self, x: Tensor) -> SetFound:
        c = self.config
        grid = x.shape[2] // c.patch, x.shape[3] // c.patch
        if 0 in grid:
            raise Mistake(f"images of {x.shape[2]}×{x.shape[3]} have no patch of {c.patch}; give larger ones")
        parts = self.cls.expand(len(x), -1, -1), self.patches(x).flatten(2).mT, self.queries.expand(len(x), -1, -1)
        h = self.drop(torch.cat(parts, dim=1) + self.resize(self.places, grid))
        later = self.resize(self.later[:, 0], grid) if c.places == "every" else None
        for i, block in enumerate(self.blocks):
            h = h if later is None or i == 0 else h + later[i - 1]
            h = block(h)
        y = self.norm(h[:, -c.queries :])[None]
        return SetFound(self.classify(y), self.locate(y).sigmoid(), measure_sides(x))

    def decode(self, found: SetFound, least: float = 0.001, most: int = 100) -> Boxes:
        return Boxes(*decode_softmax(found, least, most))


COCO = Labels(tuple(f"LABEL_{k}" for k in range(91)))
SIZES = {
    "yolos-tiny": YolosConfig(
        sides=(800, 1333), width=192, heads=3, hidden=768, places="first", eps=1e-12, labels=COCO
    ),
}  # fmt: skip
PARAMETERS = {"yolos-tiny": 6_488_736}
TINY = YolosConfig(
    sides=(16, 24), patch=4, width=16, depth=3, heads=2, hidden=24, queries=5, labels=Labels(("a", "b", "c"))
)


def TINY_INPUT() -> Tensor:
    """Two images of another size than the places."""
    return torch.rand(2, 3, 20, 28, generator=torch.Generator().manual_seed(0))


def read_values(values: dict[str, Any]) -> dict[str, Any]:
    """With a name for where places are added."""
    return values | {"places": "every" if values.get("use_mid_position_embeddings", True) else "first"}


def write_values(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"use_mid_position_embeddings": values["places"] == "every"}


LAYOUT = Layout(
    architecture="YolosForObjectDetection",
    fields={
        "channels": "num_channels",
        "sides": "image_size",
        "patch": "patch_size",
        "width": "hidden_size",
        "depth": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "queries": "num_detection_tokens",
        "places": "places",
        "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
        "eps": "layer_norm_eps",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"hidden_act": "gelu", "qkv_bias": True},
    older=read_values,
    newer=write_values,
)
KEYS = [
    *rename_pair("patches", "vit.embeddings.patch_embeddings.projection"),
    rename("cls", "vit.embeddings.cls_token"),
    rename("queries", "vit.embeddings.detection_tokens"),
    rename("places", "vit.embeddings.position_embeddings"),
    rename("later", "vit.encoder.mid_position_embeddings"),
    rename("later", "vit.encoder.interpolation.mid_position_embeddings"),
    *block_keys("blocks.{}", "vit.encoder.layer.{}"),
    *rename_pair("norm", "vit.layernorm"),
    *rename_pair("classify.layers.{}", "class_labels_classifier.layers.{}"),
    *rename_pair("locate.layers.{}", "bbox_predictor.layers.{}"),
]
