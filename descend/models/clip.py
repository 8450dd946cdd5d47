"""CLIP: an image encoder and a text encoder that map into one space, where an image lies near its caption.

    I = W_I image_encoder(x) / ‖·‖          T = W_T text_encoder(w) / ‖·‖           unit vectors of the joint space
    logits_ij = e^s I_i · T_j                                                       s = log 1/τ is learned

Both are trained from scratch on pairs of image and text (`descend.losses.contrastive`, `descend.tasks.contrastive`). A
text can then be put in the place of a class (`descend.metrics.zero_shot`). DLN and MF give encoders and dot product;
projections, unit length and temperature are those of the original: s starts at log(1 / 0.07) = 2.6592.

Systems: clip
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.models.clip_text_model import SIZES as TEXTS
from descend.models.clip_text_model import TINY as TINY_TEXT
from descend.models.clip_text_model import ClipTextConfig, ClipTextModel, make_projection, text_keys
from descend.models.clip_vision_model import SIZES as IMAGES
from descend.models.clip_vision_model import TINY as TINY_IMAGE
from descend.models.clip_vision_model import ClipVisionConfig, ClipVisionModel, vision_keys
from descend.ranges import Finite, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename


@dataclass(frozen=True)
class ClipConfig:
    """The two encoders and the space they share; the defaults are those of ViT-B/32."""

    text: ClipTextConfig = field(default_factory=ClipTextConfig)
    image: ClipVisionConfig = field(default_factory=ClipVisionConfig)
    width: Width = 512
    """Of the joint space."""
    scale: Finite = 2.6592
    """s at the start."""

    def resize(self, side: int) -> ClipConfig:
        """For images of this side."""
        if side % self.image.patch:
            raise ValueError(f"a side of {side} is not a multiple of the patch {self.image.patch}")
        return replace(self, image=replace(self.image, side=side, projected=self.width))


class Joint(Pretrained):
    """The space of images and texts, with a text encoder; an image encoder belongs to it."""

    def __init__(self, text: ClipTextConfig, width: int, scale: float):
        super().__init__()
        self.text = ClipTextModel(text)
        self.project_text = make_projection(text.width, width)
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def encode_image(self, x: Tensor) -> Tensor:
        """I (n, p), of length 1"""
        raise NotImplementedError

    def encode_text(self, tokens: Tensor) -> Tensor:
        """T (m, p), of length 1"""
        return normalize(self.project_text(self.text(tokens).pooled), dim=-1)

    def logits(self, images: Tensor, texts: Tensor) -> Tensor:
        """e^s I_i · T_j of encoded images (n, p) and texts (m, p): (n, m)"""
        return self.scale.exp() * images @ texts.T

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        return self.logits(self.encode_image(x), self.encode_text(tokens))


class Clip(Joint):
    """images (n, c, side, side), texts (m, t) -> logits (n, m)"""

    Config = ClipConfig

    def __init__(self, config: ClipConfig):
        super().__init__(config.text, config.width, config.scale)
        c = self.config = config
        self.image = ClipVisionModel(c.image)
        self.project_image = make_projection(c.image.width, c.width)

    def encode_image(self, x: Tensor) -> Tensor:
        return normalize(self.project_image(self.image(x).pooled), dim=-1)


ARCHITECTURES: dict[str, type[Pretrained]] = {"CLIPModel": Clip}
SIZES = {name: ClipConfig(TEXTS[name], IMAGES[name], IMAGES[name].projected) for name in IMAGES}
PARAMETERS = {"clip-vit-base-patch32": 151_277_313, "clip-vit-large-patch14": 427_616_513}
TINY = ClipConfig(TINY_TEXT, TINY_IMAGE, 16)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Three small images and two texts that end at different places."""
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(59, (2, 7), generator=random)
    tokens[0, 4], tokens[1, 6] = 60, 60
    return torch.rand(3, 3, 8, 8, generator=random), tokens


def older(values: dict[str, Any]) -> dict[str, Any]:
    """Older files have the encoders' values, or some of them, in text_config_dict and vision_config_dict."""
    parts = {f"{name}_config": f"{name}_config_dict" for name in ("text", "vision")}
    return values | {new: {**(values.get(new) or {}), **(values.get(old) or {})} for new, old in parts.items()}


LAYOUT = Layout(
    architecture="CLIPModel",
    fields={
        "text": "text_config",
        "image": "vision_config",
        "width": "projection_dim",
        "scale": "logit_scale_init_value",
    },
    parts={"text": ClipTextConfig, "image": ClipVisionConfig},
    older=older,
)

KEYS = [
    *text_keys("text."),
    *vision_keys("image."),
    rename("project_text.weight", "text_projection.weight"),
    rename("project_image.weight", "visual_projection.weight"),
    rename("scale", "logit_scale"),
]
