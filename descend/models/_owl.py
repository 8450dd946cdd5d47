"""What OWL-ViT and OWLv2 share: CLIP's two encoders, a box and a text similarity for every patch, and their key rules.

h_i = norm(norm(H)_i ⊙ norm(H)_cls)                       patch i of the image encoder, times the class token
b_i = σ(MLP_box(h_i) + bias_i)                            cx, cy, w, h as shares; bias_i: the patch's place and size
z_iq = (cos(W h_i, T_q) + shift(h_i)) · (ELU(scale(h_i)) + 1)        for each text q
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from descend.contracts import Boxes
from descend.models.clip_text_model import ClipTextConfig, ClipTextModel, make_projection, text_keys
from descend.models.clip_vision_model import ClipVisionConfig, ClipVisionModel, vision_keys
from descend.nn.detection.text_similarity import TextSimilarity
from descend.nn.patches import grid_of
from descend.ops.boxes import to_corners
from descend.ops.detection.sets import SetFound, keep_scored, measure_sides
from descend.ranges import Length, Token
from descend.weights.pretrained import Pretrained
from descend.weights.rules import Rule, rename, rename_pair

NEAR = 1e-4
"""Keeps the logit of a place at the image's edge finite."""


@dataclass(frozen=True)
class OwlTextConfig(ClipTextConfig):
    """CLIP's text encoder for short texts."""

    context: Length = 16
    pad: Token = 0


class OwlTowers(Pretrained):
    """The two encoders and the space they share. A text is read at its token with the highest number, the end."""

    def __init__(self, text: ClipTextConfig, image: ClipVisionConfig, width: int, scale: float):
        super().__init__()
        self.text, self.image = ClipTextModel(text), ClipVisionModel(image)
        self.project_text = make_projection(text.width, width)
        self.project_image = make_projection(image.width, width)
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.stride = image.patch

    def encode_text(self, tokens: Tensor) -> Tensor:
        """tokens (q, t) -> T (q, p), of length 1"""
        hidden = self.text(tokens).hidden
        ends = hidden[torch.arange(len(hidden), device=hidden.device), tokens.argmax(dim=1)]
        return normalize(self.project_text(ends), dim=-1)

    def encode_image(self, x: Tensor) -> Tensor:
        """images (b, c, side, side) -> I (b, p), of length 1"""
        return normalize(self.project_image(self.image(x).pooled), dim=-1)


class GeluLayers(nn.Module):
    """Three layers with GELU between them."""

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        gelu = nn.functional.gelu
        return self.last(gelu(self.second(gelu(self.first(x)))))


class OwlDetector(OwlTowers):
    """images (b, c, side, side) and texts (q, t), or texts of each image (b, q, t) -> what `decode` reads.

    A text that begins with token 0 is padding. The projection of whole images and the scale are in the files and take
    no part: they are not trained."""

    def __init__(self, text: ClipTextConfig, image: ClipVisionConfig, width: int, scale: float):
        super().__init__(text, image, width, scale)
        self.norm = nn.LayerNorm(image.width, image.eps)
        self.classes = TextSimilarity(image.width, text.width)
        self.boxes = GeluLayers(image.width, 4)
        rows, columns = grid_of(image.side, image.side, image.patch)
        self.register_buffer("bias", place_bias(rows, columns), persistent=False)
        self.bias: Tensor
        self.project_image.requires_grad_(False)
        self.scale.requires_grad_(False)

    def regions(self, x: Tensor) -> Tensor:
        """h: a vector for each patch (b, n, d)"""
        hidden = self.image.norm(self.image(x).hidden)
        return self.norm(hidden[:, 1:] * hidden[:, :1])

    def forward(self, x: Tensor, tokens: Tensor) -> Any:
        texts = self.encode_text(tokens.flatten(0, -2)).unflatten(0, tokens.shape[:-1])
        return self.find(x, texts, tokens[..., 0] > 0)

    def find(self, x: Tensor, texts: Tensor, real: Tensor | None = None) -> Any:
        """With encoded texts (q, p) or (b, q, p), of which `real` says which are no padding."""
        return self.found_at(self.regions(x), texts, real, measure_sides(x))

    def found_at(self, h: Tensor, texts: Tensor, real: Tensor | None, sides: Tensor) -> Any:
        """Of the patches' vectors."""
        return SetFound(self.compare(h, texts, real)[None], self.locate(h)[None], sides)

    def compare(self, h: Tensor, texts: Tensor, real: Tensor | None = None) -> Tensor:
        """z (b, n, q)"""
        logits: Tensor = self.classes(h, texts)
        return logits if real is None else logits.masked_fill(~real[..., None, :], torch.finfo(logits.dtype).min)

    def locate(self, h: Tensor) -> Tensor:
        """cx, cy, w, h in shares (b, n, 4)"""
        return (self.boxes(h) + self.bias).sigmoid()

    def decode(self, found: Any, least: float = 0.001, most: int = 100) -> Boxes:
        """Each patch's best text; the loss matches one patch with an object, so the others keep silent."""
        scores, classes = found.logits[-1].sigmoid().max(dim=-1)
        return Boxes(*keep_scored(to_corners(found.boxes[-1]) * found.sides, classes, scores, least, most))


def place_bias(rows: int, columns: int) -> Tensor:
    """logit of where each patch ends and of how large it is, cx, cy, w, h (n, 4)."""
    y, x = torch.meshgrid(torch.arange(1, rows + 1) / rows, torch.arange(1, columns + 1) / columns, indexing="ij")
    size = torch.tensor([1 / columns, 1 / rows]).expand(rows * columns, 2)
    share = torch.cat([torch.stack([x, y], dim=-1).flatten(0, 1), size], dim=1)
    return (share + NEAR).log() - (1 - share + NEAR).log()


def name_parts(family: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The parts of config.json are named after the family, and say nothing of CLIP's."""
    clip = ("architectures", "dtype", "projection_dim")

    def name(values: dict[str, Any]) -> dict[str, Any]:
        parts = {
            f"{part}_config": {k: v for k, v in values[f"{part}_config"].items() if k not in clip}
            | {"model_type": f"{family}_{part}_model"}
            for part in ("text", "vision")
        }
        return values | parts

    return name


def owl_keys(family: str) -> list[Rule]:
    """The encoders and the heads that both have. (CLIP's files spell the first norm otherwise.)"""
    towers = [
        *text_keys("text."),
        *vision_keys("image."),
        rename("project_text.weight", "text_projection.weight"),
        rename("project_image.weight", "visual_projection.weight"),
        rename("scale", "logit_scale"),
    ]
    spelt = [replace(rule, theirs=f"{family}.{rule.theirs.replace('layrnorm', 'layernorm')}") for rule in towers]
    return [
        *spelt,
        *rename_pair("norm", "layer_norm"),
        *rename_pair("classes.project", "class_head.dense0"),
        *rename_pair("classes.shift", "class_head.logit_shift"),
        *rename_pair("classes.scale", "class_head.logit_scale"),
        *layer_keys("boxes", "box_head"),
    ]


def layer_keys(ours: str, theirs: str) -> list[Rule]:
    """Three layers."""
    names = {"first": "dense0", "second": "dense1", "last": "dense2"}
    return [rule for a, b in names.items() for rule in rename_pair(f"{ours}.{a}", f"{theirs}.{b}")]
