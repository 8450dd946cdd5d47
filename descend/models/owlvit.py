"""OWL-ViT: an open-vocabulary detector. A CLIP whose patches each find a box and are compared with texts.

    h_i = norm(norm(H)_i ⊙ norm(H)_cls)                       every patch of the image encoder is a candidate
    b_i = σ(MLP_box(h_i) + bias_i)                            cx, cy, w, h as shares of the image
    z_iq = (cos(W h_i, T_q) + shift(h_i)) · (ELU(scale(h_i)) + 1)        for each text q: no list of classes

Trained as a CLIP first, then on boxes by a bipartite matching with the focal loss (`FocalSetPrediction`). The book has
the name only; the equations are the original's. `query_by_image` looks for what another image shows: its region that
fills the image best, and differs most from the mean of them all, stands in the place of a text.

Systems: open-vocabulary-detection
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from descend.models._owl import OwlDetector, OwlTextConfig, OwlTowers, name_parts, owl_keys
from descend.models.clip import older
from descend.models.clip_vision_model import ClipVisionConfig
from descend.ops.boxes import box_iou, to_corners
from descend.ops.iou import generalized_iou
from descend.ranges import Finite, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class OwlVitImageConfig(ClipVisionConfig):
    """CLIP's image encoder for large images."""

    side: Side = 768


@dataclass(frozen=True)
class OwlVitConfig:
    """The two encoders and the space they share; the defaults are those of ViT-B/32."""

    text: OwlTextConfig = field(default_factory=OwlTextConfig)
    image: OwlVitImageConfig = field(default_factory=OwlVitImageConfig)
    width: Width = 512
    """Of the joint space, as wide as the text encoder."""
    scale: Finite = 2.6592


class OwlVit(OwlTowers):
    """images (n, c, side, side), texts (m, t) -> logits (n, m): the CLIP that a detector begins with"""

    Config = OwlVitConfig

    def __init__(self, config: OwlVitConfig):
        super().__init__(config.text, config.image, config.width, config.scale)
        self.config = config

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        return self.scale.exp() * self.encode_image(x) @ self.encode_text(tokens).T


class OwlVitForObjectDetection(OwlDetector):
    """images (b, c, side, side) and texts (q, t) or (b, q, t) -> logits and boxes of every patch"""

    Config = OwlVitConfig

    def __init__(self, config: OwlVitConfig):
        super().__init__(config.text, config.image, config.width, config.scale)
        self.config = config

    def query_by_image(self, x: Tensor) -> Tensor:
        """What images (b, c, side, side) show, in the place of a text for each: (b, 1, p)"""
        h = self.regions(x)
        e, boxes = self.classes.project(h), to_corners(self.locate(h))
        whole = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=boxes.dtype, device=boxes.device)
        iou = box_iou(boxes, whole)
        iou = torch.where((iou == 0).all(dim=1, keepdim=True), generalized_iou(boxes, whole.expand_as(boxes)), iou)
        chosen = iou >= 0.8 * iou.max(dim=1, keepdim=True).values
        like_mean = (e @ e.mean(dim=1)[..., None]).squeeze(-1).masked_fill(~chosen, torch.inf)
        return e.gather(1, like_mean.argmin(dim=1)[:, None, None].expand(-1, 1, e.shape[-1]))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "OwlViTForObjectDetection": OwlVitForObjectDetection,
    "OwlViTModel": OwlVit,
}
BASE = OwlVitConfig()
SIZES = {
    "owlvit-base-patch32": BASE,
    "owlvit-base-patch16": replace(BASE, image=OwlVitImageConfig(patch=16)),
    "owlvit-large-patch14": OwlVitConfig(
        OwlTextConfig(width=768, heads=12, hidden=3072),
        OwlVitImageConfig(side=840, patch=14, width=1024, depth=24, heads=16, hidden=4096),
        width=768,
    ),
}
PARAMETERS = {
    "owlvit-base-patch32": 153_231_879,
    "owlvit-base-patch16": 152_789_511,
    "owlvit-large-patch14": 433_888_519,
}
TINY = OwlVitConfig(
    OwlTextConfig(vocab=61, width=16, depth=1, heads=2, hidden=24, start=59, end=60),
    OwlVitImageConfig(side=16, patch=4, width=24, depth=1, heads=3, hidden=32),
    width=16,
)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images and three texts for both."""
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 59, (3, 5), generator=random)
    tokens[:, 4] = 60
    return torch.rand(2, 3, 16, 16, generator=random), tokens


LAYOUT = Layout(
    architecture="OwlViTForObjectDetection",
    fields={
        "text": "text_config",
        "image": "vision_config",
        "width": "projection_dim",
        "scale": "logit_scale_init_value",
    },
    parts={"text": OwlTextConfig, "image": OwlVitImageConfig},
    older=older,
    newer=name_parts("owlvit"),
    bare_prefix="owlvit.",
)

KEYS = owl_keys("owlvit")
