"""Detection recipes: images with objects, any model that detects, and the criterion that it learns by.

    model     a config; the class is a `contracts.Detects`
    loss      a `contracts.Criterion`: assignment and losses; its numbers are flags (--loss.box 7.5)
    data      generated scenes, or a folder in the form of COCO, YOLO or VOC

Systems: detection-training-loop
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Batch, Criterion, Exhibit, Stream
from descend.data.detection.objects import DetectionSplits, Objects
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.detection.source import DetectionSource
from descend.data.detection.stream import HeldOutObjects
from descend.data.streams.beside import Beside, BesideOnce, Draw
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import build_model
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.kinds.start_detector import DetectorStart
from descend.losses.detection.task_aligned import TaskAligned
from descend.models import config_class
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.detect import Detect


@dataclass(frozen=True)
class DetectObjects(Recipe):
    """Which objects, and where?"""

    model: Any = field(default_factory=lambda: config_class("yolo_v8")())
    loss: Any = field(default_factory=TaskAligned)
    data: DetectionSource = field(default_factory=DetectionSource)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    start: DetectorStart = field(default_factory=DetectorStart)

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = self.fit_preprocessing(splits)
        batch = fit_batch(self.loop, len(splits.train))
        torch.manual_seed(self.loop.seed)
        side = self.data.side
        model: Any = build_model(self.start.choose_config(self.model), (3, side, side), splits.labels)
        check_side(side, model.stride)
        task = Detect(model, self.loss, len(splits.labels))
        parts = Parts(
            task=task,
            model=model,
            stream=self.stream(splits.train, prepare, batch),
            valid=self.held_out(splits.valid, prepare),
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train),
                "validation images": len(splits.valid),
                "test images": len(splits.test),
                "input": f"3×{side}×{side}",
                "classes": ", ".join(splits.labels),
                **splits.facts,
                **describe_batch(self.loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: self.exhibits(task, splits, prepare),
        )
        return self.start.apply(parts)

    def fit_preprocessing(self, splits: DetectionSplits) -> DetectionPreprocessing:
        """As the images are, or as the detector that is started from saw them."""
        return self.start.rescale(DetectionPreprocessing.fit(splits.train, self.data.framing, splits.labels))

    def stream(self, train: Objects, prepare: DetectionPreprocessing, batch: int) -> Stream:
        """Shuffled training images, and the random numbers that the criterion asks for."""
        micro, seed = micro_batch(self.loop, batch), self.loop.seed
        source = self.data.shuffle(train, prepare, micro, seed, process(), (batch, self.loop.steps))
        return Beside(source, draw_numbers(self.loss), seed, *process()) if self.loss.chance else source

    def held_out(self, objects: Objects, prepare: DetectionPreprocessing) -> Iterable[Batch]:
        """Images that are not trained on, in order, each with the same random numbers every time."""
        batches = HeldOutObjects(objects, prepare, self.data.memory)
        return BesideOnce(batches, draw_numbers(self.loss)) if self.loss.chance else batches

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits = self.data.read()
        return self.held_out(splits.test, self.fit_preprocessing(splits))

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every image of a folder, by the classes that the model knows."""
        prepare = DetectionPreprocessing.read(folder)
        batches = self.held_out(self.data.read_unseen(path, prepare.labels), prepare)
        task = Detect(model, self.loss, len(prepare.labels))
        return Judged(task, batches, lambda: show(task, batches, prepare))

    def exhibits(self, task: Detect, splits: DetectionSplits, prepare: DetectionPreprocessing) -> list[Exhibit]:
        """The scores of the validation images, and those that went wrong."""
        return show(task, self.held_out(splits.valid, prepare), prepare)


def show(task: Detect, batches: Iterable[Batch], prepare: DetectionPreprocessing) -> list[Exhibit]:
    """What held-out images tell about a detector."""
    from descend.views.detection import show_detections

    return show_detections(task, batches, prepare.restore, prepare.labels)


def draw_numbers(criterion: Criterion) -> Draw:
    """`chance` numbers in 0..1 for each image."""
    return lambda random, n: {"u": torch.rand(n, criterion.chance, generator=random)}


def check_side(side: int, stride: int) -> None:
    """The input must divide into the cells of the coarsest map."""
    if side % stride:
        least = max(stride, side // stride * stride)
        raise Mistake(
            f"--data.size {side}: this detector's cells are {stride} pixels wide; give {least} or {least + stride}"
        )
