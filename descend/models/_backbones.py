"""Backbones of detectors: a ResNet or a Swin without its head, read from and written to `backbone_config`.

The released DETRs name their backbone as timm does (`"backbone": "resnet50"`, keys conv1, bn1, layer1 ..); both namings
are read. What is written is the layout of transformers itself, which needs no timm.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from torch import nn

from descend.errors import Mistake
from descend.models.resnet import KEYS as RESNET_KEYS
from descend.models.resnet import LAYOUT as RESNET
from descend.models.resnet import SIZES as RESNETS
from descend.models.resnet import TORCHVISION, ResNet, ResNetConfig
from descend.models.rt_detr_resnet import KEYS as VD_KEYS
from descend.models.rt_detr_resnet import LAYOUT as VD
from descend.models.rt_detr_resnet import RTDetrResNet, RTDetrResNetConfig
from descend.models.swin import KEYS as SWIN_KEYS
from descend.models.swin import LAYOUT as SWIN
from descend.models.swin import SwinConfig, SwinStages
from descend.nn.convolution.frozen_norm import freeze_norms
from descend.weights.layout import Layout, config_from_json, config_to_json
from descend.weights.rules import Rule, drop

Norm = Literal["frozen", "batch"]
"""Whether the moments of a ResNet's batch norms are those it came with, or are measured in training."""
TIMM = {f"resnet{n}": RESNETS[f"resnet-{n}"] for n in (18, 34, 50, 101, 152)}
COUNT = "num_batches_tracked"


KINDS: dict[str, tuple[type, Layout]] = {
    "resnet": (ResNetConfig, RESNET),
    "swin": (SwinConfig, SWIN),
    "rt_detr_resnet": (RTDetrResNetConfig, VD),
}


def read_backbone(values: dict[str, Any]) -> ResNetConfig | SwinConfig | RTDetrResNetConfig:
    """The backbone that a detector's config.json names."""
    given = values.get("backbone_config") or {**values, "model_type": "timm_backbone"}
    kind, where = given.get("model_type", "resnet"), Path("backbone_config")
    if kind == "timm_backbone":
        name = given.get("backbone") or "resnet50"
        if name not in TIMM or given.get("output_stride", 32) != 32 or values.get("dilation"):
            raise Mistake(f"the backbone {name!r} with these strides is not known; known: {', '.join(TIMM)}")
        return remove_labels(TIMM[name])
    if kind in KINDS:
        known, layout = KINDS[kind]
        found: ResNetConfig | SwinConfig | RTDetrResNetConfig = config_from_json(known, layout, given, where)
        return found
    raise Mistake(f"the backbone {kind!r} is not known; known: {', '.join(KINDS)}, timm_backbone (ResNets)")


def remove_labels(config: ResNetConfig) -> ResNetConfig:
    """A backbone has no classes of its own."""
    return ResNetConfig(config.channels, config.stem, config.widths, config.depths, config.block)


def write_backbone(config: ResNetConfig | SwinConfig | RTDetrResNetConfig, out: list[str]) -> dict[str, Any]:
    """As `backbone_config`, with the names of the stages whose maps are used."""
    kind = next(name for name, (known, _) in KINDS.items() if isinstance(config, known))
    layout = KINDS[kind][1]
    return config_to_json(config, layout, kind, "float32") | {"out_features": out}


def make_backbone(config: ResNetConfig | SwinConfig, norm: Norm) -> ResNet | SwinStages:
    """Its `maps(x)` are those of the last stage, `pyramid(x)` those of all."""
    if isinstance(config, SwinConfig):
        return SwinStages(config)
    model = ResNet(config)
    model.head = nn.Identity()  # type: ignore[assignment]
    if norm == "frozen":
        freeze_norms(model)
    return model


def make_pyramid(config: ResNetConfig | RTDetrResNetConfig, norm: Norm) -> ResNet | RTDetrResNet:
    """A backbone whose `pyramid(x)` is read."""
    if isinstance(config, RTDetrResNetConfig):
        model = RTDetrResNet(config)
        if norm == "frozen":
            freeze_norms(model)
        return model
    found = make_backbone(config, norm)
    if not isinstance(found, ResNet):
        raise Mistake("only ResNets are backbones of several scales here")
    return found


def count_channels(config: ResNetConfig | SwinConfig) -> int:
    """Of the last map."""
    return config.features if isinstance(config, SwinConfig) else config.widths[-1]


def measure_stride(config: ResNetConfig | SwinConfig) -> int:
    """Pixels of the image for a pixel of the last map."""
    if isinstance(config, SwinConfig):
        return config.patch * 2 ** (len(config.depths) - 1)
    return int(4 * 2 ** (len(config.depths) - 1 + config.halve_first))


def backbone_keys(theirs: str) -> list[Rule]:
    """Rules for `backbone` under a prefix of the file, whichever backbone it is and whoever named it."""
    rules = [
        *move_keys(RESNET_KEYS, "resnet.", theirs),
        *move_keys(TORCHVISION, "", theirs),
        *(Rule(f"backbone.norm.{p}", f"{theirs}hidden_states_norms.stage4.{p}") for p in ("weight", "bias")),
        *move_keys([rule for rule in SWIN_KEYS if not rule.ours.startswith("norm.")], "swin.", theirs),
        *move_keys(VD_KEYS, "", theirs),
        *(drop(f"{theirs}swin.layernorm.{p}") for p in ("weight", "bias")),  # of the whole Swin, which no one reads
    ]
    counts = [drop(rule.theirs) for rule in rules if rule.theirs.endswith(COUNT)]
    return rules + counts


def move_keys(rules: list[Rule], before: str, after: str) -> list[Rule]:
    """The rules of a network as those of the child `backbone`; its head is left out."""
    return [
        Rule(
            rule.ours and f"backbone.{rule.ours}",
            after + rule.theirs.removeprefix(before),
            rule.load,
            rule.save,
            rule.same_as,
            rule.stacked,
            rule.left_out,
        )
        for rule in rules
        if not rule.ours.startswith("head.")
    ]
