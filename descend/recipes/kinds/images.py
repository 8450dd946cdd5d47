"""Image classification recipes: labelled images, and any model whose config has sizes that the data gives.

A config names what it needs: `image` (c, h, w) and `classes`; `channels`, `side` and `labels`; `inputs` and `outputs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from descend.data.arrays import InOrder, Shuffled
from descend.data.digits import Digits
from descend.data.images import Images, Preprocessing
from descend.data.shards import process
from descend.data.warp import Warped
from descend.errors import Mistake
from descend.metrics.classification import confusion
from descend.models import model_class
from descend.models.lenet import LeNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.recipes.kinds.recipe import Recipe, micro_batch
from descend.tasks.classify import Classify
from descend.train.protocol import Batch, Exhibit, Parts, Stream
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained

SHOWN = 12  # images in the report


@dataclass(frozen=True)
class ClassifyImages(Recipe):
    """A classifier of images. With --batch 0 a step sees all the training images."""

    model: Any = field(default_factory=LeNetConfig)
    data: Digits = field(default_factory=Digits)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = Preprocessing.fit(splits)
        batch = self.loop.batch or len(splits.train.y)
        torch.manual_seed(self.loop.seed)
        model = fitted(self.model, prepare.image, splits.labels)
        return Parts(
            task=Classify(model),
            model=model,
            stream=self.stream(splits.train, prepare, batch),
            valid=InOrder(arrays(splits.valid, prepare)),
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.path or "scikit-learn's digits",
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "classes": len(splits.labels),
            },
            save_extra=prepare.save,
            exhibits=lambda: look(model, splits.valid, prepare),
        )

    def stream(self, train: Images, prepare: Preprocessing, batch: int) -> Stream:
        """Shuffled training images, warped if the recipe says so."""
        micro, seed, warp = micro_batch(self.loop, batch), self.loop.seed, self.data.warp
        if warp.idle:
            return Shuffled(arrays(train, prepare), micro, seed, *process())
        pixels = {"x": train.x, "y": train.y, "ids": train.ids}
        return Warped(Shuffled(pixels, micro, seed, *process(), chance=4), lambda x, u: prepare(warp(x, u)))

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits = self.data.read()
        return InOrder(arrays(splits.test, Preprocessing.fit(splits)))


def arrays(images: Images, prepare: Preprocessing) -> dict[str, Tensor]:
    return {"x": prepare(images.x), "y": images.y, "ids": images.ids}


def fitted(config: Any, image: tuple[int, int, int], names: tuple[str, ...]) -> Pretrained:
    """The model of a config, with the sizes that follow from the data."""
    channels, height, width = image
    sizes = {"image": image, "classes": len(names), "channels": channels, "labels": Labels(names)}
    sizes |= {"inputs": channels * height * width, "outputs": len(names)}
    defaults = type(config)()
    named = {f.name for f in dataclasses.fields(config)}
    if "side" in named:
        if height != width:
            raise Mistake(f"the images are {height}×{width}, but this model sees squares; give --data.size {height}")
        sizes["side"] = height
    given = {name: value for name, value in sizes.items() if name in named}
    for name, value in given.items():
        if getattr(config, name) not in (getattr(defaults, name), value):
            raise Mistake(f"--model.{name}: the data gives {value}; leave this flag out")
    try:
        config = dataclasses.replace(config, **given)
    except ValueError as error:
        raise Mistake(f"{error}; give a larger --data.size") from None
    return model_class(type(config).__module__.rpartition(".")[2])(config)


def look(model: Pretrained, images: Images, prepare: Preprocessing) -> list[Exhibit]:
    """What is taken for what, and the images where the model is most wrong."""
    where = next(model.parameters()).device
    p = torch.cat([model(b["x"].to(where)).softmax(dim=-1).cpu() for b in InOrder(arrays(images, prepare))])
    predicted, labels = p.argmax(dim=-1), prepare.labels
    counts = {"labels": list(labels), "counts": confusion(predicted, images.y, len(labels)).tolist()}
    true = images.y[:, None]
    # How far the best wrong class leads the right one; below 0 where the answer is right.
    lead = p.scatter(1, true, 0).amax(dim=1) - p.gather(1, true).squeeze(1)
    worst = lead.argsort(descending=True, stable=True)[:SHOWN]
    captions = [
        f"record {int(images.ids[i])}: {labels[int(images.y[i])]}, "
        + ("called " if predicted[i] != images.y[i] else "right, ")
        + f"{labels[int(predicted[i])]} ({float(p[i].max()):.0%})"
        for i in worst.tolist()
    ]
    pixels = images.x[worst]
    shown = pixels[:, 0] if pixels.shape[1] == 1 else pixels.movedim(1, -1)
    return [
        Exhibit("confusion", "What is taken for what", counts, "Validation images, best checkpoint."),
        Exhibit(
            "images",
            "Most confident mistakes, then closest calls",
            {"images": shown.numpy(), "captions": captions},
            "Validation images, ordered by how far the best wrong class leads.",
        ),
    ]
