"""RT-DETR: set prediction in real time, by queries that are taken from the image.

    S3, S4, S5 = backbone(x)                   strides 8, 16, 32
    P3, P4, P5 = CCFF(S3, S4, AIFI(S5))        attention on S5 only, convolutions between the scales
    E = P3, P4, P5 end to end                  L = 8400 tokens at 640×640
    Q, b_0 = the N = 300 best rows of E        with a first box each (`nn/detection/query_selection.py`)
    y_l, b_l = decoder layer l                 logits and refined boxes of each layer, 6 of them

There is no suppression: each object is matched with one query. The first entry of what is found is that of the selected
rows themselves, so that a loss on every entry trains the selection, too. `denoise` decodes queries that a loss makes of
noisy true objects; they see the others and are not seen by them.

    original   cross "deformable", queries "encoder", fusion "both"
    text       cross "all" (a standard decoder), fusion "down" (MF 26.2.2 gives the top-down half only)

MF calls DETR's attention "global (all scales)": DETR has one scale. HGNet is named as another backbone; a ResNet of the
vd form is what the released R18 .. R101 have. `attended` says which levels have attention of their own.

Systems: rt-detr, query-selection, rt-detr-hybrid-encoder
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from descend.contracts import Boxes
from descend.models._backbones import Norm, backbone_keys, make_pyramid, read_backbone, write_backbone
from descend.models.detr import attention_keys, layer_keys
from descend.models.rt_detr_resnet import RTDetrResNetConfig
from descend.nn.convolution.residual import ConvNorm
from descend.nn.detection.deformable_attention import DeformableAttention
from descend.nn.detection.hybrid_encoder import CrossScaleFusion, IntraScaleLayers, TopDownFusion, join_maps
from descend.nn.detection.query_selection import grid_anchors, select_queries, take_rows
from descend.nn.detection.refining_decoder import AllTokens, RefiningDecoder, RefiningLayer
from descend.nn.detection.set_queries import PlacedAttention, ReluLayers, SetEncoderLayer, start_transformer
from descend.nn.mlp import MLP
from descend.ops.detection.sets import SetFound, decode_sigmoid, measure_sides
from descend.ranges import Depth, Few, Fraction, Positive, Whole, Width
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, batch_norm, rename, rename_pair, tie


@dataclass(frozen=True)
class RTDetrConfig:
    """The defaults are those of RT-DETR-R50. A recipe takes channels and labels from its data."""

    channels: Width = 3
    backbone: Any = field(default_factory=RTDetrResNetConfig)
    """An RTDetrResNetConfig or a ResNetConfig; its last three stages are read."""
    norm: Norm = "frozen"
    width: Width = 256
    """Of the encoder."""
    depth: Few = 1
    """Layers of attention on each attended level."""
    attended: tuple[Few, ...] = (2,)
    """Levels with attention of their own: 2 is S5."""
    heads: Width = 8
    hidden: Width = 1024
    expansion: Positive = 1.0
    """Width of the RepConvs, in widths."""
    fusion: Literal["both", "down"] = "both"
    queries: Width = 300
    """N, the most objects of an image."""
    start: Literal["encoder", "learned"] = "encoder"
    """Where the contents of the queries are from."""
    decoder_width: Width = 256
    decoder_depth: Depth = 6
    decoder_heads: Width = 8
    decoder_hidden: Width = 1024
    points: Width = 4
    """That a head looks at in each level."""
    cross: Literal["deformable", "all"] = "deformable"
    dropout: Fraction = 0.0
    attention_dropout: Fraction = 0.0
    hidden_dropout: Fraction = 0.0
    denoising: Whole = 100
    """More than 0: there are contents for noisy objects of each class."""
    labels: Labels = field(default_factory=Labels)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attended", tuple(self.attended))
        object.__setattr__(self, "backbone", replace(self.backbone, channels=self.channels))
        if len(self.backbone.depths) < LEVELS or max(self.attended, default=0) >= LEVELS:
            raise ValueError(f"{len(self.backbone.depths)} stages, attention on {self.attended}: {LEVELS} are read")


LEVELS = 3


class RTDetr(Pretrained):
    """images (b, channels, h, w), sides multiples of 32 -> logits and boxes of the selected rows and of every layer"""

    Config = RTDetrConfig
    stride = 32

    def __init__(self, config: RTDetrConfig):
        super().__init__()
        c = self.config = config
        d, classes = c.decoder_width, len(c.labels)
        self.backbone = make_pyramid(c.backbone, c.norm)
        self.project = nn.ModuleList(ConvNorm(n, c.width, 1) for n in c.backbone.widths[-LEVELS:])
        self.attention = nn.ModuleList(IntraScaleLayers(self.make_encoder_layers(), c.width) for _ in c.attended)
        fusion = CrossScaleFusion if c.fusion == "both" else TopDownFusion
        self.fusion = fusion(c.width, LEVELS, int(c.width * c.expansion))
        self.tokens = nn.ModuleList(ConvNorm(c.width, d, 1) for _ in range(LEVELS))
        self.rows = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d))
        self.score = nn.Linear(d, classes)
        self.locate = ReluLayers((d, d, d, 4))
        if c.start == "learned":
            self.queries = nn.Parameter(torch.empty(c.queries, d))
            nn.init.xavier_uniform_(self.queries)
        if c.denoising:
            self.noisy = nn.Embedding(classes + 1, d, padding_idx=classes)
        self.decoder = RefiningDecoder([self.make_layer() for _ in range(c.decoder_depth)], d, classes)
        self.begin()

    def make_encoder_layers(self) -> list[SetEncoderLayer]:
        c = self.config
        act = nn.Sequential(nn.GELU(), nn.Dropout(c.hidden_dropout))
        parts = [(PlacedAttention(c.width, c.heads, c.dropout), MLP(c.width, c.hidden, act)) for _ in range(c.depth)]
        layers = [SetEncoderLayer(attn, mlp, c.width, c.dropout) for attn, mlp in parts]
        for layer in layers:
            start_transformer(layer)
        return layers

    def make_layer(self) -> RefiningLayer:
        c = self.config
        act = nn.Sequential(nn.ReLU(), nn.Dropout(c.hidden_dropout))
        attn = PlacedAttention(c.decoder_width, c.decoder_heads, c.attention_dropout)
        mlp = MLP(c.decoder_width, c.decoder_hidden, act)
        start_transformer(attn)
        start_transformer(mlp)
        return RefiningLayer(attn, self.make_cross(), mlp, c.decoder_width, c.dropout)

    def make_cross(self) -> nn.Module:
        c = self.config
        if c.cross == "all":
            return AllTokens(PlacedAttention(c.decoder_width, c.decoder_heads, c.attention_dropout))
        return DeformableAttention(c.decoder_width, c.decoder_heads, LEVELS, c.points)

    def begin(self) -> None:
        """Scores that start at a probability of 1 / (K + 1), and boxes that start at their anchors."""
        prior = -math.log(len(self.config.labels))
        for head in (self.score, *self.decoder.classify):
            nn.init.xavier_uniform_(head.weight)
            nn.init.constant_(head.bias, prior)
        for boxes in self.decoder.locate:
            nn.init.zeros_(boxes.layers[-1].weight)  # type: ignore[union-attr, index]
            nn.init.zeros_(boxes.layers[-1].bias)  # type: ignore[union-attr, index]

    def encode(self, x: Tensor) -> tuple[Tensor, list[tuple[int, int]]]:
        """The tokens (b, L, d) of all levels, and the rows and columns of each."""
        maps = self.backbone.pyramid(x)[-LEVELS:]
        maps = [project(one) for project, one in zip(self.project, maps, strict=True)]
        for level, attend in zip(self.config.attended, self.attention, strict=True):
            maps[level] = attend(maps[level])
        return join_maps([tokens(one) for tokens, one in zip(self.tokens, self.fusion(maps), strict=True)])

    def forward(self, x: Tensor) -> SetFound:
        tokens, grids = self.encode(x)
        anchors = grid_anchors(grids, x.device)
        rows = self.rows(tokens * anchors.used)
        scores = self.score(rows)
        best = select_queries(scores, self.config.queries)
        chosen = take_rows(rows, best)
        boxes = (self.locate(chosen) + take_rows(anchors.logits.to(x.dtype), best)).sigmoid()
        y = self.queries.expand(len(x), -1, -1) if self.config.start == "learned" else chosen.detach()
        values = self.decoder.project(tokens)
        found = self.decoder(y, boxes.detach(), values, grids)

        def denoise(classes: Tensor, noisy: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
            mask = torch.cat([seen, seen.new_ones(*seen.shape[:2], y.shape[1])], dim=-1)[:, None]
            more = self.decoder(self.noisy(classes), noisy, values, grids, found.before, mask)
            return more.logits, more.boxes

        logits = torch.cat([take_rows(scores, best)[None], found.logits])
        both = torch.cat([boxes[None], found.boxes])
        return SetFound(logits, both, measure_sides(x), denoise if self.config.denoising else None)

    def decode(self, found: SetFound, least: float = 0.001, most: int = 100) -> Boxes:
        return Boxes(*decode_sigmoid(found, least, most))


COCO = Labels(tuple(f"LABEL_{k}" for k in range(80)))
R18 = RTDetrResNetConfig(widths=(64, 128, 256, 512), depths=(2, 2, 2, 2), block="basic")
SIZES = {
    "rtdetr-r18vd": RTDetrConfig(backbone=R18, expansion=0.5, decoder_depth=3, labels=COCO),
    "rtdetr-r50vd": RTDetrConfig(labels=COCO),
}
PARAMETERS = {"rtdetr-r18vd": 20_174_608, "rtdetr-r50vd": 42_891_372}
TINY = RTDetrConfig(
    backbone=RTDetrResNetConfig(stem=6, widths=(8, 8, 12, 12), depths=(1, 1, 1, 1)), norm="batch", width=16, heads=2,
    hidden=24, queries=6, decoder_width=16, decoder_depth=2, decoder_heads=2, decoder_hidden=24, points=2, denoising=0,
    labels=Labels(("a", "b", "c")),
)  # fmt: skip


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.rand(2, 3, 96, 64, generator=torch.Generator().manual_seed(0))


def read_values(values: dict[str, Any]) -> dict[str, Any]:
    """With the backbone as a config of ours, and names for what is true or false."""
    backbone = read_backbone({"backbone_config": {"model_type": "rt_detr_resnet"}} | values)
    return values | {
        "backbone_config": backbone,
        "num_channels": backbone.channels,
        "backbone_norm": "frozen" if values.get("freeze_backbone_batch_norms", True) else "batch",
        "query_start": "learned" if values.get("learn_initial_query") else "encoder",
    }


def write_values(values: dict[str, Any]) -> dict[str, Any]:
    """As transformers has it, which repeats the backbone's widths."""
    backbone, width = values["backbone_config"], values["encoder_hidden_dim"]
    stages = [f"stage{i}" for i in range(1, len(backbone.depths) + 1)]
    return values | {
        "backbone_config": write_backbone(backbone, stages[-LEVELS:]),
        "freeze_backbone_batch_norms": values["backbone_norm"] == "frozen",
        "learn_initial_query": values["query_start"] == "learned",
        "encoder_in_channels": backbone.widths[-LEVELS:],
        "decoder_in_channels": [width] * LEVELS,
    }


