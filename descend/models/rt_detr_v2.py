"""RT-DETR v2: the same detector, whose attention says how far its points may go and how they are read.

    x_qlp = r_q + s Δ_qlp (w, h) / P          s, the scale of the offsets: ½ in v1
    "bilinear"   V_l(x) between four pixels       as in v1
    "nearest"    V_l at one pixel                 the discrete form: for hardware without grid sampling

Everything else, and its training, is that of `models/rt_detr.py`.

Systems: rt-detr
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from descend.models.rt_detr import FIELDS, FIXED, LEVELS, RTDetr, RTDetrConfig, read_values, write_values
from descend.models.rt_detr import KEYS as V1
from descend.models.rt_detr import SIZES as V1_SIZES
from descend.models.rt_detr import TINY as V1_TINY
from descend.models.rt_detr import TINY_INPUT as V1_INPUT
from descend.nn.detection.deformable_attention import DeformableAttention
from descend.ops.detection.deformable import sample_bilinear, sample_nearest
from descend.ranges import Positive
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.rules import drop


@dataclass(frozen=True)
class RTDetrV2Config(RTDetrConfig):
    """The defaults are those of RT-DETR v2-R50."""

    reach: Positive = 0.5
    """s, the scale of the offsets."""
    sampling: Literal["bilinear", "nearest"] = "bilinear"


class RTDetrV2(RTDetr):
    """images (b, channels, h, w), sides multiples of 32 -> logits and boxes of the selected rows and of every layer"""

    Config = RTDetrV2Config
    config: RTDetrV2Config

    def make_cross(self) -> nn.Module:
        c = self.config
        sample = sample_nearest if c.sampling == "nearest" else sample_bilinear
        if c.cross == "all":
            return super().make_cross()
        return DeformableAttention(c.decoder_width, c.decoder_heads, LEVELS, c.points, c.reach, sample)


def upgrade(config: RTDetrConfig) -> RTDetrV2Config:
    """The same sizes."""
    return RTDetrV2Config(**vars(config))


SIZES = {name.replace("rtdetr-", "rtdetr-v2-"): upgrade(config) for name, config in V1_SIZES.items()}
PARAMETERS = {"rtdetr-v2-r18vd": 20_174_608, "rtdetr-v2-r50vd": 42_891_372}
TINY = replace(upgrade(V1_TINY), reach=0.7)
TINY_INPUT = V1_INPUT
METHODS = {"bilinear": "default", "nearest": "discrete"}


def read_v2(values: dict[str, Any]) -> dict[str, Any]:
    """With our name of the sampling."""
    method = values.get("decoder_method", "default")
    known = {theirs: ours for ours, theirs in METHODS.items()}
    if method not in known:
        raise ValueError(f"decoder_method {method!r} is unknown; known: {', '.join(known)}")
    return read_values(values) | {"decoder_method": known[method]}


def write_v2(values: dict[str, Any]) -> dict[str, Any]:
    """With theirs."""
    return write_values(values) | {"decoder_method": METHODS[values["decoder_method"]]}


LAYOUT = Layout(
    architecture="RTDetrV2ForObjectDetection",
    fields=FIELDS | {"reach": "decoder_offset_scale", "sampling": "decoder_method"},
    parts={"labels": Labels},
    fixed=FIXED | {"decoder_n_levels": LEVELS},
    older=read_v2,
    newer=write_v2,
)
KEYS = [*V1, drop("model.decoder.layers.{}.encoder_attn.n_points_scale")]
