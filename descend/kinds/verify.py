"""Verification recipes: do two images show the same thing? A DeepFace network learns distances from labelled pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.digits import Digits
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.images.source import describe_classes
from descend.data.images.verification import LoadPairs, pairs_once, shuffle_pairs
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.models.deepface import DeepFace, DeepFaceConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import NonNegative, Positive
from descend.tasks.verify import Verify
from descend.views.verification import show_distances, show_pairs


@dataclass(frozen=True)
class VerifyPairs(Recipe):
    """Pairs of images of the same class or of two; a threshold on their distance tells which.

    The threshold is fitted to pairs of training images, and judged on pairs of others.
    """

    model: DeepFaceConfig = field(default_factory=DeepFaceConfig)
    data: Any = field(default_factory=Digits)
    apart: Positive = 1.0
    """Distance, of unit vectors, that different things should have at least; 2 is the largest."""
    identity: NonNegative = 0.5
    """Weight of naming each image; 0: pairs alone teach."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        loop, batch = self.loop, fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        try:
            model = DeepFace(replace(self.model, image=prepare.image, classes=len(splits.labels)))
        except ValueError as error:
            raise Mistake(f"--model: {error}") from None
        load = LoadPairs(splits.train.x, self.data.changes(), prepare, splits.train.y)
        task = Verify(model, self.apart, self.identity)
        valid = self.judged_by(splits, "valid", prepare)
        return Parts(
            task=task,
            model=model,
            stream=shuffle_pairs(splits.train, load, micro_batch(loop, batch), loop.seed, process()),
            valid=valid,
            optims={"model": self.optim},
            unit="pairs",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation pairs": len(splits.valid.y),
                "test pairs": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "identities": len(splits.labels),
                **describe_classes(splits),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: show_verification(task, valid, prepare),
        )

    def judged_by(self, splits: Splits, part: str, prepare: Preprocessing) -> list[Batch]:
        """Pairs of training images for the threshold, then pairs of others."""
        plain = LoadPairs(splits.train.x, self.data.changes(), prepare, splits.train.y)
        known = pairs_once(splits.train, prepare, plain, known=True)
        return known + pairs_once(getattr(splits, part), prepare, plain, known=False)

    def test(self) -> Iterable[Batch]:
        """Pairs of test images."""
        splits = self.data.read()
        return self.judged_by(splits, "test", Preprocessing.fit(splits))

    def files(self) -> dict[str, Path]:
        """As for images with classes."""
        return ClassifyImages(data=self.data, loop=self.loop).files()

    def packages(self) -> tuple[str, ...]:
        """As for images with classes."""
        return ClassifyImages(data=self.data, loop=self.loop).packages()


def show_verification(task: Verify, valid: list[Batch], prepare: Preprocessing) -> list[Exhibit]:
    """Distances of pairs, and the pairs that are hardest to tell."""

    def measure(batch: Batch) -> Tensor:
        where, training = next(task.parameters()).device, task.training
        found = task.eval().measure({name: x.to(where) for name, x in batch.items()}).cpu()
        task.train(training)
        return found

    return [show_distances(measure, valid), show_pairs(measure, valid, prepare)]
