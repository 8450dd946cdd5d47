"""Contrastive pre-training on pairs of image and text: every image should find its text in the batch, and back.

    L = (1/N) Σ_i ℓ_i                  `descend.losses.contrastive`; pairs with the same text count as one
    s ← min(s, log 100)                after every step: the temperature 1/e^s stays at least 0.01, as in the original

A batch has x (b, c, h, w) and tokens (b, t); more pairs in a batch are more negatives, so micro-batches are not the
same as a whole batch. With y (b), classes that `prompts` (classes, templates, t) write as texts, images are classified
too: by the nearest text, never trained on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from descend.losses.contrastive import grouped_n_pair
from descend.metrics.classification import correct
from descend.metrics.retrieval import hits
from descend.metrics.zero_shot import class_scores

COLDEST = math.log(100)


class Contrastive(nn.Module):
    """The model has encode_image, encode_text, logits of the two, and a parameter `scale`, the s above."""

    players = ("model",)
    prompts: Tensor | None

    def __init__(self, model: nn.Module, prompts: Tensor | None = None):
        super().__init__()
        self.model = model
        self.register_buffer("prompts", prompts, persistent=False)

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        group = alike(batch["tokens"])
        yield "model", lambda: grouped_n_pair(self.model(batch["x"], batch["tokens"]), group).mean()
        with torch.no_grad():
            self.model.scale.clamp_(max=COLDEST)  # type: ignore[operator]

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The loss of each pair, whether its image finds its text in the batch, and whether it is named rightly."""
        group = alike(batch["tokens"])
        images, texts = self.model.encode_image(batch["x"]), self.model.encode_text(batch["tokens"])  # type: ignore[operator]
        logits: Tensor = self.model.logits(images, texts)  # type: ignore[operator]
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
        vectors: Tensor = self.model.encode_text(self.prompts.flatten(0, 1))  # type: ignore[operator]
        return vectors.unflatten(0, self.prompts.shape[:2]).mean(1)


def alike(tokens: Tensor) -> Tensor:
    """A number for each text (b, t), the same for the same text: (b)"""
    found: Tensor = torch.unique(tokens, dim=0, return_inverse=True)[1]
    return found
