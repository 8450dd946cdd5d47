"""Recipes of joint embedding predictive architectures: an encoder foresees what it will say of hidden blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Batch
from descend.data.images.augment import Augment
from descend.data.images.jepa_blocks import LoadBlocks, TargetBlocks
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.source import describe_classes
from descend.data.images.stream import Ahead
from descend.data.images.views import Viewing, labelled_batches, views_once
from descend.data.streams.arrays import Shuffled
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.kinds.self_supervised import show_embedding
from descend.models.ijepa import IJepa, IJepaConfig
from descend.nn.patch_predictor import PatchPredictor
from descend.nn.patches import grid_of
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Count, Depth, Fraction, Width
from descend.tasks.jepa import JEPA


@dataclass(frozen=True)
class PredictorSizes:
    """The network between the context and the hidden blocks."""

    width: Width = 48
    depth: Depth = 2
    heads: Width = 4


@dataclass(frozen=True)
class PredictBlocks(Recipe):
    """I-JEPA on images without labels; --start.path of a classifying recipe then begins with it."""

    model: IJepaConfig = field(default_factory=IJepaConfig)
    data: Any = field(default_factory=ShapeScenes)
    views: Viewing = field(default_factory=lambda: Viewing(crop=1.0, colour=0.0, grey=0.0))
    """How an image is changed before it is cut into patches."""
    blocks: TargetBlocks = field(default_factory=TargetBlocks)
    predictor: PredictorSizes = field(default_factory=PredictorSizes)
    momentum: Fraction = 0.99
    """Share of the slow copy's old weights that stays after the first step; it rises to 1."""
    known: Count = 1000
    """Labelled training images, at most, that the probe is fitted to; they are not trained on with their labels."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        loop, batch = self.loop, fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        encoder = build_encoder(self.model, prepare.image)
        load = self.load(splits.train, prepare, self.views.augment())
        p, places = self.predictor, encoder.grid[0] * encoder.grid[1]
        predictor = PatchPredictor(places, self.model.width, p.width, p.depth, p.heads)
        task = JEPA(encoder, predictor, self.momentum, loop.steps)
        valid, target = self.judged_by(splits, splits.valid, prepare), task.target
        assert isinstance(target, IJepa)
        rows = {"row": torch.arange(len(splits.train.y)), "y": splits.train.y, "ids": splits.train.ids}
        order = Shuffled(rows, micro_batch(loop, batch), loop.seed, *process(), chance=load.chance)
        return Parts(
            task=task,
            model=target,
            stream=Ahead(order, load, self.data.processes(splits.train)),
            valid=valid,
            optims={"online": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "patches": places,
                "context": self.blocks.context(encoder.grid),
                "predictor's parameters": sum(q.numel() for q in predictor.parameters()),
                "labels for the probe": min(self.known, len(splits.train.y)),
                **describe_classes(splits),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: show_embedding(task, valid, splits, prepare),
        )

    def load(self, images: Images, prepare: Preprocessing, augment: Augment) -> LoadBlocks:
        """What becomes of an image."""
        _, height, width = prepare.image
        try:
            grid = grid_of(height, width, self.model.patch)
        except ValueError as error:
            raise Mistake(f"--model.patch: {error}") from None
        if self.blocks.context(grid) < 1 or self.blocks.height > grid[0] or self.blocks.width > grid[1]:
            b = self.blocks
            raise Mistake(
                f"--blocks: {b.count} blocks of {b.height}×{b.width} leave no context of {grid[0]}×{grid[1]} patches"
            )
        return LoadBlocks(images.x, augment, prepare, self.blocks, grid)

    def judged_by(self, splits: Splits, held_out: Images, prepare: Preprocessing) -> list[Batch]:
        """Labelled training images to fit a probe to, then held-out ones, with blocks that never change."""
        load = self.load(held_out, prepare, Augment(()))
        found, start = [], 0
        for batch in labelled_batches(splits.train, held_out, prepare, None, self.known):
            if not batch["known"].all():
                rows = torch.arange(start, start := start + len(batch["y"]))
                [placed] = views_once([{"row": rows}], load)
                batch |= {"context": placed["context"], "targets": placed["targets"]}
            found.append(batch)
        return found

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


def build_encoder(config: IJepaConfig, image: tuple[int, int, int]) -> IJepa:
    """The encoder, with the sizes that follow from the data."""
    channels, height, width = image
    if height != width:
        raise Mistake(f"the images are {height}×{width}, but this model needs squares; give --data.size {height}")
    try:
        return IJepa(replace(config, channels=channels, side=height))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None
