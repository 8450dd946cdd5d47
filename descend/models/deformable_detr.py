"""Deformable DETR: set prediction on several scales, by attention that looks at a few points of each.

    S3, S4, S5, S6 -> tokens with places                 1×1 convolutions and group norm; S6 by a 3×3 of stride 2
    encoder   x ← norm(x + deform(x + p, own place))     every token looks at 4 points of each scale
    decoder   y ← norm(y + attention(y, y))   y ← norm(y + deform(y + q, reference))   y ← norm(y + mlp(y))
    boxes     σ(MLP(y) + σ⁻¹(reference))                 of each layer; scores are sigmoids of K classes

    plain       references are points, learned with the queries, the same for all layers
    refining    a layer's box is the next one's reference; heads of its own in each layer
    two-stage   the encoder's best tokens propose the first references, by class 0 of a head of its own

It is trained as DETR is, with the focal loss (`FocalSetPrediction`); the proposals of the two-stage form have no
loss of their own here.

Systems: detr
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._backbones import Norm, backbone_keys, make_pyramid, read_backbone, write_backbone
from descend.models.detr import TINY as DETR_TINY
from descend.models.detr import layer_keys
from descend.models.resnet import ResNetConfig
from descend.models.rt_detr import cross_keys
from descend.nn.detection.deformable_attention import DeformableAttention
from descend.nn.detection.hybrid_encoder import join_maps
from descend.nn.detection.query_selection import grid_anchors, invert_sigmoid, take_rows
from descend.nn.detection.refining_decoder import Beside, RefiningLayer
from descend.nn.detection.set_queries import PlacedAttention, ReluLayers, SinePlaces, start_transformer
from descend.nn.mlp import MLP
from descend.ops.attention.positions import sinusoidal
from descend.ops.detection.sets import SetFound, decode_sigmoid, measure_sides
from descend.ranges import Depth, Fraction, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, copied, rename, rename_pair


@dataclass(frozen=True)
class DeformableDetrConfig:
    """The defaults are those of the original with ResNet-50."""

    channels: Width = 3
    backbone: Any = field(default_factory=ResNetConfig)
    """A ResNetConfig; its last three stages are read."""
    norm: Norm = "frozen"
    form: Literal["plain", "refining", "two-stage"] = "plain"
    queries: Width = 300
    proposals: Width = 300
    """Queries of the two-stage form."""
    levels: Width = 4
    groups: Width = 32
    """Of the group norms."""
    width: Width = 256
    depth: Depth = 6
    decoder_depth: Depth = 6
    heads: Width = 8
    decoder_heads: Width = 8
    hidden: Width = 1024
    decoder_hidden: Width = 1024
    points: Width = 4
    decoder_points: Width = 4
    dropout: Fraction = 0.1
    attention_dropout: Fraction = 0.0
    hidden_dropout: Fraction = 0.0
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backbone", replace(self.backbone, channels=self.channels))
        if self.levels < READ:
            raise ValueError(f"levels {self.levels}: the last {READ} stages of the backbone are read")

    @property
    def heads_apart(self) -> bool:
        """Whether every layer has heads of its own."""
        return self.form != "plain"


READ = 3


class DeformableEncoderLayer(nn.Module):
    """x ← norm(x + deform(x + p)), x ← norm(x + mlp(x))"""

    def __init__(self, attn: DeformableAttention, mlp: MLP, width: int, dropout: float = 0.0):
        super().__init__()
        self.attn, self.norm_1 = attn, nn.LayerNorm(width)
        self.mlp, self.norm_2 = mlp, nn.LayerNorm(width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor, place: Tensor, references: Tensor, grids: list[tuple[int, int]]) -> Tensor:
        found = self.attn(x + place, references, self.attn.project(x), grids)
        x = self.norm_1(x + self.drop(found))
        return self.norm_2(x + self.drop(self.mlp(x)))


class Proposals(NamedTuple):
    """What the two-stage form's encoder proposes."""

    logits: Tensor
    """(b, L, K)"""
    boxes: Tensor
    """cx, cy, w, h in shares (b, L, 4)."""


