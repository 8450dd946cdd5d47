"""Classes of images: p(k | x) = softmax(z(x))_k, by a classifier, or by a CLIP with classes that the user names.

zero-shot    z_k = e^s cos(I(x), T(label k))        a CLIP has no classes of its own: the nearest text wins
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from descend.data.images.captions import caption_tokens
from descend.errors import Mistake
from descend.inference.answers import Answer, rank_classes, with_records
from descend.inference.images import ImageModel, name_images
from descend.inference.inputs import list_images, list_truths
from descend.inference.trained import Trained
from descend.models.clip import Joint
from descend.text.tokenizer import Tokenizer


class ZeroShot(nn.Module):
    """A CLIP as a classifier: x (n, c, h, w) -> e^s cos(I, T_k) (n, K)"""

    def __init__(self, model: Joint, texts: Tensor):
        super().__init__()
        self.model, self.config = model, model.config
        self.register_buffer("texts", texts)

    def forward(self, x: Tensor) -> Tensor:
        return self.model.logits(self.model.encode_image(x), cast("Tensor", self.texts))


@dataclass(frozen=True)
class ImageClassifier:
    """Class probabilities of images."""

    images: ImageModel
    labels: tuple[str, ...]
    takes = "images"

    @property
    def model(self) -> Any:
        return self.images.trained.model

    def logits(self, x: Tensor) -> Tensor:
        """z (n, K) of standardized images."""
        return torch.cat(self.images.run(x)).cpu()

    def classify(self, images: Sequence[str | Path] | Tensor) -> list[Answer]:
        """The classes of image files, or of pixels (n, c, h, w) in 0..1."""
        p = self.images.trained.probabilities(self.logits(self.images.read_images(images)))
        return rank_classes(name_images(images), p, self.labels)

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The same of files, folders and patterns."""
        found = self.classify(list_images(inputs))
        return with_records(found, [{"image": answer.input} for answer in found], list_truths(inputs, self.labels))


def choose_among(trained: Trained, labels: Sequence[str]) -> ImageClassifier:
    """A CLIP that chooses among these texts."""
    if not labels:
        raise Mistake(
            f'{trained.folder} holds a CLIP, which has no classes; name some: --labels "a red circle, a ring"'
        )
    model = trained.model
    tokens = caption_tokens(Tokenizer.load(trained.folder), labels, model.config.text.context).to(trained.device)
    with torch.no_grad():
        zero_shot = ZeroShot(model, model.encode_text(tokens)).eval()
    return ImageClassifier(ImageModel.read(Trained(zero_shot, trained.folder)), tuple(labels))
