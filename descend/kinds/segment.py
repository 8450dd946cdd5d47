"""Segmentation recipes: images with masks, and any model that makes logits of every pixel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch, Stream
from descend.data.images.labelled import Preprocessing
from descend.data.images.masks import (
    VOID,
    Masked,
    MaskedSplits,
    Masks,
    MasksInOrder,
    TrainingMasks,
    read_unseen_masks,
)
from descend.data.streams.arrays import Shuffled
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.kinds.images import build_model
from descend.kinds.recipe import Judged, Recipe, describe_batch, fit_batch, micro_batch
from descend.models import config_class
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import NonNegative
from descend.tasks.segment import Segment, middle
from descend.views.segmentation import show_masks


@dataclass(frozen=True)
class SegmentImages(Recipe):
    """A class for every pixel. With --batch 0, or more than there are, a step sees all the training images."""

    model: Any = field(default_factory=lambda: config_class("unet")(padding=1))
    data: Masks = field(default_factory=Masks)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    balance: NonNegative = 0.0
    """Weight of rare classes in the loss: class k by its share of the pixels to the power −balance."""
    dice: NonNegative = 0.0
    """Weight of the Dice loss beside the cross-entropy."""

    def build(self) -> Parts:
        splits = self.data.read()
        prepare, train = fit_preprocessing(splits), splits.train
        batch = fit_batch(self.loop, len(train))
        torch.manual_seed(self.loop.seed)
        model = build_model(self.model, prepare.image, splits.labels)
        shares = class_shares(train.y, len(splits.labels))
        return Parts(
            task=Segment(model, class_weights(shares, self.balance), self.dice),
            model=model,
            stream=self.stream(train, prepare, batch),
            valid=MasksInOrder(splits.valid, prepare),
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.path or "generated scenes",
                "training images": len(train),
                "validation images": len(splits.valid),
                "test images": len(splits.test),
                "image": "×".join(map(str, prepare.image)),
                **splits.facts,
                "classes": ", ".join(
                    f"{name} {share:.1%}" for name, share in zip(splits.labels, shares.tolist(), strict=True)
                ),
                **describe_batch(self.loop, batch),
            },
            save_extra=prepare.save,
            exhibits=lambda: show_masks(model, splits, prepare, middle),
        )

    def stream(self, train: Masked, prepare: Preprocessing, batch: int) -> Stream:
        """Shuffled training images with their masks, warped if the recipe says so."""
        micro, drawn = micro_batch(self.loop, batch), 0 if self.data.warp.idle else 4
        return TrainingMasks(
            Shuffled(train.arrays(), micro, self.loop.seed, *process(), drawn), prepare, self.data.warp
        )

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits = self.data.read()
        return MasksInOrder(splits.test, fit_preprocessing(splits))

    def judge(self, path: str, model: Any, folder: Path) -> Judged:
        """Every image of a folder with its mask, by the classes that the model knows."""
        prepare = Preprocessing.read(folder)
        images = read_unseen_masks(path, self.data.size, prepare.image, prepare.labels)
        return Judged(Segment(model, torch.ones(len(prepare.labels)), self.dice), MasksInOrder(images, prepare))


def fit_preprocessing(splits: MaskedSplits) -> Preprocessing:
    """μ and σ of the training images' channels, in 0..1; a channel that never changes keeps its scale."""
    x = splits.train.x
    counts = torch.stack([torch.bincount(c.flatten(), minlength=256) for c in x.unbind(1)]).double()
    values, n = torch.arange(256, dtype=torch.float64) / 255, counts.sum(dim=1)
    mean = counts @ values / n
    std = ((counts @ values.square()) / n - mean.square()).clamp(min=0).sqrt()
    std = torch.where(std > 1e-6, std, torch.ones_like(std))
    _, c, h, w = x.shape
    return Preprocessing((c, h, w), tuple(mean.tolist()), tuple(std.tolist()), splits.labels)


def class_shares(y: Tensor, classes: int) -> Tensor:
    """Share of the counted pixels that each class has (classes)."""
    counts = torch.bincount(y[y != VOID].flatten().int(), minlength=classes).float()
    return counts / counts.sum().clamp(min=1)


def class_weights(shares: Tensor, power: float) -> Tensor:
    """w_k = s_k^−power, scaled so that the mean over the pixels is 1; a class without pixels weighs 1."""
    weights = torch.where(shares > 0, shares, 1) ** -power
    return torch.where(shares > 0, weights / (weights * shares).sum(), 1.0)
