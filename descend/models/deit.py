"""DeiT: a Vision Transformer with a second token that learns from a teacher, so that less data is enough.

    H⁽⁰⁾ = [z_cls; z_distil; z_1 .. z_N] + E_pos                       N + 2 positions
    z_c = W_c h_cls + b_c,   z_d = W_d h_distil + b_d                  two heads on the encoder of `descend.models.vit`
    logits = (z_c + z_d) / 2                                           prediction

z_c is trained on the labels, z_d on what a teacher (a CNN) says of the same image (`descend.losses.distillation`). MF
names DeiT without a formula; token, heads and their mean are those of the paper and of its released checkpoints.

Systems: deit
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from descend.models.vit import (
    FIELDS,
    FIXED,
    IMAGENET,
    ViT,
    ViTConfig,
    ViTEncoder,
    ViTForImageClassification,
    encoder_keys,
    initial,
    unpack_sides,
)
from descend.nn.image_tokens import DistilledTokens
from descend.weights.labels import Labels
from descend.weights.layout import Layout
from descend.weights.pretrained import Pretrained
from descend.weights.rules import rename, rename_pair


@dataclass(frozen=True)
class DeiTConfig(ViTConfig):
    """The configuration of a ViT; the defaults are those of DeiT-Base."""


class DeiTEncoder(ViTEncoder):
    """A ViT's encoder with both tokens before the patches."""

    Config = DeiTConfig
    Tokens = DistilledTokens


class DeiT(ViT, DeiTEncoder):
    """images (b, c, side, side) -> vectors (b, 2 + N, d) and tanh(W h_cls + b) (b, d)"""


class DeiTForImageClassification(ViTForImageClassification, DeiTEncoder):
    """images (b, c, side, side) -> logits (b, classes), from the class token alone: fine-tuning without a teacher"""


class DeiTForImageClassificationWithTeacher(DeiTEncoder):
    """images (b, c, side, side) -> logits (b, classes), the mean of both heads"""

    def __init__(self, config: DeiTConfig):
        super().__init__(config)
        self.class_head = nn.Linear(config.width, len(config.labels))
        self.distil_head = nn.Linear(config.width, len(config.labels))
        self.apply(initial)

    @property
    def head(self) -> nn.Linear:
        """The layer over `features`."""
        return self.class_head

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """z_c and z_d, (b, classes) each."""
        hidden = self.special(x)
        return self.class_head(hidden[:, 0]), self.distil_head(hidden[:, 1])

    def forward(self, x: Tensor) -> Tensor:
        of_class, of_teacher = self.both(x)
        return (of_class + of_teacher) / 2


SIZES = {
    "deit-tiny": DeiTConfig(width=192, heads=3, hidden=768, labels=IMAGENET),
    "deit-small": DeiTConfig(width=384, heads=6, hidden=1536, labels=IMAGENET),
    "deit-base": DeiTConfig(labels=IMAGENET),
}
PARAMETERS = {"deit-tiny": 5_910_800, "deit-small": 22_436_432, "deit-base": 87_338_192}
TINY = DeiTConfig(side=12, patch=4, width=32, depth=2, heads=4, hidden=48)


def TINY_INPUT() -> Tensor:
    """Two images."""
    return torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


ARCHITECTURES: dict[str, type[Pretrained]] = {
    "DeiTModel": DeiT,
    "DeiTForImageClassification": DeiTForImageClassification,
    "DeiTForImageClassificationWithTeacher": DeiTForImageClassificationWithTeacher,
}

LAYOUT = Layout(
    architecture="DeiTForImageClassificationWithTeacher",
    fields=FIELDS,
    fixed=FIXED,
    parts={"labels": Labels},
    older=unpack_sides,
    bare_prefix="deit.",
)

KEYS = [
    *encoder_keys("deit"),
    rename("embed.distil", "deit.embeddings.distillation_token"),
    *rename_pair("head", "classifier"),
    *rename_pair("class_head", "cls_classifier"),
    *rename_pair("distil_head", "distillation_classifier"),
]
