"""Conditional DETR: queries that know which place of the image they ask about, so that training is much shorter.

    r = σ(MLP(q))                                    a reference point of each query, learned with it
    p = sinusoid(2π r) · T(y)                        its place in the image's own code, scaled by what the query knows
    content   q_c = W y,      k_c = W h
    place     q_p = W p,      k_p = W places
    scores    (q_c · k_c + q_p · k_p) / √(2 d / h)    two halves of each head: content and place do not mix
    boxes     σ(MLP(y) + [σ⁻¹(r), 0, 0])             centres are told relative to r

In the first layer, whose contents are 0, the queries' vectors and the places are added to the contents as well. Scores
are sigmoids of K classes; there is no "no object". Encoder, backbone and training are as in DETR, with the focal loss
(`FocalSetPrediction`).

Systems: detr
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._backbones import backbone_keys, count_channels, make_backbone, measure_stride
from descend.models.detr import LAYOUT as DETR
from descend.models.detr import TINY as DETR_TINY
from descend.models.detr import TINY_INPUT as DETR_INPUT
from descend.models.detr import DetrConfig, layer_keys, make_places
from descend.nn.attention.multi_head import attend
from descend.nn.detection.query_selection import invert_sigmoid
from descend.nn.detection.set_queries import (
    PlacedAttention,
    ReluLayers,
    SetEncoderLayer,
    shrink_mask,
    start_transformer,
)
from descend.nn.encoder import key_mask
from descend.nn.mlp import MLP
from descend.ops.attention.positions import sinusoidal
from descend.ops.detection.sets import SetFound, decode_sigmoid, measure_sides
from descend.ranges import Width
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, rename, rename_pair


class SplitAttention(nn.Module):
    """Self-attention with matrices of their own for contents and places: Q = W_c y + W_p p, K likewise, V = W y"""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.q, self.q_place, self.k, self.k_place = (nn.Linear(width, width) for _ in range(4))
        self.v, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, y: Tensor, place: Tensor) -> Tensor:
        q, k = self.q(y) + self.q_place(place), self.k(y) + self.k_place(place)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in (q, k, self.v(y)))
        return self.out(attend(q, k, v, dropout=self.dropout if self.training else 0.0).flatten(-2))


class ConditionalCross(nn.Module):
    """Attention to the image whose heads have two halves: contents and places."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.q, self.k, self.k_place, self.v = (nn.Linear(width, width) for _ in range(4))
        self.q_sine, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def contents(self, y: Tensor, query: Tensor, tokens: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """q_c and k_c; `query` and `place` (already projected) are for the first layer."""
        return self.q(y), self.k(tokens)

    def forward(
        self, y: Tensor, query: Tensor, sine: Tensor, tokens: Tensor, places: Tensor, mask: Tensor | None
    ) -> Tensor:
        place = self.k_place(places).expand(len(y), -1, -1)
        q, k = self.contents(y, query, tokens, place)
        pairs = ((q, self.q_sine(sine)), (k, place))
        q, k = (torch.cat([p.unflatten(-1, (self.heads, -1)) for p in pair], dim=-1) for pair in pairs)
        v = self.v(tokens).unflatten(-1, (self.heads, -1))
        half = v.shape[-1]
        v = torch.cat([v, torch.zeros_like(v)], dim=-1)  # the kernels want heads of one width
        found = attend(q, k, v, mask=mask, dropout=self.dropout if self.training else 0.0)[..., :half]
        return self.out(found.flatten(-2))


class FirstConditionalCross(ConditionalCross):
    """The first layer's: contents + the queries' vectors, and contents + places."""

    def __init__(self, width: int, heads: int, dropout: float = 0.0):
        super().__init__(width, heads, dropout)
        self.q_place = nn.Linear(width, width)

    def contents(self, y: Tensor, query: Tensor, tokens: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        return self.q(y) + self.q_place(query), self.k(tokens) + place


class ConditionalLayer(nn.Module):
    """Self-attention, conditional attention to the image, MLP: post-norm."""

    def __init__(self, attn: SplitAttention, cross: ConditionalCross, mlp: MLP, width: int, dropout: float = 0.0):
        super().__init__()
        self.attn, self.norm_1 = attn, nn.LayerNorm(width)
        self.cross, self.norm_2 = cross, nn.LayerNorm(width)
        self.mlp, self.norm_3 = mlp, nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)

    def forward(
        self, y: Tensor, query: Tensor, sine: Tensor, tokens: Tensor, places: Tensor, mask: Tensor | None
    ) -> Tensor:
        y = self.norm_1(y + self.drop(self.attn(y, query)))
        y = self.norm_2(y + self.drop(self.cross(y, query, sine, tokens, places, mask)))
        return self.norm_3(y + self.drop(self.mlp(y)))


@dataclass(frozen=True)
class ConditionalDetrConfig(DetrConfig):
    """The defaults are those of the original with ResNet-50."""

    queries: Width = 300


class ConditionalDetr(Pretrained):
    """images (b, channels, h, w) -> logits and boxes of every decoder layer"""

    Config = ConditionalDetrConfig

    def __init__(self, config: ConditionalDetrConfig):
        super().__init__()
        c = self.config = config
        d = c.width
        self.stride = measure_stride(c.backbone)
        self.backbone = make_backbone(c.backbone, c.norm)
        self.project = nn.Conv2d(count_channels(c.backbone), d, 1)
        self.places = make_places(c.places, d)
        looks = (PlacedAttention(d, c.heads, c.attention_dropout) for _ in range(c.depth))
        self.encoder = nn.ModuleList(SetEncoderLayer(attn, self.make_mlp(c.hidden), d, c.dropout) for attn in looks)
        self.queries = nn.Parameter(torch.randn(c.queries, d))
        self.decoder = nn.ModuleList(self.make_layer(i) for i in range(c.decoder_depth))
        self.norm = nn.LayerNorm(d)
        self.scale, self.reference = ReluLayers((d, d, d)), ReluLayers((d, d, 2))
        self.classify = nn.Linear(d, len(c.labels))
        self.locate = ReluLayers((d, d, d, 4))
        start_transformer(self.encoder)
        start_transformer(self.decoder)
        nn.init.constant_(self.classify.bias, -math.log(99))  # a probability of 1% at the start

    def make_mlp(self, hidden: int) -> MLP:
        return MLP(self.config.width, hidden, nn.Sequential(nn.ReLU(), nn.Dropout(self.config.hidden_dropout)))

    def make_layer(self, i: int) -> ConditionalLayer:
        c, kind = self.config, ConditionalCross if i else FirstConditionalCross
        attn = SplitAttention(c.width, c.decoder_heads, c.attention_dropout)
        cross = kind(c.width, c.decoder_heads, c.attention_dropout)
        return ConditionalLayer(attn, cross, self.make_mlp(c.decoder_hidden), c.width, c.dropout)

    def forward(self, x: Tensor, real: Tensor | None = None) -> SetFound:
        """`real` (b, h, w) is true where a pixel is no padding; none: all are real."""
        maps = self.backbone.maps(x)
        grid = maps.shape[2], maps.shape[3]
        real = shrink_mask(real, grid)
        tokens, places = self.places.place_tokens(self.project(maps).flatten(2).mT, grid, real)
        assert places is not None  # the index form is DETR's alone
        mask = None if real is None else key_mask(real.flatten(1), grid[0] * grid[1])
        for layer in self.encoder:
            tokens = layer(tokens, places, mask)
        query = self.queries.expand(len(x), -1, -1)
        point = self.reference(query).sigmoid()
        sine = encode_point(point, self.config.width)
        y, found = torch.zeros_like(query), []
        for i, layer in enumerate(self.decoder):
            y = layer(y, query, sine * self.scale(y) if i else sine, tokens, places, mask)
            found.append(self.norm(y))
        h = torch.stack(found)
        centre = nn.functional.pad(invert_sigmoid(point), (0, 2))
        return SetFound(self.classify(h), (self.locate(h) + centre).sigmoid(), measure_sides(x))

    def decode(self, found: SetFound, least: float = 0.001, most: int = 100) -> Boxes:
        return Boxes(*decode_sigmoid(found, least, most))


def encode_point(point: Tensor, width: int) -> Tensor:
    """[sinusoid of y; sinusoid of x] of points x, y in shares (.., 2) -> (.., d), as places are coded."""
    parts: Sequence[Tensor] = [sinusoidal(2 * math.pi * point[..., i], width // 2) for i in (1, 0)]
    return torch.cat(list(parts), dim=-1).to(point.dtype)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(91)))
SIZES = {"conditional-detr-resnet-50": ConditionalDetrConfig(labels=COCO)}
PARAMETERS = {"conditional-detr-resnet-50": 43_418_401}
TINY = ConditionalDetrConfig(**vars(DETR_TINY))
TINY_INPUT = DETR_INPUT
LAYOUT = replace(DETR, architecture="ConditionalDetrForObjectDetection")


def split_keys(ours: str, theirs: str, names: dict[str, str]) -> list[Rule]:
    return [rule for a, b in names.items() for rule in rename_pair(f"{ours}.{a}", f"{theirs}.{b}")]


LAYER = "model.decoder.layers.{}"
SELF = {
    "q": "sa_qcontent_proj", "q_place": "sa_qpos_proj", "k": "sa_kcontent_proj", "k_place": "sa_kpos_proj",
    "v": "sa_v_proj", "out": "self_attn.out_proj",
}  # fmt: skip
CROSS = {
    "q": "ca_qcontent_proj", "q_place": "ca_qpos_proj", "k": "ca_kcontent_proj", "k_place": "ca_kpos_proj",
    "v": "ca_v_proj", "q_sine": "ca_qpos_sine_proj", "out": "encoder_attn.out_proj",
}  # fmt: skip
KEYS = [
    *backbone_keys("model.backbone.conv_encoder.model."),
    *rename_pair("project", "model.input_projection"),
    rename("places.rows.weight", "model.position_embedding.row_embeddings.weight"),
    rename("places.columns.weight", "model.position_embedding.column_embeddings.weight"),
    *layer_keys("encoder.{}", "model.encoder.layers.{}"),
    *rename_pair("encoder.{}.norm_2", "model.encoder.layers.{}.final_layer_norm"),
    rename("queries", "model.query_position_embeddings.weight"),
    *split_keys("decoder.{}.attn", LAYER, SELF),
    *split_keys("decoder.{}.cross", LAYER, CROSS),
    *rename_pair("decoder.{}.norm_1", f"{LAYER}.self_attn_layer_norm"),
    *rename_pair("decoder.{}.norm_2", f"{LAYER}.encoder_attn_layer_norm"),
    *rename_pair("decoder.{}.norm_3", f"{LAYER}.final_layer_norm"),
    *rename_pair("decoder.{}.mlp.up", f"{LAYER}.fc1"),
    *rename_pair("decoder.{}.mlp.down", f"{LAYER}.fc2"),
    *rename_pair("norm", "model.decoder.layernorm"),
    *rename_pair("scale.layers.{}", "model.decoder.query_scale.layers.{}"),
    *rename_pair("reference.layers.{}", "model.decoder.ref_point_head.layers.{}"),
    *rename_pair("classify", "class_labels_classifier"),
    *rename_pair("locate.layers.{}", "bbox_predictor.layers.{}"),
]
