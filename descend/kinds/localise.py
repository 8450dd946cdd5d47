"""Localisation recipes: generated scenes of one object, its class and its box; new, or from a trained network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.images.labelled import Images, Preprocessing, Splits, check_shares, split_by_class
from descend.data.streams.arrays import InOrder, Shuffled, generator
from descend.data.streams.shards import process
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import build_model
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.kinds.start_from import Start
from descend.models.localiser import LocaliserConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Count, Fraction, NonNegative, Range
from descend.tasks.localise import Localise
from descend.views.localisation import show_boxes


@dataclass(frozen=True)
class OneObject:
    """Scenes of one object each; the class is its shape."""

    images: Count = 3000
    size: Annotated[int, Range(int, least=8, most=4096)] = 32
    """Side in pixels."""
    valid: Fraction = 0.15
    test: Fraction = 0.15

    def read(self) -> tuple[Splits, Tensor]:
        """The three parts, and the box of every record as shares of the image (n, 4)."""
        check_shares(self.valid, self.test)
        if self.images < 100:
            raise Mistake(f"--data.images {self.images}: at least 100")
        seen = one_object(self.images, self.size, generator(0), [(s, c) for s in SHAPES for c in COLOURS])
        whole = Images(seen.x, seen.shape[:, 0], torch.arange(self.images))
        test, valid, rest = split_by_class(whole.y, (self.test, self.valid))
        return Splits(whole.take(rest), whole.take(valid), whole.take(test), SHAPES), seen.box[:, 0] / self.size


@dataclass(frozen=True)
class LocaliseImages(Recipe):
    """What is it, and where is it?"""

    model: LocaliserConfig = field(default_factory=LocaliserConfig)
    data: OneObject = field(default_factory=OneObject)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    start: Start = field(default_factory=Start)
    weight: NonNegative = 5.0
    """λ, the weight of the box loss beside the class loss."""

    def build(self) -> Parts:
        splits, boxes = self.data.read()
        prepare = self.start.rescale(Preprocessing.fit(splits))
        batch = fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(self.loop.seed)
        model = build_model(self.start.choose_config(self.model), prepare.image, splits.labels)
        train = prepare_arrays(splits.train, boxes, prepare)
        parts = Parts(
            task=Localise(model, self.weight),
            model=model,
            stream=Shuffled(train, micro_batch(self.loop, batch), self.loop.seed, *process()),
            valid=InOrder(prepare_arrays(splits.valid, boxes, prepare)),
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": "generated scenes of one object",
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "classes": ", ".join(splits.labels),
                **describe_batch(self.loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: show_boxes(model, splits, boxes, prepare),
        )
        return self.start.apply(parts)

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits, boxes = self.data.read()
        return InOrder(prepare_arrays(splits.test, boxes, self.start.rescale(Preprocessing.fit(splits))))

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """There is no format of files with boxes here yet."""
        raise Mistake(
            f"--data.path {path}: localisation learns from generated scenes and reads no files of boxes; "
            "descend predict RUN photo.png --heat box.png shows what it finds in an image of yours"
        )


def prepare_arrays(images: Images, boxes: Tensor, prepare: Preprocessing) -> dict[str, Tensor]:
    return {"x": prepare(images.x), "y": images.y, "box": boxes[images.ids], "ids": images.ids}