class DeformableDetr(Pretrained):
    """images (b, channels, h, w) -> logits and boxes of every decoder layer"""

    Config = DeformableDetrConfig

    def __init__(self, config: DeformableDetrConfig):
        super().__init__()
        c = self.config = config
        d, classes = c.width, len(c.labels)
        self.stride = int(4 * 2 ** (len(c.backbone.depths) - 1))
        self.backbone = make_pyramid(c.backbone, c.norm)
        widths = c.backbone.widths[-READ:]
        shapes = [(n, 1, 1) for n in widths] + [(widths[-1] if i == 0 else d, 3, 2) for i in range(c.levels - READ)]
        convs = (nn.Conv2d(n, d, k, s, padding=k // 2) for n, k, s in shapes)
        self.project = nn.ModuleList(nn.Sequential(conv, nn.GroupNorm(c.groups, d)) for conv in convs)
        self.places, self.level = SinePlaces(d, back=0.5), nn.Parameter(torch.randn(c.levels, d))
        self.encoder = nn.ModuleList(self.make_encoder_layer() for _ in range(c.depth))
        self.decoder = nn.ModuleList(self.make_layer() for _ in range(c.decoder_depth))
        if c.form == "two-stage":
            self.rows = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d))
            self.pose = nn.Sequential(nn.Linear(2 * d, 2 * d), nn.LayerNorm(2 * d))
        else:
            self.queries, self.reference = nn.Parameter(torch.randn(c.queries, 2 * d)), nn.Linear(d, 2)
        count = (c.decoder_depth + (c.form == "two-stage")) if c.heads_apart else 1
        self.classify = nn.ModuleList(nn.Linear(d, classes) for _ in range(count))
        self.locate = nn.ModuleList(ReluLayers((d, d, d, 4)) for _ in range(count))
        for head in self.classify:
            nn.init.constant_(head.bias, -math.log(99))  # type: ignore[arg-type]

    def make_mlp(self, hidden: int) -> MLP:
        mlp = MLP(self.config.width, hidden, nn.Sequential(nn.ReLU(), nn.Dropout(self.config.hidden_dropout)))
        start_transformer(mlp)
        return mlp

    def make_encoder_layer(self) -> DeformableEncoderLayer:
        c = self.config
        attn = DeformableAttention(c.width, c.heads, c.levels, c.points)
        return DeformableEncoderLayer(attn, self.make_mlp(c.hidden), c.width, c.dropout)

    def make_layer(self) -> RefiningLayer:
        c = self.config
        attn = PlacedAttention(c.width, c.decoder_heads, c.attention_dropout)
        cross = DeformableAttention(c.width, c.decoder_heads, c.levels, c.decoder_points)
        start_transformer(attn)
        return RefiningLayer(attn, cross, self.make_mlp(c.decoder_hidden), c.width, c.dropout)

    def encode(self, x: Tensor) -> tuple[Tensor, list[tuple[int, int]]]:
        """The tokens of all levels (b, L, d), and the rows and columns of each."""
        read = self.backbone.pyramid(x)[-READ:]
        maps = [project(one) for project, one in zip(self.project, read, strict=False)]
        for i, project in enumerate(self.project[READ:]):
            maps.append(project(maps[-1] if i else read[-1]))
        tokens, grids = join_maps(maps)
        places = [self.places.place_tokens(tokens, grid, None)[1] for grid in grids]
        place = torch.cat([p + level for p, level in zip(places, self.level, strict=True)], dim=1)
        references = centre_points(grids, x)
        for layer in self.encoder:
            tokens = layer(tokens, place, references, grids)
        return tokens, grids

    def propose(self, tokens: Tensor, grids: list[tuple[int, int]]) -> tuple[Proposals, Tensor]:
        """The encoder's own predictions, and the best of them by class 0 (b, n)."""
        anchors = grid_anchors(grids, tokens.device)
        rows = self.rows(tokens * anchors.used)
        logits = self.classify[-1](rows)
        boxes = (self.locate[-1](rows) + anchors.logits).sigmoid()
        return Proposals(logits, boxes), logits[..., 0].topk(self.config.proposals, dim=1).indices

    def forward(self, x: Tensor) -> SetFound:
        c = self.config
        tokens, grids = self.encode(x)
        if c.form == "two-stage":
            proposed, best = self.propose(tokens, grids)
            reference = take_rows(proposed.boxes, best).detach()
            place, y = self.pose(encode_boxes(reference, c.width)).chunk(2, dim=-1)
        else:
            place, y = (part.expand(len(x), -1, -1) for part in self.queries.chunk(2, dim=-1))
            reference = self.reference(place).sigmoid()
        logits, found = [], []
        for i, layer in enumerate(self.decoder):
            values = layer.cross.project(tokens)  # type: ignore[operator, union-attr]
            y = layer(y, place, reference, values, grids, Beside(y + place, y), None)
            head = i if c.heads_apart else 0
            logits.append(self.classify[head](y))
            start = invert_sigmoid(reference)
            box = (self.locate[head](y) + nn.functional.pad(start, (0, 4 - start.shape[-1]))).sigmoid()
            found.append(box)
            reference = box.detach() if c.heads_apart else reference
        return SetFound(torch.stack(logits), torch.stack(found), measure_sides(x))

    def decode(self, found: SetFound, least: float = 0.001, most: int = 100) -> Boxes:
        return Boxes(*decode_sigmoid(found, least, most))


