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

from descend.contracts import Batch, Move, Task
from descend.data.images.mixing import CutMix, MixUp
from descend.losses.classification import cross_entropy, soft_cross_entropy
from descend.metrics.classification import correct


class ClassifyMixed(Task):
    """A batch is images x (b, c, h, w) and classes y (b)."""

    def __init__(self, model: nn.Module, classes: int, ways: tuple[MixUp | CutMix, ...]):
        super().__init__()
        self.model, self.classes, self.ways = model, classes, ways

    def mix(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """x' and y' (b, classes)"""
        x, y = batch["x"], one_hot(batch["y"], self.classes).to(batch["x"].dtype)
        random = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        way = self.ways[int(torch.randint(len(self.ways), (), generator=random))]
        return way(x, y, random)

    def moves(self, batch: Batch) -> Iterator[Move]:
        x, y = self.mix(batch)
        yield Move("model", lambda: soft_cross_entropy(self.model(x), y).mean())

    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits = self.model(batch["x"])
        return {"accuracy": correct(logits, batch["y"]), "loss": cross_entropy(logits, batch["y"])}