FIELDS: dict[str, str | tuple[str, ...]] = {
    "channels": "num_channels",
    "backbone": "backbone_config",
    "norm": "backbone_norm",
    "width": "encoder_hidden_dim",
    "depth": "encoder_layers",
    "attended": "encode_proj_layers",
    "heads": "encoder_attention_heads",
    "hidden": "encoder_ffn_dim",
    "expansion": "hidden_expansion",
    "fusion": "scale_fusion",
    "queries": "num_queries",
    "start": "query_start",
    "decoder_width": "d_model",
    "decoder_depth": "decoder_layers",
    "decoder_heads": "decoder_attention_heads",
    "decoder_hidden": "decoder_ffn_dim",
    "points": "decoder_n_points",
    "cross": "decoder_cross_attention",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "hidden_dropout": "activation_dropout",
    "denoising": "num_denoising",
    "labels": "id2label",
}
FIXED = {
    "encoder_activation_function": "gelu",
    "activation_function": "silu",
    "decoder_activation_function": "relu",
    "normalize_before": False,
    "positional_encoding_temperature": 10000,
    "num_feature_levels": LEVELS,
    "eval_size": None,
    "with_box_refine": True,
    "layer_norm_eps": 1e-5,
    "batch_norm_eps": 1e-5,
}
LAYOUT = Layout(
    architecture="RTDetrForObjectDetection",
    fields=FIELDS,
    parts={"labels": Labels},
    fixed=FIXED,
    older=read_values,
    newer=write_values,
)


