"""OWLv2: OWL-ViT with an objectness of its own for every patch, trained on boxes that OWL-ViT itself had found.

    o_i = MLP_object(h_i)                      whether patch i has any object; learned without a gradient to h

Texts and boxes are those of OWL-ViT. The objectness needs no text: it chooses the patches worth looking at, and, where
an image takes the place of a text, which of its regions is meant (`query_by_image`). The book names the model only.

Systems: open-vocabulary-detection
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.models._owl import GeluLayers, OwlDetector, OwlTextConfig, OwlTowers, layer_keys, name_parts, owl_keys
from descend.models.clip import older
from descend.models.clip_vision_model import ClipVisionConfig
from descend.ranges import Finite, Side, Width
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class Owlv2ImageConfig(ClipVisionConfig):
    """CLIP's image encoder for large images."""

    side: Side = 768
    patch: Side = 16


@dataclass(frozen=True)
class Owlv2Config:
    """The two encoders and the space they share; the defaults are those of ViT-B/16."""

    text: OwlTextConfig = field(default_factory=OwlTextConfig)
    image: Owlv2ImageConfig = field(default_factory=Owlv2ImageConfig)
    width: Width = 512
    """Of the joint space, as wide as the text encoder."""
    scale: Finite = 2.6592


class OwlFound(NamedTuple):
    """What every patch predicts: as a set (`ops/detection/sets.py`), and its objectness."""

    logits: Tensor
    """(1, b, n, texts)"""
    boxes: Tensor
    """cx, cy, w, h in shares of the image (1, b, n, 4)."""
    sides: Tensor
    """w, h, w, h of the model's input, in pixels (4)."""
    objectness: Tensor
    """Logits (b, n)."""


class Owlv2(OwlTowers):
    """images (n, c, side, side), texts (m, t) -> logits (n, m): the CLIP that a detector begins with"""

    Config = Owlv2Config

    def __init__(self, config: Owlv2Config):
        super().__init__(config.text, config.image, config.width, config.scale)
        self.config = config

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        return self.scale.exp() * self.encode_image(x) @ self.encode_text(tokens).T


class Owlv2ForObjectDetection(OwlDetector):
    """images (b, c, side, side) and texts (q, t) or (b, q, t) -> logits, boxes and objectness of every patch"""

    Config = Owlv2Config

    def __init__(self, config: Owlv2Config):
        super().__init__(config.text, config.image, config.width, config.scale)
        self.config = config
        self.objectness = GeluLayers(config.image.width, 1)

    def found_at(self, h: Tensor, texts: Tensor, real: Tensor | None, sides: Tensor) -> Any:
        return OwlFound(self.compare(h, texts, real)[None], self.locate(h)[None], sides, self.rate(h))

    def rate(self, h: Tensor) -> Tensor:
        """o (b, n)"""
        return self.objectness(h.detach()).squeeze(-1)

    def query_by_image(self, x: Tensor) -> Tensor:
        """What images (b, c, side, side) show, in the place of a text for each: (b, 1, p)"""
        h = self.regions(x)
        e = self.classes.project(h)
        return e.gather(1, self.rate(h).argmax(dim=1)[:, None, None].expand(-1, 1, e.shape[-1]))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "Owlv2ForObjectDetection": Owlv2ForObjectDetection,
    "Owlv2Model": Owlv2,
}
SIZES = {
    "owlv2-base-patch16": Owlv2Config(image=Owlv2ImageConfig(side=960)),
    "owlv2-large-patch14": Owlv2Config(
        OwlTextConfig(width=768, heads=12, hidden=3072),
        Owlv2ImageConfig(side=1008, patch=14, width=1024, depth=24, heads=16, hidden=4096),
        width=768,
    ),
}
PARAMETERS = {"owlv2-base-patch16": 154_966_792, "owlv2-large-patch14": 437_610_760}
TINY = replace(
    Owlv2Config(),
    text=OwlTextConfig(vocab=61, width=16, depth=1, heads=2, hidden=24, start=59, end=60),
    image=Owlv2ImageConfig(side=16, patch=4, width=24, depth=1, heads=3, hidden=32),
    width=16,
)


def TINY_INPUT() -> tuple[Tensor, Tensor]:
    """Two images, and three texts for each, one of them padding."""
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, 59, (2, 3, 5), generator=random)
    tokens[..., 4] = 60
    return torch.rand(2, 3, 16, 16, generator=random), tokens


LAYOUT = Layout(
    architecture="Owlv2ForObjectDetection",
    fields={
        "text": "text_config",
        "image": "vision_config",
        "width": "projection_dim",
        "scale": "logit_scale_init_value",
    },
    parts={"text": OwlTextConfig, "image": Owlv2ImageConfig},
    older=older,
    newer=name_parts("owlv2"),
    bare_prefix="owlv2.",
)

KEYS = [*owl_keys("owlv2"), *layer_keys("objectness", "objectness_head")]