def centre_points(grids: list[tuple[int, int]], x: Tensor) -> Tensor:
    """Where each token stands, x, y in shares: (1, L, 1, 2)."""
    found = []
    for rows, columns in grids:
        i, j = ((torch.arange(n, dtype=x.dtype, device=x.device) + 0.5) / n for n in (rows, columns))
        found.append(torch.stack([j.expand(rows, -1), i[:, None].expand(-1, columns)], dim=-1).flatten(0, 1))
    return torch.cat(found)[None, :, None]


def encode_boxes(boxes: Tensor, width: int) -> Tensor:
    """The sinusoids of cx, cy, w, h, half a width each: (b, n, 4) -> (b, n, 2 d)"""
    return sinusoidal(2 * math.pi * boxes, width // 2).flatten(-2).to(boxes.dtype)


COCO = Labels(tuple(f"LABEL_{k}" for k in range(91)))
SIZES = {
    "deformable-detr": DeformableDetrConfig(labels=COCO),
    "deformable-detr-with-box-refine": DeformableDetrConfig(form="refining", labels=COCO),
    "deformable-detr-with-box-refine-two-stage": DeformableDetrConfig(form="two-stage", labels=COCO),
}
PARAMETERS = {
    "deformable-detr": 40_069_665,
    "deformable-detr-with-box-refine": 40_849_660,
    "deformable-detr-with-box-refine-two-stage": 41_181_529,
}
TINY = DeformableDetrConfig(
    backbone=DETR_TINY.backbone, norm="batch", queries=5, groups=4, width=16, depth=1, decoder_depth=2, heads=2,
    decoder_heads=2, hidden=24, decoder_hidden=24, points=2, decoder_points=2, dropout=0.0,
    labels=Labels(("a", "b", "c")),
)  # fmt: skip


def TINY_INPUT() -> Tensor:
    """Two images of which no side is a multiple of 32."""
    return torch.rand(2, 3, 70, 100, generator=torch.Generator().manual_seed(0))


def read_values(values: dict[str, Any]) -> dict[str, Any]:
    """With the backbone as a config of ours, and a name for the form."""
    form = "refining" if values.get("with_box_refine") else "plain"
    form = "two-stage" if values.get("two_stage") else form
    return values | {"backbone_config": read_backbone(values), "form": form}


def write_values(values: dict[str, Any]) -> dict[str, Any]:
    backbone, form = values["backbone_config"], values["form"]
    stages = [f"stage{i}" for i in range(1, len(backbone.depths) + 1)]
    return values | {
        "backbone_config": write_backbone(backbone, stages[-READ:]),
        "use_timm_backbone": False,
        "with_box_refine": form != "plain",
        "two_stage": form == "two-stage",
    }


LAYOUT = Layout(
    architecture="DeformableDetrForObjectDetection",
    fields={
        "channels": "num_channels",
        "backbone": "backbone_config",
        "norm": "backbone_norm",
        "form": "form",
        "queries": "num_queries",
        "proposals": "two_stage_num_proposals",
        "levels": "num_feature_levels",
        "groups": "norm_groups",
        "width": "d_model",
        "depth": "encoder_layers",
        "decoder_depth": "decoder_layers",
        "heads": "encoder_attention_heads",
        "decoder_heads": "decoder_attention_heads",
        "hidden": "encoder_ffn_dim",
        "decoder_hidden": "decoder_ffn_dim",
        "points": "encoder_n_points",
        "decoder_points": "decoder_n_points",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "hidden_dropout": "activation_dropout",
        "labels": "id2label",
    },
    parts={"labels": Labels},
    fixed={"activation_function": "relu", "position_embedding_type": "sine", "encoder_layerdrop": 0.0},
    older=read_values,
    newer=write_values,
)


def head_keys(ours: str, theirs: str) -> list[Rule]:
    """The heads of all layers: one that files repeat or leave out, or one each; below the decoder where they refine."""
    shared = [rename(f"{ours.format(0)}", f"{theirs.format(0)}")]
    apart = [copied(ours.format(i), theirs.format(i), theirs.format(0)) for i in range(1, MOST_LAYERS)]
    return [*shared, *apart, rename(ours, f"model.decoder.{theirs}")]


MOST_LAYERS = 13
LAYER = "model.decoder.layers.{}"
KEYS = [
    *backbone_keys("model.backbone.conv_encoder.model."),
    *rename_pair("project.{}.{}", "model.input_proj.{}.{}"),
    rename("level", "model.level_embed"),
    *cross_keys("encoder.{}.attn", "model.encoder.layers.{}.self_attn"),
    *rename_pair("encoder.{}.norm_1", "model.encoder.layers.{}.self_attn_layer_norm"),
    *rename_pair("encoder.{}.mlp.up", "model.encoder.layers.{}.fc1"),
    *rename_pair("encoder.{}.mlp.down", "model.encoder.layers.{}.fc2"),
    *rename_pair("encoder.{}.norm_2", "model.encoder.layers.{}.final_layer_norm"),
    *layer_keys("decoder.{}", LAYER),
    *cross_keys("decoder.{}.cross", f"{LAYER}.encoder_attn"),
    *rename_pair("decoder.{}.norm_2", f"{LAYER}.encoder_attn_layer_norm"),
    *rename_pair("decoder.{}.norm_3", f"{LAYER}.final_layer_norm"),
    rename("queries", "model.query_position_embeddings.weight"),
    *rename_pair("reference", "model.reference_points"),
    *rename_pair("rows.0", "model.enc_output"),
    *rename_pair("rows.1", "model.enc_output_norm"),
    *rename_pair("pose.0", "model.pos_trans"),
    *rename_pair("pose.1", "model.pos_trans_norm"),
    *(rule for p in ("weight", "bias") for rule in head_keys(f"classify.{{}}.{p}", f"class_embed.{{}}.{p}")),
    *(
        rule
        for j in range(3)
        for p in ("weight", "bias")
        for rule in head_keys(f"locate.{{}}.layers.{j}.{p}", f"bbox_embed.{{}}.layers.{j}.{p}")
    ),
]