def unit_keys(ours: str, theirs: str) -> list[Rule]:
    """A convolution and its batch norm."""
    return [rename(f"{ours}.conv.weight", f"{theirs}.conv.weight"), *batch_norm(f"{ours}.norm", f"{theirs}.norm")]


def pair_keys(ours: str, theirs: str) -> list[Rule]:
    """The same in a sequence of two."""
    return [rename(f"{ours}.conv.weight", f"{theirs}.0.weight"), *batch_norm(f"{ours}.norm", f"{theirs}.1")]


def fusion_keys(ours: str, theirs: str) -> list[Rule]:
    """A block of RepConvs."""
    names = {"first": "conv1", "second": "conv2", "last": "conv3"}
    names |= {"blocks.{}.wide": "bottlenecks.{}.conv1", "blocks.{}.point": "bottlenecks.{}.conv2"}
    return [rule for a, b in names.items() for rule in unit_keys(f"{ours}.{{}}.{a}", f"{theirs}.{{}}.{b}")]


def cross_keys(ours: str, theirs: str) -> list[Rule]:
    """Deformable attention."""
    names = {"offsets": "sampling_offsets", "weights": "attention_weights", "value": "value_proj", "out": "output_proj"}
    return [rule for a, b in names.items() for rule in rename_pair(f"{ours}.{a}", f"{theirs}.{b}")]


