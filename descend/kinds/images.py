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

from descend.data.images.augment import Augment
from descend.data.images.digits import Digits
from descend.data.images.labelled import Images, Preprocessing, Splits
from descend.data.images.mixing import CutMix, MixUp
from descend.data.images.source import known
from descend.data.images.stream import Walk, shuffled
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.engine.protocol import Batch, Exhibit, Parts, Stream
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, micro_batch
from descend.kinds.start_from import Start
from descend.metrics.classification import confusion
from descend.models import model_class
from descend.models.lenet import LeNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.tasks.adversarial_examples import ClassifyAdversarially
from descend.tasks.classify import Classify
from descend.tasks.mixed import ClassifyMixed
from descend.theory.network import layers
from descend.views.images import look_inside
from descend.weights.labels import Labels
from descend.weights.pretrained import Pretrained

SHOWN = 12  # images in the report
ROWS, CHANGED = 5, 7  # of the contact sheet: images, and augmentations of each


@dataclass(frozen=True)
class Mix:
    """Mixed training images with soft labels; with both, steps take turns at random."""

    mixup: float = 0.0
    """a of MixUp's Beta(a, a), e.g. 0.2; 0: none."""
    cutmix: float = 0.0
    """a of CutMix's Beta(a, a), e.g. 1.0; 0: none."""

    def ways(self) -> tuple[MixUp | CutMix, ...]:
        if self.mixup < 0 or self.cutmix < 0:
            raise Mistake(f"--mix.mixup {self.mixup}, --mix.cutmix {self.cutmix}: at least 0")
        return (*((MixUp(self.mixup),) if self.mixup else ()), *((CutMix(self.cutmix),) if self.cutmix else ()))


@dataclass(frozen=True)
class Attack:
    """Adversarial training: images moved against the model, beside the clean ones."""

    eps: float = 0.0
    """Largest change of a pixel in 0..1, e.g. 0.03; 0: none."""
    steps: int = 1
    """Steps of the attack: 1 is FGSM, more are PGD."""

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1 or self.steps < 1:
            raise Mistake(f"--attack.eps {self.eps}, --attack.steps {self.steps}: eps is 0..1, steps at least 1")


@dataclass(frozen=True)
class ClassifyImages(Recipe):
    """A classifier of images. With --batch 0 a step sees all the training images."""

    model: Any = field(default_factory=LeNetConfig)
    data: Any = field(default_factory=Digits)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    mix: Mix = field(default_factory=Mix)
    attack: Attack = field(default_factory=Attack)
    start: Start = field(default_factory=Start)

    def build(self) -> Parts:
        splits = self.data.read()
        prepare = self.start.prepared(Preprocessing.fit(splits))
        batch = self.loop.batch or len(splits.train.y)
        torch.manual_seed(self.loop.seed)
        model = fitted(self.start.config(self.model), prepare.image, splits.labels)
        parts = Parts(
            task=self.task(model, prepare),
            model=model,
            stream=self.stream(splits.train, prepare, batch),
            valid=self.held(splits.valid, prepare),
            optims={"model": self.optim},
            unit="images",
            units_per_batch=batch,
            facts={
                "data": self.data.source,
                "training images": len(splits.train.y),
                "validation images": len(splits.valid.y),
                "test images": len(splits.test.y),
                "image": "×".join(map(str, prepare.image)),
                "classes": len(splits.labels),
                **known(splits),
            },
            save_extra=prepare.save,
            exhibits=lambda: self.exhibits(model, splits, prepare),
        )
        return self.start.applied(parts)

    def task(self, model: Pretrained, prepare: Preprocessing) -> Any:
        """Plain classification, or with mixed or attacked images."""
        ways = self.mix.ways()
        if ways and self.attack.eps:
            raise Mistake("--mix and --attack do not go together: an attack needs one class an image; choose one")
        if self.attack.eps:
            return ClassifyAdversarially(model, self.attack.eps, self.attack.steps, prepare.mean, prepare.std)
        return ClassifyMixed(model, len(prepare.labels), ways) if ways else Classify(model)

    def stream(self, train: Images, prepare: Preprocessing, batch: int) -> Stream:
        """Shuffled training images, augmented if the recipe says so."""
        micro, seed, augment = micro_batch(self.loop, batch), self.loop.seed, self.data.changes()
        workers = self.data.processes(train)
        if isinstance(train.x, Tensor) and not augment.transforms and not workers:
            return Shuffled(arrays(train, prepare), micro, seed, *process())
        return shuffled(train, prepare, augment, micro, seed, process(), workers)

    def held(self, images: Images, prepare: Preprocessing) -> Iterable[Batch]:
        """Images that are not trained on, in order."""
        if isinstance(images.x, Tensor):
            return InOrder(arrays(images, prepare))
        return Walk(images, prepare, self.data.processes(images))

    def test(self) -> Iterable[Batch]:
        """The test images."""
        splits = self.data.read()
        return self.held(splits.test, self.start.prepared(Preprocessing.fit(splits)))

    def exhibits(self, model: Pretrained, splits: Splits, prepare: Preprocessing) -> list[Exhibit]:
        """What is taken for what, the worst mistakes, and what augmentation does."""
        found = [*look(model, splits, self.held(splits.valid, prepare)), *look_inside(model, splits.valid, prepare)]
        found.append(layer_table(model, prepare.image))
        augment = self.data.changes()
        return [*found, sheet(splits, augment)] if augment.transforms else found


