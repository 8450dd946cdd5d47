"""Recipes whose models make images: digits, scenes, MNIST, or a folder of the user's own, with or without classes.

A family says what it adds: `assemble` (task, model, optimizers) and `draw` (the random numbers of an example: noise,
times, dropped conditions). Pixels are brought to −1..1, or to 0..1 where a likelihood of pixels asks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit, Generates, Rule, Task, Wish
from descend.data.images.digits import Digits
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.images.source import describe_classes
from descend.data.streams.beside import Beside, BesideOnce
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, describe_batch, fit_batch
from descend.optim.schedules import Cosine
from descend.sampling.chance import PerExample
from descend.weights.pretrained import Pretrained

VALID, TEST = 1, 2  # keys of the random numbers that are never trained on
KEPT = 8  # samples that are kept of each evaluation
SIGNED, UNIT = (0.5, 0.5), (0.0, 1.0)  # mean and deviation that bring 0..1 to −1..1, or leave it


class Learner(NamedTuple):
    """What learns: the task, the model to save, and a rule for each player."""

    task: Task
    model: Pretrained
    optims: dict[str, Rule]


@dataclass(frozen=True)
class GenerateImages(Recipe):
    """A model that makes images."""

    data: Any = field(default_factory=Digits)
    schedule: Any = field(default_factory=Cosine)
    scale: ClassVar[tuple[float, float]] = SIGNED

    def assemble(self, prepare: Preprocessing) -> Learner:
        """The model for images of this size and these classes, and what trains it."""
        raise NotImplementedError

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int]) -> dict[str, Tensor]:
        """The random numbers of n examples."""
        return {}

    def build(self) -> Parts:
        splits = self.data.read_unlabelled()
        prepare, loop = self.prepare(splits), self.loop
        batch = fit_batch(loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        made = self.assemble(prepare)

        def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
            return self.draw(random, n, prepare.image)

        return Parts(
            task=made.task,
            model=made.model,
            stream=Beside(self.images.stream(splits.train, prepare, batch), draw, loop.seed, *process()),
            valid=BesideOnce(self.images.held_out(splits.valid, prepare), draw, VALID),
            optims=made.optims,
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                **describe_classes(splits),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            snapshot=make_snapshot(made.model, prepare),
            exhibits=lambda: self.exhibits(made.model, splits, prepare),
        )

    def prepare(self, splits: Splits) -> Preprocessing:
        """Pixels of every channel to the same range."""
        found = Preprocessing.fit(splits)
        mean, std = self.scale
        channels = found.image[0]
        return replace(found, mean=(mean,) * channels, std=(std,) * channels)

    @property
    def images(self) -> ClassifyImages:
        """How images are read and augmented."""
        return ClassifyImages(data=self.data, loop=self.loop)

    def test(self) -> Iterable[Batch]:
        """The test images, with random numbers that selected nothing."""
        splits = self.data.read_unlabelled()
        prepare = self.prepare(splits)
        draw = lambda random, n: self.draw(random, n, prepare.image)
        return BesideOnce(self.images.held_out(splits.test, prepare), draw, TEST)

    def files(self) -> dict[str, Path]:
        """As for images with classes."""
        return self.images.files()

    def packages(self) -> tuple[str, ...]:
        """As for images with classes."""
        return self.images.packages()

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """Samples, and the training images nearest to them."""
        from descend.views.attempts import show_each
        from descend.views.samples import show_nearest, show_samples

        if not isinstance(model, Generates):
            return []
        device = next(model.parameters()).device
        return show_each(
            {
                "Samples": lambda: show_samples(model, prepare, device),
                "Nearest training images": lambda: show_nearest(model, splits, prepare, device),
            }
        )


def make_snapshot(model: Pretrained, prepare: Preprocessing) -> Callable[[], Tensor] | None:
    """A few samples, always of the same random numbers; nothing where the model makes none."""
    if not isinstance(model, Generates):
        return None
    offers = model.offers

    def make() -> Tensor:
        device = next(model.parameters()).device
        labels = torch.arange(KEPT, device=device) % len(prepare.labels)
        wish = Wish(classes=labels if "classes" in offers else None)
        return prepare.restore(model.generate(PerExample(VALID, KEPT, device=device), wish).cpu())

    return make
