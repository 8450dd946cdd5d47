"""What recipes that learn from images without their labels have in common.

The labels of the data, where it has them, judge and never teach: a linear probe and the nearest neighbours read the
frozen vectors of held-out images. The trained encoder is a model folder: `--start.path RUN` of an image recipe begins
with it, and `descend embed RUN` gives its vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.augment import Augment
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.source import describe_classes
from descend.data.images.views import DrawnLoad, Viewing, labelled_batches, shuffle_loaded
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Count
from descend.tasks.representation import Representation
from descend.views.attempts import show_each
from descend.views.representation import show_map, show_neighbours, show_views
from descend.weights.pretrained import Pretrained


@dataclass(frozen=True)
class LearnImages(Recipe):
    """Images without labels. A subclass says what is made of an image, and what is asked of it."""

    data: Any = field(default_factory=ShapeScenes)
    views: Viewing = field(default_factory=Viewing)
    """How an image is changed before the network sees it."""
    known: Count = 1000
    """Labelled training images, at most, that the probe is fitted to; they are not trained on with their labels."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    fixed: ClassVar[tuple[str, ...]] = ("x1", "x2")
    """What validation images have beside themselves, drawn once and for all."""

    def make(self, splits: Splits, prepare: Preprocessing) -> tuple[Representation, Pretrained]:
        """The task, and the model to save."""
        raise NotImplementedError

    def load(self, images: Images, prepare: Preprocessing, augment: Augment) -> DrawnLoad:
        """What becomes of a training image."""
        raise NotImplementedError

    def load_fixed(self, images: Images, prepare: Preprocessing) -> DrawnLoad:
        """What becomes of a validation image: all that is in `fixed`."""
        return self.load(images, prepare, Augment(()))

    def describe(self, task: Representation) -> dict[str, Any]:
        """Facts of the method."""
        return {}

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        loop, batch = self.loop, fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        task, model = self.make(splits, prepare)
        load = self.load(splits.train, prepare, self.views.augment())
        workers = self.data.processes(splits.train)
        valid = self.judged_by(splits, splits.valid, prepare)
        return Parts(
            task=task,
            model=model,
            stream=shuffle_loaded(splits.train, load, micro_batch(loop, batch), loop.seed, process(), workers),
            valid=valid,
            optims={task.players[0]: self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "labels for the probe": min(self.known, len(splits.train.y)),
                **self.describe(task),
                **describe_classes(splits),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: show_embedding(task, valid, splits, prepare),
        )

    def judged_by(self, splits: Splits, held_out: Images, prepare: Preprocessing) -> list[Batch]:
        """Labelled training images to fit a probe to, then held-out ones to test it on."""
        load = self.load_fixed(held_out, prepare)
        return labelled_batches(splits.train, held_out, prepare, load, self.fixed, self.known)

    def test(self) -> Iterable[Batch]:
        """The probe is fitted to training images and tested on the test images."""
        splits = self.data.read()
        return self.judged_by(splits, splits.test, Preprocessing.fit(splits))

    def files(self) -> dict[str, Path]:
        """As for images with classes."""
        return ClassifyImages(data=self.data, loop=self.loop).files()

    def packages(self) -> tuple[str, ...]:
        """As for images with classes."""
        return ClassifyImages(data=self.data, loop=self.loop).packages()


def show_embedding(task: Representation, valid: list[Batch], splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
    """A map, neighbours and views."""

    def embed(x: Tensor) -> Tensor:
        where, training = next(task.parameters()).device, task.training
        found = task.eval().embed(x.to(where)).cpu()
        task.train(training)
        return found

    shown = {
        "Map of the embedding": lambda: show_map(embed, valid, splits.labels),
        "Nearest neighbours": lambda: show_neighbours(embed, valid, prepare),
    }
    if any("x1" in batch for batch in valid):
        shown["Views"] = lambda: show_views(valid, prepare)
    return show_each(shown)
