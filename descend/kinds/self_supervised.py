"""Recipes that learn from images without their labels: joint embeddings of two views.

The labels of the data, where it has them, judge and never teach: a linear probe and the nearest neighbours read the
frozen vectors of held-out images. The trained encoder is a model folder: `--start.path RUN` of an image recipe begins
with it, and `descend embed RUN` gives its vectors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit, Task
from descend.data.images.labelled import Preprocessing, Splits
from descend.data.images.shape_scenes import ShapeScenes
from descend.data.images.source import describe_classes
from descend.data.images.views import LoadViews, Viewing, labelled_batches, shuffle_views
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.images import ClassifyImages
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.models.contrastive_encoder import (
    ContrastiveEncoder,
    ContrastiveEncoderConfig,
    JigsawEncoder,
    PredictiveEncoder,
    SimSiamEncoder,
)
from descend.ops.mining import Miner, mine_all, mine_hardest, mine_semi_hard, mine_top
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Count, Fraction, Positive, Range, Share, Width
from descend.tasks.joint_embedding import PIRL, MoCo, Siamese, SimCLR
from descend.tasks.representation import Representation
from descend.tasks.self_prediction import BYOL, SimSiam
from descend.views.attempts import show_each
from descend.views.representation import show_map, show_neighbours, show_views

Cosines = Annotated[float, Range(float, least=-1, most=1)]


@dataclass(frozen=True)
class EmbedViews(Recipe):
    """Two views of every image through the same network. A subclass says what is asked of them."""

    model: ContrastiveEncoderConfig = field(default_factory=ContrastiveEncoderConfig)
    data: Any = field(default_factory=ShapeScenes)
    views: Viewing = field(default_factory=Viewing)
    known: Count = 1000
    """Labelled training images, at most, that the probe is fitted to; they are not trained on with their labels."""
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    Model: ClassVar[type[ContrastiveEncoder]] = ContrastiveEncoder

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        loop, batch = self.loop, fit_batch(self.loop, len(splits.train.y))
        torch.manual_seed(loop.seed)
        model = self.Model(replace(self.model, image=prepare.image))
        load = self.load(splits, prepare)
        valid = labelled_batches(splits.train, splits.valid, prepare, load, self.known)
        task = self.assemble(model, len(splits.train.y))
        micro = micro_batch(loop, batch)
        return Parts(
            task=task,
            model=model,
            stream=shuffle_views(splits.train, load, micro, loop.seed, process(), self.data.processes(splits.train)),
            valid=valid,
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "labels for the probe": min(self.known, len(splits.train.y)),
                **describe_classes(splits),
                **describe_batch(loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: show_embedding(task, valid, splits, prepare),
        )

    def load(self, splits: Splits, prepare: Preprocessing) -> LoadViews:
        """What becomes of a training image."""
        return LoadViews(splits.train.x, self.views.augment(), prepare)

    def assemble(self, model: Any, images: int) -> Representation:
        """The task of a method, given how many training images there are."""
        raise NotImplementedError

    def test(self) -> Iterable[Batch]:
        """The probe is fitted to training images and tested on the test images."""
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        return labelled_batches(splits.train, splits.test, prepare, self.load(splits, prepare), self.known)

    def files(self) -> dict[str, Path]:
        """As for images with classes."""
        return ClassifyImages(data=self.data, loop=self.loop).files()

    def packages(self) -> tuple[str, ...]:
        """As for images with classes."""
        return ClassifyImages(data=self.data, loop=self.loop).packages()


def show_embedding(task: Task, valid: list[Batch], splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
    """A map, neighbours and views."""
    assert isinstance(task, Representation)

    def embed(x: Tensor) -> Tensor:
        where = next(task.parameters()).device
        training = task.training
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


@dataclass(frozen=True)
class EmbedSimCLR(EmbedViews):
    """SimCLR: each view finds the other one of its image among all views of the step."""

    tau: Positive = 0.5
    """Temperature of the comparison."""

    def assemble(self, model: Any, images: int) -> Representation:
        return SimCLR(model, self.tau)


@dataclass(frozen=True)
class EmbedSiamese(EmbedViews):
    """A Siamese network: two views together, other images apart by a margin."""

    mining: Literal["all", "hardest", "semi-hard", "top-k"] = "all"
    """Which negatives count: all, the most similar, the most similar beyond the positive, or the k most similar."""
    k: Count = 5
    """Negatives of an image with --mining top-k."""
    margin: Cosines = 0.0
    """Cosine below which negatives are far enough apart."""

    def assemble(self, model: Any, images: int) -> Representation:
        miners: dict[str, Miner] = {
            "all": mine_all,
            "hardest": mine_hardest,
            "semi-hard": mine_semi_hard(1.0),
            "top-k": mine_top(self.k),
        }
        return Siamese(model, miners[self.mining], self.margin)


@dataclass(frozen=True)
class EmbedMoCo(EmbedViews):
    """MoCo: each view finds the key of the other one among keys of earlier steps."""

    tau: Positive = 0.1
    """Temperature of the comparison."""
    momentum: Fraction = 0.99
    """Share of the key encoder's old weights that stays after a step."""
    queue: Width = 2048
    """Keys to compare with."""

    def assemble(self, model: Any, images: int) -> Representation:
        return MoCo(model, self.queue, self.model.outputs, self.momentum, self.tau)


@dataclass(frozen=True)
class EmbedBYOL(EmbedViews):
    """BYOL: each view predicts what a slow copy of the network makes of the other one."""

    momentum: Fraction = 0.99
    """Share of the slow copy's old weights that stays after the first step; it rises to 1."""
    Model: ClassVar[type[ContrastiveEncoder]] = PredictiveEncoder

    def assemble(self, model: Any, images: int) -> Representation:
        return BYOL(model, self.momentum, self.loop.steps)


@dataclass(frozen=True)
class EmbedSimSiam(EmbedViews):
    """SimSiam: each view predicts the other one, which takes no gradient."""

    Model: ClassVar[type[ContrastiveEncoder]] = SimSiamEncoder

    def assemble(self, model: Any, images: int) -> Representation:
        return SimSiam(model)


@dataclass(frozen=True)
class EmbedPIRL(EmbedViews):
    """PIRL: an image and its shuffled pieces find the image's place in a memory of all images."""

    tau: Positive = 0.2
    """Temperature of the comparison."""
    momentum: Fraction = 0.5
    """Share of a memory that stays when its image comes."""
    negatives: Width = 256
    """Other memories that an image is compared with."""
    share: Share = 0.5
    """Weight of the pieces' loss; the rest is the image's."""
    Model: ClassVar[type[ContrastiveEncoder]] = JigsawEncoder

    @property
    def grid(self) -> int:
        """Pieces along an edge."""
        side = round(self.model.pieces**0.5)
        if side**2 != self.model.pieces:
            raise Mistake(f"--model.pieces {self.model.pieces}: a jigsaw has a square number of pieces, e.g. {side**2}")
        return side

    def load(self, splits: Splits, prepare: Preprocessing) -> LoadViews:
        return LoadViews(splits.train.x, self.views.augment(), prepare, self.grid, self.negatives)

    def assemble(self, model: Any, images: int) -> Representation:
        return PIRL(model, images, self.model.outputs, self.momentum, self.tau, self.share)