def arrays(images: Images, prepare: Preprocessing) -> dict[str, Tensor]:
    return {"x": prepare.standardized(images.x), "y": images.y, "ids": images.ids}


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


def layer_table(model: Pretrained, image: tuple[int, int, int]) -> Exhibit:
    """Shapes, parameters, FLOPs and receptive fields."""
    one = torch.zeros(1, *image, device=next(model.parameters()).device)
    note = "Layers with weights, for one image. A multiplication and an addition are two FLOPs."
    return Exhibit("table", "Layer by layer", layers(model, one).weighty.table(), note)


def look(model: Pretrained, splits: Splits, batches: Iterable[Batch]) -> list[Exhibit]:
    """What is taken for what, and the images where the model is most wrong."""
    where, images, labels = next(model.parameters()).device, splits.valid, splits.labels
    p = torch.cat([model(b["x"].to(where)).softmax(dim=-1).cpu() for b in batches])
    predicted = p.argmax(dim=-1)
    counts = {"labels": list(labels), "counts": confusion(predicted, images.y, len(labels)).tolist()}
    true = images.y[:, None]
    # How far the best wrong class leads the right one; below 0 where the answer is right.
    lead = p.scatter(1, true, 0).amax(dim=1) - p.gather(1, true).squeeze(1)
    worst = lead.argsort(descending=True, stable=True)[:SHOWN]
    captions = [
        f"{called(splits, int(images.ids[i]))}: {labels[int(images.y[i])]}, "
        + ("called " if predicted[i] != images.y[i] else "right, ")
        + f"{labels[int(predicted[i])]} ({float(p[i].max()):.0%})"
        for i in worst.tolist()
    ]
    return [
        Exhibit("confusion", "What is taken for what", counts, "Validation images, best checkpoint."),
        Exhibit(
            "images",
            "Most confident mistakes, then closest calls",
            {"images": channels_last(images.x[worst]).numpy(), "captions": captions},
            "Validation images, ordered by how far the best wrong class leads.",
        ),
    ]


def sheet(splits: Splits, augment: Augment) -> Exhibit:
    """A contact sheet: training images, each with a few of its augmentations."""
    train = splits.train
    rows = torch.linspace(0, len(train.y) - 1, min(ROWS, len(train.y))).long()
    x = train.x[rows]
    changed = [augment.seeded(x, seed) for seed in range(CHANGED)]
    pictures = torch.stack([channels_last(y) for y in (x, *changed)], 1)
    captions = [f"{called(splits, int(train.ids[i]))}: {splits.labels[int(train.y[i])]}" for i in rows.tolist()]
    return Exhibit(
        "sheet",
        "What augmentation makes of training images",
        {"rows": pictures.numpy(), "captions": captions},
        "First as it is, then as training may see it.",
    )


def channels_last(x: Tensor) -> Tensor:
    """(n, c, h, w) -> (n, h, w) or (n, h, w, 3), as a report shows them"""
    return x[:, 0] if x.shape[1] == 1 else x.movedim(1, -1)


def called(splits: Splits, record: int) -> str:
    """An image's name, e.g. its file."""
    return splits.names[record] if splits.names else f"record {record}"
