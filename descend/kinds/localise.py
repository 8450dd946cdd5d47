"""Localisation recipes: generated scenes of one object, its class and its box; new, or from a trained network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from descend.data.images.labelled import Images, Preprocessing, Splits, check_shares, stratified
from descend.data.streams.arrays import InOrder, Shuffled, generator
from descend.data.streams.shards import process
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.engine.protocol import Batch, Exhibit, Parts
from descend.errors import Mistake
from descend.kinds.images import fitted
from descend.kinds.recipe import Recipe, micro_batch
from descend.kinds.start_from import Start
from descend.metrics.boxes import box_iou
from descend.models.localiser import LocaliserConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.localise import Localise

SHOWN = 12  # images in the report
TRUE, FOUND = (0.1, 0.9, 0.2), (0.95, 0.1, 0.1)  # colours of the boxes


@dataclass(frozen=True)
class OneObject:
    """Scenes of one object each; the class is its shape."""

    images: int = 3000
    size: int = 32
    """Side in pixels."""
    valid: float = 0.15
    test: float = 0.15

    def read(self) -> tuple[Splits, Tensor]:
        """The three parts, and the box of every record as shares of the image (n, 4)."""
        check_shares(self.valid, self.test)
        if self.images < 100:
            raise Mistake(f"--data.images {self.images}: at least 100")
        seen = one_object(self.images, self.size, generator(0), [(s, c) for s in SHAPES for c in COLOURS])
        whole = Images(seen.x, seen.shape[:, 0], torch.arange(self.images))
        test, valid, rest = stratified(whole.y, (self.test, self.valid))
        return Splits(whole.take(rest), whole.take(valid), whole.take(test), SHAPES), seen.box[:, 0] / self.size


@dataclass(frozen=True)
class LocaliseImages(Recipe):
    """What is it, and where is it?"""

    model: LocaliserConfig = field(default_factory=LocaliserConfig)
    data: OneObject = field(default_factory=OneObject)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    start: Start = field(default_factory=Start)
    weight: float = 5.0
    """λ, the weight of the box beside the class."""

    def build(self) -> Parts:
        splits, boxes = self.data.read()
        prepare = self.start.prepared(Preprocessing.fit(splits))
        batch = self.loop.batch or len(splits.train.y)
        torch.manual_seed(self.loop.seed)
        model = fitted(self.start.config(self.model), prepare.image, splits.labels)
        train = arrays(splits.train, boxes, prepare)
        parts = Parts(
            task=Localise(model, self.weight),
            model=model,
            stream=Shuffled(train, micro_batch(self.loop, batch), self.loop.seed, *process()),
            valid=InOrder(arrays(splits.valid, boxes, prepare)),
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
            },
            save_extra=prepare.save,
            exhibits=lambda: look(model, splits, boxes, prepare),
        )
        return self.start.applied(parts)

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits, boxes = self.data.read()
        return InOrder(arrays(splits.test, boxes, self.start.prepared(Preprocessing.fit(splits))))


def arrays(images: Images, boxes: Tensor, prepare: Preprocessing) -> dict[str, Tensor]:
    return {"x": prepare(images.x), "y": images.y, "box": boxes[images.ids], "ids": images.ids}


@torch.no_grad()
def look(model: Any, splits: Splits, boxes: Tensor, prepare: Preprocessing) -> list[Exhibit]:
    """The validation images whose boxes fit worst, with both boxes drawn."""
    where, valid = next(model.parameters()).device, splits.valid
    found = [model(part.to(where)) for part in prepare(valid.x).split(256)]
    logits, box = (torch.cat([f[i] for f in found]).cpu() for i in (0, 1))
    true = boxes[valid.ids]
    fit = box_iou(box, true)
    worst = fit.argsort()[:SHOWN]
    drawn = outlined(outlined(valid.x[worst], true[worst], TRUE), box[worst], FOUND)
    captions = [
        f"{splits.labels[int(valid.y[i])]}, called {splits.labels[int(logits[i].argmax())]}, IoU {float(fit[i]):.2f}"
        for i in worst.tolist()
    ]
    content = {"images": drawn.movedim(1, -1).numpy(), "captions": captions}
    return [Exhibit("images", "Boxes that fit worst", content, "Validation images: green is true, red was found.")]


def outlined(pixels: Tensor, box: Tensor, colour: tuple[float, float, float]) -> Tensor:
    """Images (n, 3, h, w) with a line of one pixel along each box (n, 4), given as shares of the image."""
    h, w = pixels.shape[-2:]
    x0, y0, x1, y1 = (box * torch.tensor([w, h, w, h])).round().long().unbind(dim=1)
    x1, y1 = (x1 - 1).clamp_min(0), (y1 - 1).clamp_min(0)
    rows, columns = torch.arange(h)[None, :, None], torch.arange(w)[None, None, :]
    x0, y0, x1, y1 = (t[:, None, None] for t in (x0.clamp_max(w - 1), y0.clamp_max(h - 1), x1, y1))
    inside = (rows >= y0) & (rows <= y1) & (columns >= x0) & (columns <= x1)
    edge = inside & ((rows == y0) | (rows == y1) | (columns == x0) | (columns == x1))
    return torch.where(edge[:, None], torch.tensor(colour)[None, :, None, None], pixels)