BOXES = "bbox_embed.{}.layers.{}"
KEYS = [
    *backbone_keys("model.backbone.model."),
    *pair_keys("project.{}", "model.encoder_input_proj.{}"),
    *layer_keys("attention.{}.layers.{}", "model.encoder.encoder.{}.layers.{}"),
    *rename_pair("attention.{}.layers.{}.norm_2", "model.encoder.encoder.{}.layers.{}.final_layer_norm"),
    *unit_keys("fusion.lateral.{}", "model.encoder.lateral_convs.{}"),
    *fusion_keys("fusion.top_down", "model.encoder.fpn_blocks"),
    *unit_keys("fusion.down.{}", "model.encoder.downsample_convs.{}"),
    *fusion_keys("fusion.bottom_up", "model.encoder.pan_blocks"),
    *pair_keys("tokens.{}", "model.decoder_input_proj.{}"),
    *rename_pair("rows.{}", "model.enc_output.{}"),
    *rename_pair("score", "model.enc_score_head"),
    *rename_pair("locate.layers.{}", "model.enc_bbox_head.layers.{}"),
    rename("queries", "model.weight_embedding.weight"),
    rename("noisy.weight", "model.denoising_class_embed.weight"),
    *layer_keys("decoder.layers.{}", "model.decoder.layers.{}"),
    *cross_keys("decoder.layers.{}.cross", "model.decoder.layers.{}.encoder_attn"),
    *attention_keys("decoder.layers.{}.cross.attn", "model.decoder.layers.{}.encoder_attn.all"),
    *rename_pair("decoder.layers.{}.norm_2", "model.decoder.layers.{}.encoder_attn_layer_norm"),
    *rename_pair("decoder.layers.{}.norm_3", "model.decoder.layers.{}.final_layer_norm"),
    *rename_pair("decoder.place.layers.{}", "model.decoder.query_pos_head.layers.{}"),
    *rename_pair("decoder.classify.{}", "model.decoder.class_embed.{}"),
    *rename_pair("decoder.locate.{}.layers.{}", "model.decoder.bbox_embed.{}.layers.{}"),
    *(tie(f"class_embed.{{}}.{p}", f"model.decoder.class_embed.{{}}.{p}") for p in ("weight", "bias")),
    *(tie(f"{BOXES}.{p}", f"model.decoder.{BOXES}.{p}") for p in ("weight", "bias")),
]
