"""DETR: detection as the prediction of a set, by a transformer whose queries are learned.

    f = backbone(x)                          (b, 2048, H/32, W/32): 480×640 -> 15×20, 300 tokens
    e = W_e f + b_e                          1×1 convolution to d = 256, then flattened
    h = encoder(e, places)                   6 layers, every token looks at every token
    y = decoder(queries, h)                  6 layers, N = 100 learned queries
    class logits W_c y + b_c                 (N, K + 1): the last class is "no object"
    boxes σ(MLP(y))                          (N, 4): cx, cy, w, h in shares of the image

Every decoder layer is read by the same heads, after the same norm, so that each can be trained (auxiliary losses); the
last one counts. There are no anchors and no non-maximum suppression. `places` and `heads` make the forms:

    original   places "sine" (2-D; or "learned"), added to queries and keys of every layer; 8 heads
    text       places "index" (MF 25.2.2: over the flattened map), added to the tokens once; 1 head: scores / √256

Boxes are centre and size, though MF (28.2.5) calls them XYXY. With a trained backbone its batch norms are frozen (norm
"frozen") and its stem and first stage too (`freeze_start`): 41,302,368 trainable parameters with ResNet-50, 60,242,272
with ResNet-101. From scratch the norm is "batch". A Swin is a backbone, too. The printed 38.7 M of a Swin-T DETR and
153.6 M of a Swin-L DETR are errata: Swin-L alone has 195 M.

Systems: detr
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._backbones import (
    Norm,
    backbone_keys,
    count_channels,
    make_backbone,
    measure_stride,
    read_backbone,
    write_backbone,
)
from descend.models.resnet import SIZES as RESNETS
from descend.models.resnet import ResNetConfig
from descend.models.swin import SwinConfig
from descend.nn.detection.set_queries import (
    IndexPlaces,
    LearnedPlaces,
    PlacedAttention,
    Places,
    ReluLayers,
    SetDecoderLayer,
    SetEncoderLayer,
    SinePlaces,
    add_place,
    shrink_mask,
    start_transformer,
)
from descend.nn.encoder import key_mask
from descend.nn.mlp import MLP
from descend.ops.detection.sets import SetFound, decode_softmax, measure_sides
from descend.ranges import Depth, Fraction, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, rename, rename_pair


@dataclass(frozen=True)
class DetrConfig:
    """The defaults are those of the original with ResNet-50. A recipe takes channels and labels from its data."""

    channels: Width = 3
    backbone: Any = field(default_factory=ResNetConfig)
    """A ResNetConfig or a SwinConfig."""
    norm: Norm = "frozen"
    queries: Width = 100
    """N, the most objects of an image."""
    width: Width = 256
    depth: Depth = 6
    """Layers of the encoder."""
    decoder_depth: Depth = 6
    heads: Width = 8
    decoder_heads: Width = 8
    hidden: Width = 2048
    decoder_hidden: Width = 2048
    dropout: Fraction = 0.1
    attention_dropout: Fraction = 0.0
    hidden_dropout: Fraction = 0.0
    """Within the MLPs."""
    places: Literal["sine", "learned", "index"] = "sine"
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backbone", replace(self.backbone, channels=self.channels))


def make_places(kind: str, width: int) -> Places:
    """By their name in a config."""
    if kind == "index":
        return IndexPlaces()
    return LearnedPlaces(width) if kind == "learned" else SinePlaces(width)


class Detr(Pretrained):
    """images (b, channels, h, w) -> logits and boxes of every decoder layer"""

    Config = DetrConfig

    def __init__(self, config: DetrConfig):
        super().__init__()
        c = self.config = config
        self.stride = measure_stride(c.backbone)
        self.backbone = make_backbone(c.backbone, c.norm)
        self.project = nn.Conv2d(count_channels(c.backbone), c.width, 1)
        self.places = make_places(c.places, c.width)
        self.encoder = nn.ModuleList(self.make_encoder_layer() for _ in range(c.depth))
        self.queries = nn.Parameter(torch.randn(c.queries, c.width))
        self.decoder = nn.ModuleList(self.make_decoder_layer() for _ in range(c.decoder_depth))
        self.norm = nn.LayerNorm(c.width)
        self.classify = nn.Linear(c.width, len(c.labels) + 1)
        self.locate = ReluLayers((c.width, c.width, c.width, 4))
        start_transformer(self.encoder)
        start_transformer(self.decoder)

    def make_encoder_layer(self) -> SetEncoderLayer:
        c = self.config
        attn = PlacedAttention(c.width, c.heads, c.attention_dropout)
        return SetEncoderLayer(attn, self.make_mlp(c.hidden), c.width, c.dropout)

    def make_decoder_layer(self) -> SetDecoderLayer:
        c = self.config
        attn, cross = (PlacedAttention(c.width, c.decoder_heads, c.attention_dropout) for _ in range(2))
        return SetDecoderLayer(attn, cross, self.make_mlp(c.decoder_hidden), c.width, c.dropout)

    def make_mlp(self, hidden: int) -> MLP:
        return MLP(self.config.width, hidden, nn.Sequential(nn.ReLU(), nn.Dropout(self.config.hidden_dropout)))

    def forward(self, x: Tensor, real: Tensor | None = None) -> SetFound:
        """`real` (b, h, w) is true where a pixel is no padding; none: all are real."""
        maps = self.backbone.maps(x)
        height, width = maps.shape[-2:]
        real = shrink_mask(real, (height, width))
        tokens = self.project(maps).flatten(2).mT
        tokens, place = self.places.place_tokens(tokens, (height, width), real)
        mask = None if real is None else key_mask(real.flatten(1), height * width)
        for layer in self.encoder:
            tokens = layer(tokens, place, mask)
        y, query_place = self.places.place_queries(self.queries, len(x))
        keys, found = add_place(tokens, place), []
        for layer in self.decoder:
            y = layer(y, query_place, keys, tokens, mask)
            found.append(self.norm(y))
        h = torch.stack(found)
        return SetFound(self.classify(h), self.locate(h).sigmoid(), measure_sides(x))

    def decode(self, found: SetFound, least: float = 0.001, most: int = 100) -> Boxes:
        return Boxes(*decode_softmax(found, least, most))

    def freeze_start(self) -> None:
        """Take stem and first stage of a trained ResNet out of the training, as the original does."""
        for part in (self.backbone.stem, self.backbone.stages[0]):
            part.requires_grad_(False)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(91)))
SIZES = {
    "detr-resnet-50": DetrConfig(labels=COCO),
    "detr-resnet-101": DetrConfig(backbone=replace(RESNETS["resnet-101"], labels=Labels()), labels=COCO),
    "detr-swin-tiny": DetrConfig(backbone=SwinConfig(), labels=COCO),
}
PARAMETERS = {"detr-resnet-50": 41_524_768, "detr-resnet-101": 60_464_672, "detr-swin-tiny": 45_261_530}
TINY = DetrConfig(
    backbone=ResNetConfig(stem=6, widths=(8, 8, 12, 12), depths=(1, 1, 1, 1), block="basic"), norm="batch", queries=5,
    width=16, depth=1, decoder_depth=2, heads=2, decoder_heads=2, hidden=24, decoder_hidden=24, dropout=0.0,
    labels=Labels(("a", "b", "c")),
)  # fmt: skip


def TINY_INPUT() -> Tensor:
    """Two images of which no side is a multiple of 32."""
    return torch.rand(2, 3, 70, 100, generator=torch.Generator().manual_seed(0))


def read_values(values: dict[str, Any]) -> dict[str, Any]:
    """With the backbone as a config of ours."""
    return values | {"backbone_config": read_backbone(values)}


def write_values(values: dict[str, Any]) -> dict[str, Any]:
    """With the backbone as transformers writes it; the last of its stages is used."""
    backbone = values["backbone_config"]
    last = f"stage{len(backbone.depths)}"
    return values | {"backbone_config": write_backbone(backbone, [last]), "use_timm_backbone": False}


LAYOUT = Layout(
    architecture="DetrForObjectDetection",
    fields={
        "channels": "num_channels",
        "backbone": "backbone_config",
        "norm": "backbone_norm",
        "queries": "num_queries",
        "width": "d_model",
        "depth": "encoder_layers",
        "decoder_depth": "decoder_layers",
        "heads": "encoder_attention_heads",
        "decoder_heads": "decoder_attention_heads",
        "hidden": "encoder_ffn_dim",
        "decoder_hidden": "decoder_ffn_dim",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "hidden_dropout": "activation_dropout",
        "places": "position_embedding_type",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"activation_function": "relu", "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0},
    older=read_values,
    newer=write_values,
)


def attention_keys(ours: str, theirs: str) -> list[Rule]:
    """Q, K, V and the output."""
    names = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "out": "out_proj"}
    return [rule for a, b in names.items() for rule in rename_pair(f"{ours}.{a}", f"{theirs}.{b}")]


def layer_keys(ours: str, theirs: str) -> list[Rule]:
    """What layers of the encoder and of the decoder have in common."""
    return [
        *attention_keys(f"{ours}.attn", f"{theirs}.self_attn"),
        *rename_pair(f"{ours}.norm_1", f"{theirs}.self_attn_layer_norm"),
        *rename_pair(f"{ours}.mlp.up", f"{theirs}.fc1"),
        *rename_pair(f"{ours}.mlp.down", f"{theirs}.fc2"),
    ]


KEYS = [
    *backbone_keys("model.backbone.conv_encoder.model."),
    *rename_pair("project", "model.input_projection"),
    rename("places.rows.weight", "model.position_embedding.row_embeddings.weight"),
    rename("places.columns.weight", "model.position_embedding.column_embeddings.weight"),
    *layer_keys("encoder.{}", "model.encoder.layers.{}"),
    *rename_pair("encoder.{}.norm_2", "model.encoder.layers.{}.final_layer_norm"),
    rename("queries", "model.query_position_embeddings.weight"),
    *layer_keys("decoder.{}", "model.decoder.layers.{}"),
    *attention_keys("decoder.{}.cross", "model.decoder.layers.{}.encoder_attn"),
    *rename_pair("decoder.{}.norm_2", "model.decoder.layers.{}.encoder_attn_layer_norm"),
    *rename_pair("decoder.{}.norm_3", "model.decoder.layers.{}.final_layer_norm"),
    *rename_pair("norm", "model.decoder.layernorm"),
    *rename_pair("classify", "class_labels_classifier"),
    *rename_pair("locate.layers.{}", "bbox_predictor.layers.{}"),
]
