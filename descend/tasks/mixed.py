"""Classification of mixed images: soft labels in the proportion of the pixels (`data/images/mixing.py`).

    minimise (1/b) Σ_i −Σ_k y'_ik log softmax(model(x'_i))_k        x', y' = MixUp or CutMix of the batch

With both, each step takes one of them, each as often as the other. What is drawn belongs to torch's random state, which
the engine sets anew for every step from the seed and the step: a resumed run mixes as the first one did. Scores are
those of the images as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from descend.contracts import Batch, Move
from descend.data.images.mixing import CutMix, MixUp
from descend.losses.classification import soft_cross_entropy
from descend.tasks.classify import Classify


class ClassifyMixed(Classify):
    """A batch is images x (b, c, h, w) and classes y (b)."""

    def __init__(self, model: nn.Module, classes: int, ways: tuple[MixUp | CutMix, ...]):
        super().__init__(model)
        self.classes, self.ways = classes, ways

    def mix(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """x' and y' (b, classes)"""
        x, y = batch["x"], one_hot(batch["y"], self.classes).to(batch["x"].dtype)
        random = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        way = self.ways[int(torch.randint(len(self.ways), (), generator=random))]
        return way(x, y, random)

    def moves(self, batch: Batch) -> Iterator[Move]:
        x, y = self.mix(batch)
        yield Move("model", lambda: soft_cross_entropy(self.model(x), y).mean())
