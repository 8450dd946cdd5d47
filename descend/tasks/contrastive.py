"""Contrastive pre-training on pairs of image and text: every image should find its text in the batch, and back.

    L = (1/N) Σ_i ℓ_i                  `descend.losses.contrastive`; pairs with the same text count as one
    s ← min(s, log 100)                after every step: the temperature 1/e^s stays at least 0.01, as in the original

A batch has x (b, c, h, w) and tokens (b, t). Every pair is compared with all pairs of the step, also those of other
micro-batches and processes (`contracts.JointMove`). With y (b), classes that `prompts` (classes, templates, t) write as
texts, images are classified too: by the nearest text, never trained on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from descend.contracts import Batch, JointEncoder, JointMove, Task
from descend.losses.contrastive import grouped_n_pair
from descend.metrics.classification import correct
from descend.metrics.retrieval import hits
from descend.metrics.zero_shot import class_scores

COLDEST = math.log(100)


class Contrastive(Task):
    """The model has encode_image, encode_text, logits of the two, and a parameter `scale`, the s above."""

    model: JointEncoder
    prompts: Tensor | None

    def __init__(self, model: JointEncoder, prompts: Tensor | None = None):
        super().__init__()
        self.model = model
        self.register_buffer("prompts", prompts, persistent=False)

    def moves(self, batch: Batch) -> Iterator[JointMove]:
        yield JointMove("model", lambda: self.encode(batch), self.compare)
        with torch.no_grad():
            self.model.scale.clamp_(max=COLDEST)

    def encode(self, batch: Batch) -> dict[str, Tensor]:
        """Both vectors of each pair, and its text."""
        images, texts = self.model.encode_image(batch["x"]), self.model.encode_text(trim_texts(batch["tokens"]))
        return {"images": images, "texts": texts, "tokens": batch["tokens"]}

    def compare(self, codes: dict[str, Tensor]) -> Tensor:
        """L of all pairs of a step."""
        logits = self.model.logits(codes["images"], codes["texts"])
        return grouped_n_pair(logits, number_texts(codes["tokens"])).mean()

    def score(self, batch: Batch) -> dict[str, Tensor]:
        """The loss of each pair, whether its image finds its text in the batch, and whether it is named rightly."""
        group, codes = number_texts(batch["tokens"]), self.encode(batch)
        images = codes["images"]
        logits = self.model.logits(images, codes["texts"])
        found = {
            "loss": grouped_n_pair(logits, group),
            "recall": hits(logits, group[:, None] == group),
        }
        if self.prompts is not None and "y" in batch:
            found["zero_shot"] = correct(class_scores(images, self.classes()), batch["y"])
        return found

    def classes(self) -> Tensor:
        """T (classes, d), the mean of each class's prompts."""
        assert self.prompts is not None
        vectors = self.model.encode_text(self.prompts.flatten(0, 1))
        return vectors.unflatten(0, self.prompts.shape[:2]).mean(1)


def trim_texts(tokens: Tensor) -> Tensor:
    """Without the columns that are filling in every text."""
    used = int((tokens != tokens[:, -1:]).any(0).sum()) + 1
    return tokens[:, :used]


def number_texts(tokens: Tensor) -> Tensor:
    """A number for each text (b, t), the same for the same text: (b)"""
    return torch.unique(tokens, dim=0, return_inverse=True)[1]
